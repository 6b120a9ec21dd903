"""What the variables of an explanation are: long names and units."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from rhale_stats.schema.variables import OUTPUT_UNITS, X_UNITS

# Of all groups that `explain` makes itself: name -> (long name, units); text has no units.
VARIABLES: Mapping[str, tuple[str, str]] = {
    "importance": (
        "standard deviation of the average curve over the rows, without noise",
        OUTPUT_UNITS,
    ),
    "row_spread": ("standard deviation between the rows' own curves", OUTPUT_UNITS),
    "movement": ("root of importance² + row_spread²", OUTPUT_UNITS),
    "matters": ("whether the average curve moves by more than delta", ""),
    "rows_differ": ("whether the rows' curves differ by more than delta", ""),
    "range": ("largest difference of two values of the average curve", OUTPUT_UNITS),
    "lowest_at": ("where the average curve is lowest", ""),
    "highest_at": ("where the average curve is highest", ""),
    "shape": ("shape of the average curve", ""),
    "turns": ("where the shape turns", X_UNITS),
    "bias_share": ("share of the variance in bins that is bin error", "1"),
    "split_tried": ("whether a split was looked for", ""),
    "split_by": ("column of the first split of the rows", ""),
    "split_rule": ("first split of the rows", ""),
    "split_drop": ("drop of the variance of the local effects by the split", "1"),
    "split_pvalue": ("permutation p-value, times the number of features tested", "1"),
    "apart": (
        "how much more the output changes in the first side of the split than in the other",
        OUTPUT_UNITS,
    ),
    "apart_at": ("the two values of the feature between which it changes", ""),
    "usual_from": ("value below which 10 % of the rows are, or a level", ""),
    "usual_to": ("value below which 90 % of the rows are, or the other level", ""),
    "usual_change": ("change of the average prediction between the usual values", OUTPUT_UNITS),
    "in_data": ("whether there is an effect on the outcome", ""),
    "in_data_ci": ("interval: change of the outcome between the usual values", OUTPUT_UNITS),
    "in_data_change": ("change of the outcome between the usual values", OUTPUT_UNITS),
    "in_data_p": ("p-value of no effect on the outcome", "1"),
    "differs_in_data": ("whether new rows confirm that the effect differs between rows", ""),
    "unreliable": ("where the curve is not known", ""),
    "exception": ("where a feature that hardly matters does", ""),
    "fit_differs": ("where the model is off most, by more than delta", ""),
    "fit_bias": ("mean of observed less predicted there", OUTPUT_UNITS),
    "fit_bias_ci": ("interval: mean of observed less predicted there", OUTPUT_UNITS),
    "permutation_importance": ("increase of the mean loss if the column is permuted", ""),
    "window_left": ("left end of the window", X_UNITS),
    "window_right": ("right end of the window", X_UNITS),
    "n_obs": ("number of rows", "rows"),
    "change": ("change of the output of single rows if x rises by step", OUTPUT_UNITS),
    "change_mean": ("mean change of the output if x rises by step", OUTPUT_UNITS),
    "step": ("change of x that the changes are for", X_UNITS),
    "place_left": ("left end of the place", X_UNITS),
    "place_right": ("right end of the place", X_UNITS),
    "place_level": ("level", ""),
    "observed": ("mean of the outcomes", OUTPUT_UNITS),
    "predicted": ("mean of the predictions", OUTPUT_UNITS),
    "residual": ("mean of observed less predicted", OUTPUT_UNITS),
    "residual_pvalue_adjusted": ("p-value of no residual, Holm over all places", "1"),
    "left": ("smallest prediction", OUTPUT_UNITS),
    "right": ("largest prediction", OUTPUT_UNITS),
    "label": ("name for people", ""),
}
# By tenths of the predictions.
TENTH = "tenth_"


def described(dataset: xr.Dataset, **units: str) -> xr.Dataset:
    """With long names and units of all variables; ``units`` are those of some."""
    for key in dataset.variables:
        name = str(key)
        base = name.removesuffix("_ci").removeprefix(TENTH)
        if base not in VARIABLES:
            continue
        long_name, default_units = VARIABLES.get(name, VARIABLES[base])
        ends = "interval: " if name.endswith("_ci") and name not in VARIABLES else ""
        variable = dataset.variables[name]
        facts = variable.attrs
        facts["long_name"] = f"{ends}{long_name}"
        if variable.dtype.kind in "fi":
            facts["units"] = units.get(base, default_units)
    return dataset
