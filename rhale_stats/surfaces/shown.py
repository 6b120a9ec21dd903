"""The page of `show` for surfaces."""

from __future__ import annotations

import xarray as xr

from rhale_stats.printing.pages import Page, output, table_of, uncertainty_line
from rhale_stats.printing.text import number_text
from rhale_stats.surfaces.inference import size
from rhale_stats.surfaces.tables import TESTS, corner_name, corner_tests, farthest_corners
from rhale_stats.surfaces.values import pair_name


def surface_page(surface: xr.Dataset, most: int) -> Page:
    """The page of a surface: the corners farthest from 0."""
    attrs = surface.attrs
    known = "surface_se" in surface
    at = farthest_corners(surface, most)
    columns = ("surface", "surface_se") if known else ("surface",)
    tests = corner_tests(surface) if known else {}
    lines = [
        [
            corner_name(surface, one),
            *(number_text(float(surface[name].values[one])) for name in columns),
            *(TESTS[head](values[one]) for head, values in tests.items()),
        ]
        for one in at
    ]
    n_corners = int(surface["surface"].notnull().sum())
    empty = f", {attrs['n_empty']} of them without rows" if attrs["n_empty"] else ""
    return Page(
        f"Second-order ALE: {pair_name(surface)} on {output(surface)}",
        (
            f"{attrs['n_rows']} rows; {surface['n_obs'].size} cells{empty}; "
            f"standard deviation of the surface over the rows: {number_text(size(surface))}",
            uncertainty_line(surface, "surface_se", estimated=known),
        ),
        (
            table_of(
                ["", "surface", *(["std err"] if known else []), *tests],
                lines,
                len(lines),
                "corners",
                f"{len(lines)} of {n_corners} corners of cells, those farthest from 0.",
            ),
        ),
        "summary(result), plot_surface(result), wald_test(result)",
    )
