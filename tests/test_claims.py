"""Pages on claims of the papers quote the studies, and a study that is computed again tells them.

A block of lines that begin with ``>`` is a quotation: it stands word for word on the page of a
study to which the page leads, with ``…`` where something is left out. A paragraph that leads to a
study has no other numbers than the study's page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INDEX = DOCS / "claims" / "README.md"
CLAIMS = sorted(path for path in INDEX.parent.glob("*.md") if path != INDEX)
PARTS = ["Evidence", "Why", "What to do instead"]
STUDY = re.compile(r"\]\((\.\./(?:studies/[\w-]+|validity)\.md)(?:#[\w-]+)?\)")
FENCE = re.compile(r"^(?:```(\w+)|<!-- checks)\n(.*?)^(?:```|-->)", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")


def plain(text):
    """The words, with one space between them."""
    return " ".join(text.split())


def studies_of(text):
    """What the pages of the studies say to which a page leads."""
    return [
        plain((INDEX.parent / name).read_text(encoding="utf-8"))
        for name in sorted(set(STUDY.findall(text)))
    ]


def quotations(text):
    """Quoted paragraphs: the pieces that an ellipsis leaves."""
    blocks = re.findall(r"(?:^>.*\n?)+", FENCE.sub("", text), re.MULTILINE)
    paragraphs = [
        paragraph
        for block in blocks
        for paragraph in re.sub(r"^> ?", "", block, flags=re.MULTILINE).split("\n\n")
    ]
    return [[plain(piece) for piece in paragraph.split("…")] for paragraph in paragraphs]


def not_quoted(text):
    """Pieces of quotations that are on none of the pages, or not in their order."""
    wrong = []
    for pieces in quotations(text):
        pattern = ".*?".join(re.escape(piece) for piece in pieces)
        if not any(re.search(pattern, study) for study in studies_of(text)):
            wrong.append(pieces)
    return wrong


def other_numbers(text):
    """Numbers in paragraphs that lead to studies, and are not on the pages of these."""
    wrong = []
    prose = re.sub(r"^(?:>|\||#).*\n?", "\n", FENCE.sub("", text), flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", prose):
        said = studies_of(paragraph)
        words = re.sub(r"\[[^\]]*\]\([^)]*\)|\$[^$]*\$|`[^`]*`", "", paragraph)
        known = {number for study in said for number in NUMBER.findall(study)}
        wrong += [number for number in NUMBER.findall(words) if said and number not in known]
    return wrong


@pytest.fixture(params=CLAIMS, ids=lambda path: path.stem)
def claim(request):
    return request.param.read_text(encoding="utf-8")


def test_every_claim_is_listed():
    text = INDEX.read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"\]\(([\w-]+\.md)\)", text))) == [path.name for path in CLAIMS]


def test_claim_has_all_parts_and_evidence(claim):
    assert re.findall(r"^## (.*)$", claim, re.MULTILINE) == PARTS
    assert claim.count("**The claim") == claim.count("**Found.**") == 1
    evidence = claim.partition("## Evidence")[2].partition("## Why")[0]
    assert "\n> " in evidence or "```python" in evidence


def test_what_is_quoted_is_on_the_page_of_the_study(claim):
    assert not not_quoted(claim)
    assert not other_numbers(claim)


def test_commands_are_those_of_the_studies(claim):
    commands = [content for language, content in FENCE.findall(claim) if language == "sh"]
    assert bool(commands) == bool(quotations(claim))
    for command in commands:
        assert any(plain(command) in study for study in studies_of(claim)), command


def test_another_number_is_noticed():
    """The checks above can fail."""
    text = (INDEX.parent / "one-bin.md").read_text(encoding="utf-8")
    assert "25.8" in text
    assert not_quoted(text.replace("25.8", "25.9"))
    assert other_numbers("99.37 % in the study [example-1](../studies/example-1.md)") == ["99.37"]


# --- the short paper -----------------------------------------------------------------------------

PAPER = (DOCS / "paper.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"`((?:python vignettes/studies|python -m tests\.benchmarks) [^`]*)`")


def page_of(command):
    """The page that shows what a command computed."""
    name = command.split()[2]
    here = DOCS / "studies" / f"{name}.md"
    if command.startswith("python -m"):
        here = DOCS / "cost.md"
    elif not here.exists():
        here = DOCS / f"{name}.md"
    return plain(here.read_text(encoding="utf-8"))


def numbers_without_source(text):
    """Numbers of paragraphs that name commands, and are not on the pages of these."""
    wrong = []
    for paragraph in text.split("\n\n"):
        pages = [page_of(command) for command in COMMAND.findall(paragraph)]
        known = {number.replace(",", "") for page in pages for number in NUMBER.findall(page)}
        said = NUMBER.findall(re.sub(r"`[^`]*`", "", paragraph))
        wrong += [number for number in said if pages and number.replace(",", "") not in known]
    return wrong


def test_paper_has_the_numbers_of_the_commands_that_it_names():
    commands = COMMAND.findall(PAPER)
    assert len(commands) >= 5
    assert all(command in page_of(command) for command in commands)
    assert not numbers_without_source(PAPER)
    assert numbers_without_source(PAPER.replace("95.5 ± 0.2", "95.52 ± 0.2")) == ["95.52"]


def test_every_percentage_of_the_paper_is_beside_a_command():
    for paragraph in PAPER.split("\n\n"):
        if "±" in paragraph or re.search(r"\d %", paragraph):
            assert COMMAND.search(paragraph), paragraph


def test_citations_of_the_paper_are_its_bibliography():
    entries = re.findall(r"^@\w+\{(\w+),", (DOCS / "paper.bib").read_text("utf-8"), re.MULTILINE)
    body = PAPER.split("---\n", 2)[2]
    assert set(re.findall(r"@(\w+)", body)) == set(entries)
    assert len(entries) == len(set(entries))
    parts = re.findall(r"^# (.*)$", body, re.MULTILINE)
    assert parts[:3] == ["Summary", "Statement of need", "State of the field"]
    assert parts[-1] == "References"
    assert len(body.split()) < 1250
