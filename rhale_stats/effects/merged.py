"""Effects of all rows from effects of parts of them, of which only moments are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.words import shown
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.cell_moments import CellMoments, merged
from rhale_stats.arrays.moments import FloatArray, Moments
from rhale_stats.bins.rules import GivenBins
from rhale_stats.effects.estimates import by_squares
from rhale_stats.effects.labelled import MISSING_EFFECTS, dataset
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names, methods_of
from rhale_stats.schema.identity import as_attribute, fingerprint_of, joined_checksum, without_start
from rhale_stats.schema.padding import Estimates
from rhale_stats.schema.validation import validated

# Attributes in which effects of parts must agree, with what messages call them.
AGREED = {
    "centering": "centring",
    "weighting": "weighting",
    "weight_kind": "kind of weights",
    "output_label": "output",
    "scale": "scale",
    "output_units": "units of the output",
}


@validated
def merge(effects: Sequence[xr.Dataset]) -> xr.Dataset:
    r"""Effect of all rows together, from effects of parts of the rows in the same bins.

    The parts can be hospitals that must not share rows: only the moments in their effects are used.
    The result has the estimates, and with `std_error` the standard errors, of `rhale` of all rows.

    Parameters
    ----------
    effects : sequence of Dataset
        What `rhale` or `std_error` returned for each part, with the same features, edges and cells:
        ``rhale(local, bins=GivenBins(edges, cells))``, or ``GivenBins(effect)`` with the effect of
        one of the parts. Without agreed cells use ``weighting="rows"``. Precision weights must be
        on one scale in all parts, and differ within each.

    Returns
    -------
    Dataset
        As of `rhale`, without standard errors, and without the ``spread`` in bins of its own, whose
        residuals are not known. ``n_rows`` is the sum of those of the parts.

    Raises
    ------
    ValueError
        Parts with other features, edges, cells, outputs, weights or definitions of the effect; a
        feature that is constant in a part; precision weights that are equal within a part; linear
        bins, and standard errors by groups (see Notes).
    TypeError
        An entry is no Dataset of effects.

    Notes
    -----
    Means, variances and higher moments merge exactly (math [95]; Chan, Golub and LeVeque 1983). The
    model must be the same for all parts; of this only the name and the scale of its output are
    checked.

    Where rows are on the edges of cells, as with features of few values (math [2]), rows at the
    ends of an axis have the mean of their cell in their own part, and with precision weights each
    part divides the rows of an edge by itself: such curves are those of all rows up to this.

    What does not merge: bins of a rule that fits lines, which differ between parts; and errors by
    groups, which need the sums of each group in each cell, and these say more of single groups than
    moments do. With precision weights ``skewness_sign`` needs the rows: it is that of the parts if
    they agree, and 0, without a correction of intervals for skewness, if they do not.

    The checksum of the rows is that of the parts in their order (math [96]), so that
    functions which need rows accept those of all parts, one below the other. Fewer than about five
    rows in a bin or a cell of a part may say something of single rows.

    References
    ----------
    Chan, Golub and LeVeque (1983), *The American Statistician* 37, 242-247.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    >>> def model(X):
    ...     return X[:, 0] ** 2 + X[:, 0] * X[:, 1]
    >>> bins = rs.GivenBins([-1, -0.5, 0, 0.5, 1], cells=np.linspace(-1, 1, 17))
    >>> parts = [rs.rhale(rs.local_effects(model, rows), bins=bins) for rows in (X[:600], X[600:])]
    >>> pooled = rs.std_error(rs.merge(parts))
    >>> whole = rs.std_error(rs.rhale(rs.local_effects(model, X), bins=bins))
    >>> bool(np.allclose(pooled["curve_se"], whole["curve_se"], rtol=1e-6))
    True
    """
    if not isinstance(effects, list | tuple):
        raise TypeError(
            f"effects must be a list of the Datasets that rhale returned; got {shown(effects)}."
        )
    parts = [_checked(effect, number) for number, effect in enumerate(effects)]
    if not parts:
        raise ValueError("effects must hold at least one effect; got none.")
    first = parts[0]
    for number, part in enumerate(parts):
        _check_alike(first, part, number)
    names = feature_names(first)
    rows = [[one_feature(part, name) for part in parts] for name in names]
    centering = str(first.attrs["centering"])
    states = [_merged(name, each) for name, each in zip(names, rows, strict=True)]
    n_rows = sum(int(part.attrs["n_rows"]) for part in parts)
    base = first.drop_vars(MISSING_EFFECTS, errors="ignore")
    for name in ("local_effect_error", "numerical_error"):
        largest = np.max([part[name].values for part in parts], axis=0)
        base = base.assign({name: first[name].variable.copy(data=largest)})
    edges = {
        name: each[0].bin_edges
        for name, each in zip(names, rows, strict=True)
        if each[0].sizes["bin"]
    }
    weighting = str(first.attrs["weighting"])
    out = dataset(base, GivenBins(edges), centering, weighting, states, n_rows)
    names_kept = ("weighting", "bin_rule", "bin_parameters")
    precision = max(float(part.attrs.get("answer_precision", 0.0)) for part in parts)
    return out.assign_attrs(
        {name: first.attrs[name] for name in names_kept if name in first.attrs}
        | ({"answer_precision": precision} if precision else {})
        | {"n_parts": len(parts)}
        | _fingerprints(names, rows)
    )


# --- whether parts fit together -------------------------------------------------------------------


def _checked(effect: Any, number: int) -> xr.Dataset:
    """One effect; refused where its moments are not those that merge."""
    what = f"effects[{number}]"
    checked = check_effect(effect, what)
    if checked.attrs.get("method") != "rhale" or "debiased" in checked.attrs:
        raise ValueError(
            f"{what} must be what rhale returned; this one is from "
            f"{'debias' if 'debiased' in checked.attrs else checked.attrs.get('method')}."
        )
    if "n_groups" in checked.attrs or "feature_n_groups" in checked.coords:
        raise ValueError(
            f"{what} must be without standard errors by groups: sums of groups about the mean of "
            f"all parts are not known. Merge what rhale returned; standard errors are then by rows."
        )
    if "slope" in checked:
        raise ValueError(
            f"{what} must have constant bins; its rule {checked.attrs['bin_rule']} may fit lines. "
            f"Use bins=GivenBins(...)."
        )
    if (
        checked.attrs.get("weight_kind") in ("precision", "sampling")
        and "weight_products" not in checked
    ):
        raise ValueError(
            f"{what} must have precision weights that differ within the part, and bins by "
            f"GivenBins(...), which keeps the sums of weights that other parts need; got "
            f"{checked.attrs['bin_rule']}. Equal weights are as none: leave them out if all parts "
            f"have the same."
        )
    return checked


def _check_alike(first: xr.Dataset, part: xr.Dataset, number: int) -> None:
    """Raise ``ValueError`` where effects of two parts are of different things."""
    what = f"effects[0] and effects[{number}]"
    if feature_names(first) != feature_names(part):
        raise ValueError(
            f"{what} must have the same features; got {', '.join(feature_names(first))} and "
            f"{', '.join(feature_names(part))}."
        )
    for name, text in AGREED.items():
        a, b = [str(effect.attrs.get(name, "")) for effect in (first, part)]
        if a != b:
            raise ValueError(f"{what} must have the same {text}; got {a!r} and {b!r}.")
    if methods_of(first) != methods_of(part):
        raise ValueError(
            f"{what} must have local effects by the same methods; got "
            f"{', '.join(methods_of(first))} and {', '.join(methods_of(part))}. Use "
            f"local_effects(..., method=...)."
        )


def _check_edges(name: str, rows: Sequence[FeatureResult]) -> None:
    """Raise ``ValueError`` where bins or cells of one feature differ between parts."""
    advice = "Make all with the same rule: rhale(local, bins=GivenBins(effect))"
    for number, row in enumerate(rows):
        if not row.sizes["bin"]:
            raise ValueError(
                f"effects[{number}] must have a feature {name!r} that varies; it is constant there."
            )
        if not np.array_equal(row.bin_edges, rows[0].bin_edges):
            raise ValueError(
                f"effects[0] and effects[{number}] must have the same edges of feature {name!r}; "
                f"got {row.sizes['bin']} bins from {float(row['edge_value'][0]):.6g} to "
                f"{float(row['edge_value'][-1]):.6g} in effects[{number}]. {advice}."
            )
        if not np.array_equal(row.edges, rows[0].edges):
            raise ValueError(
                f"effects[0] and effects[{number}] must have the same cells of the curve of "
                f"feature {name!r}. {advice}, or weighting='rows', which has none."
            )


# --- moments --------------------------------------------------------------------------------------


def _merged(name: str, rows: Sequence[FeatureResult]) -> Estimates:
    """What the estimates of one feature are made of, from the moments of all parts."""
    if not any(row.sizes["bin"] for row in rows):
        return {}
    _check_edges(name, rows)
    scales, first = _scales(rows), rows[0]
    cells = [_scaled(row.moments, scale) for row, scale in zip(rows, scales, strict=True)]
    together, starts = merged(cells), first.bin_starts
    bins, more = together.pooled(starts, degree=2).means(), dict[str, Any]()
    pooled = [moments.pooled(starts) for moments in cells]
    of_bins = _squares(rows, pooled, scales, "", bins)
    if of_bins is not None:
        squares = sums.squares_of(of_bins, bins)
        signs = {float(row["skewness_sign"]) for row in rows}
        more = {
            "squares": squares.moments,
            "robust_variance": squares.variance(),
            "robust_third_cumulant": squares.third,
            "error_rows": squares.rows,
            "weight_products": squares.products,
            "weight_largest": max(float(row["weight_largest"]) for row in rows),
            # That of all rows is not known, unless the parts agree.
            "skewness_sign": signs.pop() if len(signs) == 1 else 0.0,
        }
    means = together.means()
    of_cells = _squares(rows, cells, scales, "cell_", means) if first.has_cells else None
    if of_cells is not None:
        squares = sums.squares_of(of_cells, means)
        more |= by_squares(together, squares, [slice(None)])
        more["cell_weight_products"] = squares.products
    return {
        "heterogeneity": np.sqrt(sums.variance(bins, 1)),
        "moments": together.table.T,
        "bin_left": first.bin_edges[:-1],
        "bin_right": first.bin_edges[1:],
        "edge_value": first.edges,
        **more,
    }


def _scales(rows: Sequence[FeatureResult]) -> FloatArray:
    """What weights of each part are multiplied by, so that the largest of all is 1."""
    if "weight_largest" not in rows[0]:
        return np.ones(len(rows))
    largest = np.array([float(row["weight_largest"]) for row in rows])
    return np.asarray(largest / largest.max())


def _scaled(moments: CellMoments, scale: float) -> CellMoments:
    """Moments by weights in the units of the largest weight of all parts."""
    if scale == 1.0:
        return moments
    table = moments.table * scale
    table[[0, 3, 4]] = moments.table[[0, 3, 4]]
    table[2] *= scale
    return CellMoments(table)


def _squares(
    rows: Sequence[FeatureResult],
    moments: Sequence[CellMoments],
    scales: FloatArray,
    prefix: str,
    everything: Moments,
) -> sums.SquareSums | None:
    """Sums by squared weights about the means of all rows; None without precision weights.

    Of the cells, or bins, of which every part has ``moments``.
    """
    if f"{prefix}weight_products" not in rows[0]:
        return None
    powers, moved = np.array([power for power, _ in sums.WEIGHT_POWERS]), []
    for row, part, scale in zip(rows, moments, scales, strict=True):
        squares, products = (
            row[f"{prefix}{name}"].values[: len(part.weight)]
            for name in ("squares", "weight_products")
        )
        g, x = [
            np.nan_to_num(getattr(part.means(), name) - getattr(everything, name))
            for name in ("mean", "x_mean")
        ]
        # In the units of the largest weight of all.
        products = np.nan_to_num(products * scale**powers)
        moved.append(sums.moved_squares(squares, products, g, x))
    return sums.square_sums_of_all(moved)


def _fingerprints(names: Sequence[str], rows: Sequence[Sequence[FeatureResult]]) -> dict[str, str]:
    """Checksums of the rows of all parts one below the other, where they have no weights."""
    checksums = {}
    for name, each in zip(names, rows, strict=True):
        texts = [fingerprint_of(row) for row in each]
        if not all(texts) or str(each[0].attrs.get("weight_kind")) != "none":
            return {}
        lengths = [int(row.attrs["n_rows"]) for row in each]
        parts = [[int(code, 16) for code in text.split("-")] for text in texts]
        of_rows = joined_checksum([(x, 8 * n) for (x, _), n in zip(parts, lengths, strict=True)])
        effects = [
            (without_start(g, 8 * n, n), 8 * n) for (_, g), n in zip(parts, lengths, strict=True)
        ]
        checksums[name] = f"{of_rows:08x}-{joined_checksum(effects, sum(lengths)):08x}"
    return as_attribute(checksums)
