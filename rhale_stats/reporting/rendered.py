"""Pages as HTML: Jinja's templates, with every value escaped, and their colours."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rhale_stats.reporting.page import ReportPage
from rhale_stats.reporting.words import Words

# Characters that XML and HTML do not have.
NAMES = re.compile(r'(\s(?:id|aria-labelledby|aria-describedby)="|href="#)([^"]+)')
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rhale_stats.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prefixed"] = _prefixed
    return environment


def _prefixed(html: str, prefix: str) -> Markup:
    """Markup whose names of elements, and references to them, begin with ``prefix``.

    Texts are escaped: a quotation mark stands in markup alone.
    """
    return Markup(NAMES.sub(lambda match: f"{match[1]}{prefix}{match[2]}", html))


def _css(name: str) -> str:
    """A style sheet without comments and indents."""
    text = (resources.files("rhale_stats.reporting") / name).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", text).strip()


@cache
def page_style() -> str:
    """The style of a report, which follows the reader's light or dark setting."""
    colours = (
        f":root {{ {variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
        f"@media print {{ :root {{ {variables(PRINT)} }} }}\n"
    )
    return f"{colours}{_css('page.css')}\n{_css('marks.css')}"


@cache
def notebook_style() -> str:
    """The style of a part of a notebook, which follows the theme of the notebook."""
    # The text of the notebook's theme; the ground is its own.
    ink = "var(--jp-ui-font-color1, var(--vscode-editor-foreground, {ink}))"
    light, dark = (
        variables({**palette, "ink": ink.format(ink=palette["ink"]), "ground": "transparent"})
        for palette in (LIGHT, DARK)
    )
    themes = "[data-jp-theme-light=false], .vscode-dark, [data-theme=dark], html[theme=dark]"
    unthemed = ":root:not([data-jp-theme-light], [data-theme]) body:not(.vscode-light)"
    return (
        f".rs-repr {{ {light} }}\n"
        f":is({themes}) .rs-repr {{ {dark} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {unthemed} .rs-repr {{ {dark} }} }}\n"
        f".rs-repr {{\n{_css('notebook.css')}\n{_css('marks.css')}\n}}"
    )


def policy() -> str:
    """What a browser may load: nothing but this style sheet and data inside the file."""
    digest = b64encode(sha256(page_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        f"form-action 'none'"
    )


def _rendered(template: str, values: dict[str, Any]) -> str:
    html = _environment().get_template(template).render(values)
    # A name with such a character is shown without it.
    return CONTROLS.sub("\ufffd", html).lstrip()


def rendered(page: ReportPage, t: Words, lang: str, *, all_open: bool) -> str:
    """A report as HTML."""
    values = {"page": page, "t": t, "lang": lang, "all_open": all_open}
    return _rendered(
        "report.html.j2", {**values, "policy": policy(), "style": Markup(page_style())}
    )


def rendered_part(values: dict[str, Any], t: Words) -> str:
    """A part of a notebook as HTML."""
    style = Markup(notebook_style())
    return _rendered("notebook.html.j2", {**values, "t": t, "style": style})


LIGHT: Final = {
    "ground": "#ffffff",
    "ink": "#15181c",
    "soft": "#434b56",
    "rule": "#cfd5dc",
    "grid": "#e4e8ed",
    "band": "#cbd1d9",
    "edge": "#626b77",
    "up": "#0a5c9e",
    "down": "#a84d06",
    "link": "#0a4a86",
    "g0": "#00604f",
    "g1": "#75288a",
    "g2": "#7d5200",
    "g3": "#3744b8",
    "few": "#f4ead3",
    "small": "#edf0f3",
    "card": "#f5f7f9",
    "focus": "#0a4a86",
    "halo": "#ffd54a",
}
DARK: Final = {
    "ground": "#13161b",
    "ink": "#f1f3f6",
    "soft": "#bcc4ce",
    "rule": "#3b434e",
    "grid": "#2a3038",
    "band": "#434c58",
    "edge": "#9ba5b2",
    "up": "#78bbf7",
    "down": "#f4aa66",
    "link": "#90c7ff",
    "g0": "#50d3bb",
    "g1": "#dcaaec",
    "g2": "#e8c861",
    "g3": "#a9b8ff",
    "few": "#3a3220",
    "small": "#242a32",
    "card": "#1b2027",
    "focus": "#90c7ff",
    "halo": "#5b4a00",
}
# Paper is white, whatever the screen is.
PRINT: Final = {**LIGHT, "ink": "#000000", "soft": "#333333", "link": "#000000"}


def variables(colours: Mapping[str, str]) -> str:
    """Colours as variables of CSS."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
