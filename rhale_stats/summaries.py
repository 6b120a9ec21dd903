"""Effects as tables: printed (`summary`) and as pandas frames (`tidy`, `glance`, `augment`)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_2cols, fmt_params

from rhale_stats.arrays.accumulate import curve_at, turning_points
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.intervals import student
from rhale_stats.by_region import each_region
from rhale_stats.inference import bin_degrees, row_degrees, std_error
from rhale_stats.schema import (
    check_effect,
    check_local,
    effect_at,
    feature_names,
    feature_position,
    one_feature,
    slopes,
    units_of,
    with_units,
)
from rhale_stats.unbiasedness import FINE, LARGE, TESTED_ROWS, TOO_FEW, linear_bin_error
from rhale_stats.validate import check_level

MOST_DIGITS = 17
COLUMN_SEPARATOR = "   "
# At which a bin is called biased where `check_unbiased` did not say, and a jump a jump.
SIGNIFICANCE = 0.05
# Rules that choose edges by the local effects.
SEARCHED = ("AdaptiveBins", "OptimalBins", "GreedyBins", "BestEqualWidthBins")
# What `tidy` shows of a check, where one was made.
CHECKED = (
    "heterogeneity_within",
    "heterogeneity_within_se",
    "bin_error",
    "bin_error_se",
    "bin_error_share",
    "von_neumann_ratio",
    "bin_error_pvalue",
    "bin_error_pvalue_adjusted",
    "rank_ratio",
    "rank_pvalue",
    "rank_pvalue_adjusted",
    "density_bias",
    "density_bias_se",
    "verdict",
    "jump",
    "jump_se",
    "jump_spread",
    "jump_pvalue",
    "jump_pvalue_adjusted",
)


@each_region
def tidy(effect: xr.Dataset, *, level: float = 0.95) -> pd.DataFrame:
    """Bin effects as a table, one row a feature and bin.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `compare`, another test or `effect_sizes` returned.
    level : float, default 0.95
        Of the intervals estimate ± t std_error (pointwise, central limit theorem, math [24];
        Student's t with the degrees of freedom of the bin, as in `confint`).

    Returns
    -------
    DataFrame
        Columns ``term``, ``bin``, ``bin_left``, ``bin_right``, ``n_obs``, ``estimate``,
        ``std_error``, ``statistic``, ``p_value`` (of no effect in the bin, two-sided),
        ``conf_low``, ``conf_high``, ``heterogeneity``, ``heterogeneity_se``; ``slope`` and
        ``slope_se`` from a rule that makes linear bins, and what `check_unbiased` and `jump_check`
        found. A constant feature has no bins and so no rows. Of a comparison: its points, with
        ``conf_low``, ``conf_high`` and the band; of another test the columns of `glance`; of sizes
        a line a size.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
    >>> rs.tidy(effect)[["term", "bin", "n_obs", "estimate", "std_error"]].round(2)
      term  bin  n_obs  estimate  std_error
    0   x0    0    218      2.20       0.16
    1   x0    1    282      1.82       0.13
    2   x1    0    256      0.48       0.14
    3   x1    1    244      0.08       0.15
    """
    if _kind(effect) == "test":
        return _tidy_test(effect)
    if _kind(effect) == "effect sizes":
        return _tidy_sizes(effect)
    effect = _with_std_error(effect)
    frames = []
    for name in feature_names(effect):
        row = one_feature(effect, name)
        frame = pd.DataFrame(
            {
                "term": name,
                "bin": row["bin"].values,
                "bin_left": row["bin_left"].values,
                "bin_right": row["bin_right"].values,
                "n_obs": row["n_obs"].values,
            }
        )
        intervals = _wald_columns(
            row["effect"].values, row["effect_se"].values, level, bin_degrees(row)
        )
        lines = {name: row[name].values for name in ("slope", "slope_se") if name in row}
        spread = {
            "heterogeneity": row["heterogeneity"].values,
            "heterogeneity_se": row["heterogeneity_se"].values,
        }
        checked = {check: row[check].values for check in CHECKED if check in row}
        frames.append(frame.assign(**intervals, **spread, **lines, **checked))
    return pd.concat(frames, ignore_index=True)


@each_region
def glance(effect: xr.Dataset, *, level: float = 0.95) -> pd.DataFrame:
    """One row a feature: average effect with its interval, heterogeneity, extent of the curve.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing.
    level : float, default 0.95
        Of the intervals for the average effect.

    Returns
    -------
    DataFrame
        Columns ``term``, ``kind``, ``n_bins``, ``n_obs``, ``estimate`` (mean of the local effects
        over the rows), ``std_error``, ``statistic``, ``p_value``, ``conf_low``, ``conf_high``,
        ``heterogeneity`` (root mean square over rows of the bins' standard deviations),
        ``heterogeneity_output`` and ``heterogeneity_index`` (math [10]), ``curve_min``,
        ``curve_max``. NaN for a constant feature. Of a test: ``term``, ``statistic``, perhaps
        ``df``, ``p_value``, ``p_value_adjusted``.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> rs.glance(rs.rhale(local))[["term", "n_bins", "estimate", "heterogeneity"]].round(2)
      term  n_bins  estimate  heterogeneity
    0   x0       1      1.98           2.27
    1   x1       1      0.29           2.28
    """
    if _kind(effect) == "test":
        return _glance_test(effect)
    effect = _with_std_error(effect)
    share = effect["weight_share"].where(effect["heterogeneity"].notnull())
    mean_square = (share * effect["heterogeneity"] ** 2).sum("bin", min_count=1) / share.sum("bin")
    frame = pd.DataFrame(
        {
            "term": feature_names(effect),
            "kind": effect["feature_kind"].values.astype(str),
            "n_bins": effect["n_bins"].values,
            "n_obs": effect["n_obs"].sum("bin").values,
        }
    )
    intervals = _wald_columns(
        effect["average_effect"].values,
        effect["average_effect_se"].values,
        level,
        np.array([row_degrees(one_feature(effect, name)) for name in feature_names(effect)]),
    )
    extent = np.array([_extent(one_feature(effect, name)) for name in feature_names(effect)])
    return frame.assign(
        **intervals,
        heterogeneity=np.sqrt(mean_square.values),
        heterogeneity_output=effect["heterogeneity_output"].values,
        heterogeneity_index=effect["heterogeneity_index"].values,
        curve_min=extent[:, 0],
        curve_max=extent[:, 1],
    )


def _extent(row: xr.Dataset) -> tuple[float, float]:
    """Smallest and largest value of the curve of one feature, wherever on the axis it has them."""
    edges, curve, slope = row["edge_value"].values, row["curve"].values, slopes(row)
    if np.isnan(curve).all():
        return np.nan, np.nan
    turns = turning_points(edges, row["effect"].values, slope)
    values = np.concatenate([curve, curve_at(edges, curve, slope, turns)])
    return float(np.nanmin(values)), float(np.nanmax(values))


@each_region
def augment(local: xr.Dataset, effect: xr.Dataset) -> pd.DataFrame:
    """The rows with what was estimated for them, one row an observation.

    Parameters
    ----------
    local, effect : Dataset
        Local effects, and what `rhale` made of them (or of other rows: where a value lies outside
        the bins, columns are NaN and the bin is missing).

    Returns
    -------
    DataFrame
        Indexed by ``obs``. For every feature ``f`` of ``effect``: ``f`` (its value),
        ``f.local_effect``, ``f.bin``, ``f.effect`` (of the bin; at the value where that is
        linear), ``f.residual`` (local effect minus effect) and ``f.curve`` at the value;
        ``weight`` where there is one.

    Raises
    ------
    KeyError
        A feature of ``effect`` is not in ``local``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 2, X)
    >>> rs.augment(local, rs.rhale(local)).columns.tolist()
    ['x0', 'x0.local_effect', 'x0.bin', 'x0.effect', 'x0.residual', 'x0.curve']
    """
    local, effect = check_local(local), check_effect(effect)
    columns: dict[str, object] = {}
    if "weight" in local:
        columns["weight"] = local["weight"].values
    for name in feature_names(effect):
        row = one_feature(effect, name)
        rows = local.isel(feature=feature_position(local, name))
        x, g = rows["x"].values, rows["local_effect"].values
        number = pd.array(np.zeros(len(x), dtype=np.int64), dtype="Int64")
        mean, curve = np.full(len(x), np.nan), np.full(len(x), np.nan)
        edges = row["edge_value"].values
        inside = np.zeros(len(x), dtype=bool)
        if len(edges):
            inside = (x >= edges[0]) & (x <= edges[-1])
            k = bin_index(edges, x)
            number[:] = k
            mean = np.where(inside, effect_at(row, x, k), np.nan)
            curve = curve_at(edges, row["curve"].values, slopes(row), x)
        number[~inside] = pd.NA
        columns |= {
            name: x,
            f"{name}.local_effect": g,
            f"{name}.bin": number,
            f"{name}.effect": mean,
            f"{name}.residual": g - mean,
            f"{name}.curve": curve,
        }
    return pd.DataFrame(columns, index=pd.Index(local["obs"].values, name="obs"))


@each_region
def summary(
    effect: xr.Dataset, feature: str | int | None = None, *, level: float = 0.95
) -> Summary:
    """Printed table: one line a feature, or one line a bin of one feature.

    What `check_unbiased` and `jump_check` found is shown below it, where they were run. A warning
    names the features whose heterogeneity is biased in some bin by more than its standard error;
    without a check it knows of the part of the bias that is linear in the feature.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing.
    feature : str or int, optional
        Show the bins of this feature.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    statsmodels.iolib.summary.Summary
        Prints as text; ``as_html()``, ``as_latex()``, ``as_csv()`` and notebooks work.

    Raises
    ------
    KeyError
        Unknown feature.
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> print(rs.summary(rs.rhale(local)))  # doctest: +ELLIPSIS
                      RHALE: effects on output...
    """
    if _kind(effect) in ("test", "effect sizes"):
        return _other_summary(effect)
    effect = _with_std_error(effect)
    tail = (1 - level) / 2
    bounds = [f"[{tail:.3g}", f"{1 - tail:.3g}]"]
    if feature is None:
        title = f"RHALE: effects on {_output(effect)}"
        body, notes = _feature_table(effect, bounds, level)
    else:
        name = feature_names(effect)[feature_position(effect, feature)]
        of = with_units(name, units_of(effect, name))
        title = f"RHALE: effect of {of} on {_output(effect)}"
        body, notes = _bin_table(effect, name, bounds, level)
    smry = Summary()
    smry.tables = [_header(effect, title, body), body]
    for check, table in (("verdict", _bias_table), ("jump", _jump_table)):
        if check in effect:
            extra, extra_notes = table(effect, feature)
            smry.tables.append(extra)
            notes.extend(extra_notes)
    notes.extend(_interval_notes(effect))
    notes.extend(_warnings(effect))
    notes.insert(0, f"Bins: {effect.attrs['bin_rule']}({effect.attrs['bin_parameters']}).")
    smry.add_extra_txt(["Notes:", *(f"[{i}] {note}" for i, note in enumerate(notes, start=1))])
    return smry


def _kind(results: object) -> str:
    """What a Dataset holds, where that is not effects."""
    return str(results.attrs.get("method", "")) if isinstance(results, xr.Dataset) else ""


def _glance_test(test: xr.Dataset) -> pd.DataFrame:
    names = [name for name in ("statistic", "df", "p_value", "p_value_adjusted") if name in test]
    return pd.DataFrame(
        {"term": feature_names(test), **{name: test[name].values for name in names}}
    )


def _tidy_test(test: xr.Dataset) -> pd.DataFrame:
    if "difference" not in test:
        return _glance_test(test)
    frames = []
    for number, name in enumerate(feature_names(test)):
        row = test.isel(feature=number)
        there = row["grid_value"].notnull().values
        bounds = {
            f"{prefix}_{end}": row[f"difference_{kind}"].values[there, at]
            for prefix, kind in (("conf", "ci"), ("band", "band"))
            for at, end in enumerate(("low", "high"))
        }
        frames.append(
            pd.DataFrame(
                {
                    "term": name,
                    "x": row["grid_value"].values[there],
                    "estimate": row["difference"].values[there],
                    "std_error": row["difference_se"].values[there],
                    **bounds,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _tidy_sizes(sizes: xr.Dataset) -> pd.DataFrame:
    names = [str(name) for name in sizes.data_vars if sizes[name].dims == ("feature",)]
    lines = []
    for number, term in enumerate(feature_names(sizes)):
        row = sizes.isel(feature=number)
        for name in names:
            if name.endswith("_corrected"):
                continue
            line = {"term": term, "size": name, "estimate": float(row[name])}
            if f"{name}_ci" in sizes:
                low, high = row[f"{name}_ci"].values
                line |= {
                    "corrected": float(row[f"{name}_corrected"]),
                    "conf_low": float(low),
                    "conf_high": float(high),
                }
            lines.append(line)
    return pd.DataFrame(lines)


def _other_summary(results: xr.Dataset) -> Summary:
    """A test, a line a feature; sizes of effects, a line a size."""
    attrs = results.attrs
    if _kind(results) == "test":
        table = _glance_test(results)
        heads = [str(name) for name in table.columns if name != "term"]
        rows = [
            [
                _pvalue(line[name]) if name.startswith("p_") else _number(line[name])
                for name in heads
            ]
            for _, line in table.iterrows()
        ]
        names = {
            "p_value": "P",
            "p_value_adjusted": f"P, adjusted ({attrs['adjust']})",
        }
        heads, stubs = [names.get(head, head) for head in heads], table["term"].tolist()
        title = f"Test on {attrs['output_name']}: {attrs['test']}"
        notes = [f"Null: {attrs['null']}. Source of variance: {attrs['source']}."]
        for name in ("difference_ci", "difference_band"):
            if name in results:
                facts = results[name].attrs
                notes.append(f"{name}: {facts['ci_prob']:.3g}, {facts['kind']}.")
    else:
        table = _tidy_sizes(results)
        heads = [str(name) for name in table.columns if name not in ("term", "size")]
        rows = [[_number(line[name]) for name in heads] for _, line in table.iterrows()]
        stubs = [f"{line['term']}: {line['size']}" for _, line in table.iterrows()]
        title = f"Sizes of the effects on {attrs['output_name']}"
        notes = ["corrected: less the mean error of the replicates."] if len(heads) > 1 else []
        intervals = [str(name) for name in results.data_vars if str(name).endswith("_ci")]
        if intervals:
            facts = results[intervals[0]].attrs
            notes.append(f"Intervals: {facts['ci_prob']:.3g}, {facts['method']}.")
    smry = Summary()
    smry.tables = [SimpleTable(rows, heads, stubs, title, txt_fmt=fmt_params)]
    notes.insert(0, f"Bins: {attrs['bin_rule']}({attrs['bin_parameters']}).")
    smry.add_extra_txt(["Notes:", *(f"[{i}] {note}" for i, note in enumerate(notes, start=1))])
    return smry


def _header(effect: xr.Dataset, title: str, body: SimpleTable) -> SimpleTable:
    """Facts above the table, as wide as the table."""
    attrs = effect.attrs
    if "region_rule" in effect.coords:
        title = f"{title}, where {effect['region_rule'].values}"
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Local effects:", attrs["local_effect_method"]],
        ["Weights:", attrs["weight_kind"], "Curve centred at:", attrs["centering"]],
    ]
    width = len(body.as_text().partition("\n")[0]) - 3 * len(COLUMN_SEPARATOR)
    form = fmt_2cols | {
        "data_fmts": ["%s"],
        "data_aligns": "lrlr",
        "colsep": COLUMN_SEPARATOR,
        "colwidths": [width // 4, width // 4, width // 4, width - 3 * (width // 4)],
    }
    return SimpleTable(cells, title=title, txt_fmt=form)


def _feature_table(
    effect: xr.Dataset, bounds: list[str], level: float
) -> tuple[SimpleTable, list[str]]:
    table = glance(effect, level=level)
    heads = ["bins", "avg effect", "std err", "t", "P>|t|", *bounds, "heterog.", "H", "curve range"]
    rows = []
    for _, line in table.iterrows():
        if line["kind"] == "constant":
            rows.append(["0", "constant"] + [""] * (len(heads) - 2))
            continue
        rows.append(
            [
                str(line["n_bins"]),
                *_wald_cells(line),
                _number(line["heterogeneity"]),
                _number(line["heterogeneity_output"]),
                _number(line["curve_max"] - line["curve_min"]),
            ]
        )
    notes = [
        "avg effect: mean of the local effects over all rows. heterog.: root mean square of the "
        "standard deviations of local effects in the bins.",
        "H: heterogeneity times the standard deviation of the feature, in units of the output, "
        "comparable between features.",
        _source_note(effect),
    ]
    body = SimpleTable(rows, heads, table["term"].tolist(), txt_fmt=fmt_params)
    return body, notes


def _bin_table(
    effect: xr.Dataset, name: str, bounds: list[str], level: float
) -> tuple[SimpleTable, list[str]]:
    table = tidy(effect.sel(feature=[name]), level=level)
    heads = ["rows", "effect", "std err", "t", "P>|t|", *bounds, "heterog.", "std err"]
    numbers = ["heterogeneity", "heterogeneity_se"]
    notes = [
        "effect: mean of the local effects of the rows in the bin; heterog.: their standard "
        "deviation.",
        _source_note(effect),
    ]
    if "slope" in table and table["slope"].any():
        heads += ["slope", "std err"]
        numbers += ["slope", "slope_se"]
        notes[0] += (
            " Where there is a slope, effect: that in the middle of the bin; heterog.: the "
            "standard deviation about the line."
        )
    rows = [
        [str(line["n_obs"]), *_wald_cells(line), *(_number(line[name]) for name in numbers)]
        for _, line in table.iterrows()
    ]
    if not rows:
        rows, notes = [["constant"] + [""] * (len(heads) - 1)], ["The feature does not vary."]
    return SimpleTable(rows, heads, _labels(one_feature(effect, name)), txt_fmt=fmt_params), notes


def _source_note(effect: xr.Dataset) -> str:
    source = str(effect["effect_se"].attrs.get("source", "rows"))
    note = f"Standard errors: sampling of {source}; the model and the bins are taken as given"
    if "honest_seed" in effect.attrs:
        note += f" (bins chosen on {effect.attrs['n_rows_edges']} other rows)"
    elif effect.attrs["bin_rule"] in SEARCHED:
        note += " (bins chosen on these rows make them somewhat too small)"
    return f"{note}. Intervals: pointwise, Student's t."


def _interval_notes(effect: xr.Dataset) -> list[str]:
    """What each interval and band in the data is of, by which method, at which level."""
    notes = []
    for name in effect.data_vars:
        if str(name).endswith(("_ci", "_band")):
            facts = effect[name].attrs
            notes.append(
                f"{name}: {facts['ci_prob']:.3g}, {facts['kind']}, {facts['method']}; target: "
                f"{facts['target']}; source of variance: {facts['source']}."
            )
    return notes


def _bias_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """What `check_unbiased` found: a line a feature, or a line a bin."""
    title = "Bias of the heterogeneity"
    adjust = effect["bin_error_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "bin error: how far the effect moves inside a bin, which the variance of the local effects "
        "contains; within: their standard deviation without it, from differences of neighbouring "
        f"rows. P: von Neumann test of no bin error, adjusted ({adjust}).",
    ]
    if feature is None:
        heads = ["bins", "tested", "biased", "> std err", "share", "within", "smallest P"]
        lines = []
        for name in feature_names(effect):
            row = one_feature(effect, name)
            verdict, share = row["verdict"].values, row["weight_share"].values
            biased = ~np.isin(verdict, [FINE, TOO_FEW])
            within = row["heterogeneity_within"].values
            known = np.isfinite(within)
            pvalue = row["bin_error_pvalue_adjusted"].values
            lines.append(
                [
                    str(len(verdict)),
                    str(int(np.isfinite(pvalue).sum())),
                    str(int(biased.sum())),
                    str(int((verdict == LARGE).sum())),
                    _percent(float(row["bin_error_share_axis"])),
                    _number(np.sqrt(np.sum((share * within**2)[known]) / share[known].sum()))
                    if known.any()
                    else "",
                    _pvalue(np.nanmin(pvalue)) if np.isfinite(pvalue).any() else "",
                ]
            )
        notes.append(
            "biased: bins where P is below "
            f"{effect['verdict'].attrs['significance']:g}; > std err: where the bias also exceeds "
            "the heterogeneity's standard error; share: of the variance along the axis that is "
            "bin error."
        )
        return SimpleTable(lines, heads, feature_names(effect), title, txt_fmt=fmt_params), notes
    heads = ["sigma2*", "within", "bin error", "std err", "share", "RVN", "P", "rank P"]
    heads += ["crowding", "std err", "verdict"]
    row = one_feature(effect, feature)
    lines = [
        [
            _number(float(line["sigma2_star"])),
            _number(float(line["heterogeneity_within"])),
            _number(float(line["bin_error"])),
            _number(float(line["bin_error_se"])),
            _percent(float(line["bin_error_share"])),
            _number(float(line["von_neumann_ratio"])),
            _pvalue(float(line["bin_error_pvalue_adjusted"])),
            _pvalue(float(line["rank_pvalue_adjusted"])),
            _number(float(line["density_bias"])),
            _number(float(line["density_bias_se"])),
            str(line["verdict"].values),
        ]
        for line in (row.isel(bin=k) for k in range(row.sizes["bin"]))
    ]
    notes.append(
        "sigma2*: variance of the local effects; crowding: bias of the effect by rows that crowd "
        f"to one side of the bin. Bins of fewer than {TESTED_ROWS} rows are not tested."
    )
    return SimpleTable(lines, heads, _labels(row), title, txt_fmt=fmt_params), notes


def _jump_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """What `jump_check` found: a line a feature, or a line a bin."""
    title = "What derivatives miss"
    adjust = effect["jump_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "jump: mean change of the output across a bin that local effects miss; spread: their "
        f"standard deviation between rows. P: adjusted ({adjust}). Where P is small, take narrower "
        'bins or local_effects(..., method="finite_difference").'
    ]
    heads = ["jump", "std err", "spread", "P"]
    values = ("jump", "jump_se", "jump_spread")
    if feature is not None:
        row = one_feature(effect, feature)
        lines = [
            [
                *(_number(float(row[name][k])) for name in values),
                _pvalue(float(row["jump_pvalue_adjusted"][k])),
            ]
            for k in range(row.sizes["bin"])
        ]
        return SimpleTable(lines, heads, _labels(row), title, txt_fmt=fmt_params), notes
    lines = []
    for name in feature_names(effect):
        row = one_feature(effect, name)
        pvalue = row["jump_pvalue_adjusted"].values
        if not np.isfinite(pvalue).any():
            lines.append([str(len(pvalue)), "", *[""] * len(heads)])
            continue
        k = int(np.nanargmin(pvalue))
        lines.append(
            [
                str(len(pvalue)),
                str(int((pvalue < SIGNIFICANCE).sum())),
                *(_number(float(row[value][k])) for value in values),
                _pvalue(pvalue[k]),
            ]
        )
    notes.append("The line of a feature is that of its bin with the smallest P.")
    return (
        SimpleTable(
            lines, ["bins", "missed", *heads], feature_names(effect), title, txt_fmt=fmt_params
        ),
        notes,
    )


def _warnings(effect: xr.Dataset) -> list[str]:
    """What a reader must not miss: heterogeneity biased by more than its standard error."""
    if "debiased" in effect.attrs:
        return ["heterog. is free of bin error: it is that within, from neighbouring rows."]
    if "verdict" in effect:
        large = (effect["verdict"] == LARGE).values
    elif "x_covariance" in effect:
        large = linear_bin_error(effect, significance=SIGNIFICANCE).values
    else:
        return []
    if not large.any():
        return []
    counts = zip(feature_names(effect), large.sum(axis=1), effect["n_bins"].values, strict=True)
    named = ", ".join(f"{name} ({count} of {bins} bins)" for name, count, bins in counts if count)
    return [
        f"Warning: the effect moves inside bins of {named}, and biases their heterogeneity upwards "
        f"by more than its standard error. Use narrower bins, or "
        f"debias(effect, check_unbiased(local, effect))."
    ]


def _labels(row: xr.Dataset) -> list[str]:
    """Stubs of the lines of bins, as in the table above them."""
    return interval_labels(row["edge_value"].values) or [str(row["feature"].values)]


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.0%}"


def _pvalue(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def interval_labels(edges: np.ndarray) -> list[str]:
    """Bins as text: three digits of the narrowest bin's width, and four of every edge."""
    if not len(edges):
        return []
    needed = 2 - int(np.floor(np.log10(np.diff(edges).min())))
    text = [_edge_text(float(edge), needed) for edge in edges]
    closing = [")"] * (len(edges) - 2) + ["]"]
    return [
        f"[{left}, {right}{bracket}"
        for left, right, bracket in zip(text[:-1], text[1:], closing, strict=True)
    ]


def _edge_text(edge: float, decimals: int) -> str:
    if edge == 0:
        return "0"
    magnitude = int(np.floor(np.log10(abs(edge))))
    decimals = max(decimals, 3 - magnitude)
    if not -5 < magnitude < 15:
        return f"{edge:.{min(magnitude + decimals + 1, MOST_DIGITS)}g}"
    return np.format_float_positional(edge, max(decimals, 0), trim="-")


def _wald_columns(
    estimate: np.ndarray, se: np.ndarray, level: float, degrees: np.ndarray
) -> dict[str, np.ndarray]:
    check_level(level)
    half = student(level, degrees) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = estimate / se
    return {
        "estimate": estimate,
        "std_error": se,
        "statistic": statistic,
        "p_value": 2 * stats.t.sf(np.abs(statistic), degrees),
        "conf_low": estimate - half,
        "conf_high": estimate + half,
    }


def _wald_cells(line: pd.Series) -> list[str]:
    return [
        _number(line["estimate"]),
        _number(line["std_error"]),
        _statistic(line["statistic"]),
        _pvalue(line["p_value"]),
        _number(line["conf_low"]),
        _number(line["conf_high"]),
    ]


def _number(value: float) -> str:
    """Four significant digits; nothing for what is not known."""
    return "" if np.isnan(value) else f"{value:.4g}"


def _statistic(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.2e}"


def _output(effect: xr.Dataset) -> str:
    return with_units(effect.attrs["output_name"], effect.attrs["output_units"])


def _with_std_error(effect: xr.Dataset) -> xr.Dataset:
    effect = check_effect(effect)
    return effect if "average_effect_se" in effect else std_error(effect)
