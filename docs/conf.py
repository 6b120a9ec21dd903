"""Settings of the site: ``python3 -m sphinx -W -c docs . docs/_build/html`` from the checkout.

The pages are the Markdown files of the repository as they are. Before they are built, their code is
run by the test that compares what it prints with what they show, so that an error or another number
fails the build. Where that test has just been run, ``RHALE_STATS_PAGES_RUN=1`` leaves this out.

Formulas are drawn by MathJax. After ``npm install mathjax@3`` in the checkout, the site has a copy
of its own and needs no network (``RHALE_STATS_MATHJAX`` names another folder). Without it the site
is built as well, and its pages load MathJax from the network.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

import rhale_stats

ROOT = Path(__file__).resolve().parents[1]

project = "rhale_stats"
author = "The rhale_stats developers"
copyright = author  # the name that Sphinx asks for
release = version = rhale_stats.__version__

root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**", "vignettes/**"]
exclude_patterns = ["docs/_build", "docs/_templates"]
templates_path = [str(Path(__file__).parent / "_templates")]  # Sphinx seeks from two folders

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
]

# --- Markdown as GitHub reads it ------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "smartquotes"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
# The README and the change log begin where a page of the site does; both are pages of their own.
suppress_warnings = ["myst.header"]

# --- Formulas -------------------------------------------------------------------------------------
MATHJAX = Path(os.environ.get("RHALE_STATS_MATHJAX") or ROOT / "node_modules" / "mathjax") / "es5"
HAS_MATHJAX = (MATHJAX / "tex-mml-chtml.js").is_file()
# What a page may ask that script for. The rest are other scripts of the same kind.
MATHJAX_PARTS = ("a11y", "input", "output/chtml", "sre", "ui", "tex-mml-chtml.js")
if HAS_MATHJAX:
    mathjax_path = "mathjax/tex-mml-chtml.js"  # in _static

# --- Functions ------------------------------------------------------------------------------------
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # the docstrings say types, dims and units
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Links to other libraries, for a machine that reaches them: ``-t online``.
if tags.has("online"):  # noqa: F821  # Sphinx puts it here
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "arviz": ("https://python.arviz.org/en/stable/", None),
        "matplotlib": ("https://matplotlib.org/stable/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "pandas": ("https://pandas.pydata.org/docs/", None),
        "python": ("https://docs.python.org/3/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
        "sklearn": ("https://scikit-learn.org/stable/", None),
        "statsmodels": ("https://www.statsmodels.org/stable/", None),
        "xarray": ("https://docs.xarray.dev/en/stable/", None),
    }

# --- Looks ----------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "rhale_stats"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_depth": 3,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


FORMULA = re.compile(r"math \[(\d+)\]")


def run_pages(app):
    """Run the code of all pages as the tests do."""
    if app.builder.format != "html" or os.environ.get("RHALE_STATS_PAGES_RUN"):
        return
    command = [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow"]
    subprocess.run([*command, "tests/test_documents.py"], cwd=ROOT, check=True)


def link_formulas(_app, _what, _name, _object, _options, lines):
    """Let "math [n]" in a docstring lead to the formula; pages of functions are in a folder."""
    for number, line in enumerate(lines):
        lines[number] = FORMULA.sub(r"`math [\1] <../math.html#formula-\1>`__", line)


def name_formulas(app, doctree):
    """Give every formula an address: those of ``math.md`` begin with a bold [n]."""
    if app.env.docname != "docs/math":
        return
    for strong in doctree.findall(nodes.strong):
        found = re.match(r"\[(\d+)\]", strong.astext())
        if found:
            strong["ids"].append(f"formula-{found[1]}")


def references():
    """Entries of the short paper's bibliography: {key: (names in short, year, all of it)}."""
    found = {}
    text = (ROOT / "docs" / "paper.bib").read_text(encoding="utf-8")
    for key, entry in re.findall(r"@\w+\{(\w+),(.*?)\n\}", text, re.DOTALL):
        fields = dict(re.findall(r"^ *(\w+) *= \{(.*)\},?$", entry, re.MULTILINE))
        fields = {name: value.replace("{", "").replace("}", "") for name, value in fields.items()}
        names = [name.split(",")[0] for name in fields["author"].split(" and ")]
        few = names[0] if len(names) == 1 else " and ".join(names)
        if len(names) > 2 or names[-1] == "others":
            few = f"{names[0]} et al."
        where = fields.get("journal") or fields.get("booktitle") or f"arXiv:{fields['eprint']}"
        whole = f"{', '.join(names)} ({fields['year']}). {fields['title']}. {where}."
        if "doi" in fields:
            whole += f" [doi:{fields['doi']}](https://doi.org/{fields['doi']})"
        found[key] = few, fields["year"], whole.replace(", others", " et al.")
    return found


def cite(_app, name, source):
    """Let the citations of the short paper, which Pandoc resolves, be read on the site as well."""
    if name != "docs/paper":
        return
    known = references()

    def in_brackets(found):
        keys = re.findall(r"@(\w+)", found[1])
        return "(" + "; ".join(" ".join(known[key][:2]) for key in keys) + ")"

    _, head, text = source[0].split("---\n", 2)
    text = re.sub(r"\[(@[^\]]+)\]", in_brackets, text)
    text = re.sub(r"(?<!\w)@(\w+)", lambda found: "{} ({})".format(*known[found[1]][:2]), text)
    title = re.search(r'^title: "(.*)"$', head, re.MULTILINE)[1]
    text = re.sub(r"^# ", "## ", text, flags=re.MULTILINE)
    entries = "\n".join(f"- {whole}" for whole in sorted(whole for *_, whole in known.values()))
    source[0] = f"# {title}\n\n{text}\n{entries}\n"


def say_where_formulas_come_from(app):
    """Say once whether the site will need the network."""
    if app.builder.format == "html" and not HAS_MATHJAX:
        logging.getLogger(__name__).info(
            "no MathJax in %s: formulas of this site need the network (npm install mathjax@3)",
            MATHJAX,
        )


def copy_mathjax(app, error):
    """Put the script that draws formulas, and its fonts, into the site."""
    if error is not None or app.builder.format != "html" or not HAS_MATHJAX:
        return
    for part in MATHJAX_PARTS:
        source, target = MATHJAX / part, Path(app.outdir) / "_static" / "mathjax" / part
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def lead_to_start(app, error):
    """Let the folder of the site open at its first page."""
    if error is None and app.builder.format == "html":
        page = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app):
    """Connect these functions with the steps of a build."""
    app.connect("builder-inited", say_where_formulas_come_from)
    app.connect("builder-inited", run_pages)
    app.connect("source-read", cite)
    app.connect("autodoc-process-docstring", link_formulas)
    app.connect("doctree-read", name_formulas)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", lead_to_start)
