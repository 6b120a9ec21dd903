"""Pictures of docs/gallery.md, figures.md, guide.md: ``python -m tests.gallery`` draws and checks.

A picture fails that is empty, that has texts over each other, or texts that leave the figure.
"""

from __future__ import annotations

import re
import sys
from contextlib import chdir
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "gallery.md"
# The figures of the papers, by the pictures of the package.
FIGURES = PAGE.with_name("figures.md")
GUIDE = PAGE.with_name("guide.md")
BLOCK = re.compile(
    r"```python\n(.*?)```\n+(?:!\[[^\]]*\]\(((?:gallery|figures|guide)/[\w-]+\.png)\))?", re.DOTALL
)
# Pixels that texts may share: letters do not reach the ends of their boxes.
SLACK = 2.0


def blocks(page=PAGE):
    """Code of a page, with the file of its picture, if it has one."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def problems(figure):
    """What is wrong with a picture, in words."""
    figure.canvas.draw()
    picture = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    out = []
    if (picture == picture[0, 0]).all(axis=-1).mean() > 0.995:
        out.append("it is empty")
    hidden = beyond(figure)
    texts = [
        (one.get_text(), one.get_window_extent())
        for one in figure.findobj(mpl.text.Text)
        if one.get_visible() and one.get_text().strip() and one not in hidden
    ]
    texts = [(text, box) for text, box in texts if box.width > 0]
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in texts:
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1:
            out.append(f"{text!r} leaves the figure")
    for (one, a), (two, b) in combinations(texts, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > SLACK and along > SLACK:
            out.append(f"{one!r} and {two!r} overlap")
    return out


def beyond(figure):
    """Labels of ticks outside the limits or of axes that are off: there, and not drawn."""
    out = set()
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not panel.axison or not low - slack <= tick.get_loc() <= high + slack:
                    out |= {tick.label1, tick.label2}
    return out


def draw(folder=None, page=PAGE):
    """Draw the pictures of a page, into a folder if there is one; names and their problems."""
    found, names = {}, {}
    for code, name in blocks(page):
        plt.close("all")
        with TemporaryDirectory() as written, chdir(written):
            exec(compile(code, str(page), "exec"), names)
        if not name:
            continue
        (number,) = plt.get_fignums()
        figure = plt.figure(number)
        found[name] = problems(figure)
        if folder is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=100)
    plt.close("all")
    return found


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]] or [PAGE, FIGURES, GUIDE]
    drawn = {name: what for page in pages for name, what in draw(PAGE.parent, page).items()}
    wrong = {name: what for name, what in drawn.items() if what}
    for name, what in wrong.items():
        sys.stdout.write("\n    ".join([name, *what]) + "\n")
    sys.exit(bool(wrong))
