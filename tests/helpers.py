"""What tests of several modules use."""

from __future__ import annotations

import inspect
import math
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.arrays import resample
from rhale_stats.arrays.moments import n_effective, variance
from rhale_stats.arrays.pooled_variance import with_neighbours
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.padding import padded

# Motor Trend (1974), the 32 cars of R's data set mtcars.
CARS = pd.DataFrame(
    {
        "mpg": [21, 21, 22.8, 21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2,
                10.4, 10.4, 14.7, 32.4, 30.4, 33.9, 21.5, 15.5, 15.2, 13.3, 19.2, 27.3, 26, 30.4,
                15.8, 19.7, 15, 21.4],
        "cyl": [6, 6, 4, 6, 8, 6, 8, 4, 4, 6, 6, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 8, 8, 8, 8, 4, 4, 4,
                8, 6, 8, 4],
        "hp": [110, 110, 93, 110, 175, 105, 245, 62, 95, 123, 123, 180, 180, 180, 205, 215, 230, 66,
               52, 65, 97, 150, 150, 245, 175, 66, 91, 113, 264, 175, 335, 109],
        "wt": [2.62, 2.875, 2.32, 3.215, 3.44, 3.46, 3.57, 3.19, 3.15, 3.44, 3.44, 4.07, 3.73, 3.78,
               5.25, 5.424, 5.345, 2.2, 1.615, 1.835, 2.465, 3.52, 3.435, 3.84, 3.845, 1.935, 2.14,
               1.513, 3.17, 2.77, 3.57, 2.78],
        "vs": [0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1,
               0, 0, 0, 1],
        "am": [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1,
               1, 1, 1, 1],
        "carb": [4, 4, 1, 1, 2, 1, 4, 2, 2, 4, 4, 3, 3, 3, 4, 4, 4, 1, 2, 1, 1, 2, 2, 4, 2, 1, 2, 2,
                 4, 6, 8, 2],
    }
)  # fmt: skip


def public_functions():
    """All public functions by the name that is typed after `rs.`, as `plots.forest`."""
    modules = {"plots": rs.plots.__all__, "simulate": rs.simulate.__all__}
    names = [*rs.__all__, *(f"{module}.{name}" for module in modules for name in modules[module])]
    functions = {name: attrgetter(name)(rs) for name in names}
    return {name: function for name, function in functions.items() if inspect.isfunction(function)}


def in_cells(array):
    """Values in the cells of a surface: at the last edges no cell begins."""
    edges = [dim for dim in array.dims if str(dim).startswith("edge_")]
    return array.isel(dict.fromkeys(edges, slice(-1))).values


def bins_of_rows(surface, side):
    """Bins of the rows along a numeric feature of a surface."""
    edges, x = surface[f"edge_{side}"].values, surface[f"x_{side}"].values
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def daily(cases, n=1):
    """Cases of a test: the first ``n`` are for every day, the others for the slow tests."""
    cases = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*case, marks=pytest.mark.slow if number >= n else ())
        for number, case in enumerate(cases)
    ]


def in_turn(rows, columns, times=1):
    """Pairs in which every row and every column occur at least so many times, none of them twice.

    They stand for the product where what a row does hardly depends on the column.
    """
    rows, columns = list(rows), list(columns)
    period = math.lcm(len(rows), len(columns))
    return [
        (rows[k % len(rows)], columns[(k + k // period) % len(columns)])
        for k in range(times * max(len(rows), len(columns)))
    ]


def frozen(array, dtype=None):
    """A copy that nothing can change."""
    array = np.array(array, dtype=dtype)
    array.setflags(write=False)
    return array


def local_of(x, g, **options):
    """Local effects ``g`` of all columns of an array ``x``, the constant ones too."""
    x, g = np.asarray(x), np.asarray(g)
    options = {"features": list(range(x.shape[1]))} | options
    return rs.local_effects(None, x, jacobian=g, **options)


def as_of_a_file(dataset):
    """A copy that does not know how it was made, as files of earlier versions."""
    out = dataset.copy()
    out.encoding = {}
    return out


def through_a_file(dataset, folder, engine="h5netcdf"):
    """What a netCDF file in a folder gives back of a Dataset."""
    path = folder / "saved.nc"
    dataset.to_netcdf(path, engine=engine)
    return xr.load_dataset(path, engine=engine)


_IN_FILES = set()


def _kind_of_values(name, variable):
    """All of a variable that its place in a file depends on, but its numbers."""
    values = np.atleast_1d(variable.values).ravel()
    unusual = ()
    if values.dtype.kind == "f":
        known = np.isfinite(values)
        unusual = (len(values) == 0, known.all(), known.any(), np.isinf(values).any())
    elif values.dtype.kind not in "iub":
        unusual = tuple(map(str, values))
    attributes = tuple(
        (key, np.asarray(value).dtype.kind, np.ndim(value), str(value))
        for key, value in variable.attrs.items()
    )
    return name, variable.dims, variable.dtype.str, unusual, attributes, str(variable.encoding)


def assert_a_file_holds(result, folder):
    """A netCDF file gives back a result: its attributes, and variables unlike all that others had.

    A file of one result takes half a second, and most results share most of their variables.
    """
    kinds = {name: _kind_of_values(name, one) for name, one in result.variables.items()}
    new = result.drop_vars([name for name, kind in kinds.items() if kind in _IN_FILES])
    xr.testing.assert_identical(through_a_file(new, folder), new)
    _IN_FILES.update(kinds.values())


class Counting:
    """A model that remembers how many rows it was asked for, call by call."""

    def __init__(self, model):
        self.model, self.rows = model, []

    def __call__(self, X):
        self.rows.append(len(X))
        return self.model(X)


def _half_inverse(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(values**-0.5) @ vectors.T


def cr2(columns, outcome, group):
    """Influences of groups on least squares by the definition of CR2, (group, parameter).

    The residuals of a group are multiplied by (I - H)^(-1/2), H being its part of the hat matrix.
    """
    inverse = np.linalg.pinv(columns.T @ columns)
    residual = outcome - columns @ (inverse @ (columns.T @ outcome))
    influences = []
    for code in np.unique(group):
        own = columns[group == code]
        adjusted = _half_inverse(np.eye(len(own)) - own @ inverse @ own.T)
        influences.append(inverse @ own.T @ adjusted @ residual[group == code])
    return np.array(influences)


def bell_mccaffrey(columns, contrast, group):
    """Degrees of freedom of the CR2 variance of a contrast, by their definition of 2002."""
    inverse, n = np.linalg.pinv(columns.T @ columns), len(columns)
    rest, loads = np.eye(n) - columns @ inverse @ columns.T, []
    for code in np.unique(group):
        own = group == code
        adjusted = _half_inverse(rest[np.ix_(own, own)])
        loads.append(rest[:, own] @ adjusted @ columns[own] @ inverse @ contrast)
    products = np.array(loads) @ np.array(loads).T
    return np.trace(products) ** 2 / np.sum(products**2)


def labelled(ax, text):
    """The artist or container whose label begins with ``text``."""
    handles, labels = ax.get_legend_handles_labels()
    found = [
        handle for handle, label in zip(handles, labels, strict=True) if label.startswith(text)
    ]
    assert len(found) == 1, (text, labels)
    return found[0]


def cells_of_line(line):
    """Words of a printed line that stand two spaces or more apart."""
    return [word.strip() for word in line.split("  ") if word.strip()]


def summary_body(printed):
    """Lines of the table below the facts of a summary, heads first."""
    text = printed.tables[-1].as_text().splitlines()
    return [cells_of_line(line) for line in text if not set(line) <= {"=", "-"}]


def summary_facts(printed):
    """The title of a summary, and its facts by their names."""
    text = printed.tables[0].as_text().splitlines()
    lines = [cells_of_line(line) for line in text[1:] if not set(line) <= {"=", "-"}]
    words = [word for line in lines for word in line]
    return text[0].strip(), dict(zip(words[::2], words[1::2], strict=True))


def weighted_mean_with_error(share, values):
    """Mean by weights of sum 1, its standard error and degrees of freedom (Satterthwaite)."""
    n = 1 / np.sum(share**2)
    centre = np.sum(share * values)
    squares = (share * (values - centre)) ** 2
    degrees = 2 * squares.sum() ** 2 / (np.sum(squares**2) - squares.sum() ** 2 / n)
    return centre, np.sqrt(squares.sum() * n / (n - 1)), np.clip(degrees, 1, n - 1)


def sizes_of_blocks(monkeypatch, module, room):
    """Numbers of replicates that ``module`` draws at a time, as it goes on, with so much room."""
    weights_of, sizes = resample.weights_of, []

    def counting(scheme, units, seeds, n):
        sizes.append(len(seeds))
        return weights_of(scheme, units, seeds, n)

    monkeypatch.setattr(module, "CHUNK", room)
    monkeypatch.setattr(resample, "weights_of", counting)
    return sizes


def rows_of_probe(n_rows):
    """Rows of the three calls by which a model of so many complete rows is seen to be constant."""
    n = min(n_rows, 500)
    return [n, n, -(-n // 2)]


# What follows from the moments of bins.
OF_BINS = ("n_effective", "weight_share", "x_mean")


def unpacked(effect):
    """An effect with variables of what its moments say of bins and cells."""
    rows = [one_feature(effect, name) for name in feature_names(effect)]
    names = ["third_moment", "fourth_moment", "x_variance", "x_covariance"]
    size = [effect.sizes["bin"]]
    found = {name: padded([getattr(row.residuals, name) for row in rows], size) for name in names}
    found["effect_rows"] = padded([row.bin_means for row in rows], size)
    found |= {name: padded([getattr(row, name) for row in rows], size) for name in OF_BINS}
    out = effect.assign({name: (("feature", "bin"), one) for name, one in found.items()})
    if not any(row.has_cells for row in rows):
        return out
    cells = [row.curve_cells for row in rows]
    moments = [row.moments.means() for row in rows]
    each = [(n_effective(own), own.mean, variance(own, 1)) for own in moments]
    pooled = [with_neighbours(*(values[None] for values in of_rows)) for of_rows in each]
    of_cells = {
        "cell_effect": [one.pieces.mean for one in cells],
        "cell_share": [row.cell_share for row in rows],
        "cell_heterogeneity": [np.sqrt(one[0][0]) for one in pooled],
        "cell_n_effective": [one.n_effective for one in cells],
    }
    size = [effect.sizes["edge"]]
    return out.assign(
        {name: (("feature", "edge"), padded(each, size)) for name, each in of_cells.items()}
    )


def without_spread(effect):
    """An effect whose spread is that of its bins, as merged ones are."""
    names = [name for name in effect.variables if str(name).startswith("spread")]
    return as_of_a_file(effect.drop_vars(names))


# What follows from moments, and what a Dataset made by hand may have in their place.
GIVEN = ("n_effective", "weight_share", "effect_cov")


def row_of(dataset):
    """What a Dataset made by hand holds of its one feature; its edges are 0, 1, ... by default."""
    n_bins = dataset.sizes.get("bin", 0)
    if "edge_value" not in dataset:
        dataset = dataset.assign_coords(edge_value=("edge", np.arange(n_bins + 1.0)))
    if dataset.sizes["edge"] == n_bins + 1:  # those of the bins
        edges = dataset["edge_value"].values
        ends = {"bin_left": ("bin", edges[:-1]), "bin_right": ("bin", edges[1:])}
        dataset = dataset.assign_coords(ends)
    if "n_bins" not in dataset:
        dataset = dataset.assign(n_bins=n_bins)
    coords = [name for name in dataset.coords if name not in dataset.dims and name != "feature"]
    row = FeatureResult(dataset.reset_coords(coords).expand_dims("feature").set_coords(coords), 0)
    vars(row).update({name: dataset[name].values for name in GIVEN if name in dataset})
    return row


def changed(row, drop=(), attrs=None, **variables):
    """One feature of a result with other variables and attributes, or without some."""
    dataset = row.dataset.drop_vars(list(drop), errors="ignore").assign(variables)
    return row_of(dataset.assign_attrs(attrs or {}))
