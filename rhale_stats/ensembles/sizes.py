"""Sizes of the effects of several models."""

from __future__ import annotations

from typing import Any

import xarray as xr

from rhale_stats.ensembles.labelled import TOTALS
from rhale_stats.ensembles.members import centre_of, check_ensemble, estimated, facts_of
from rhale_stats.ensembles.tables import with_intervals
from rhale_stats.inference.estimate import BOUNDS


def effect_sizes(ensemble: xr.Dataset, boot: object, y: object, level: float) -> xr.Dataset:
    """`effect_sizes`: the estimates that are one number a feature, with their intervals."""
    ensemble = check_ensemble(ensemble)
    for name, argument in (("boot", boot), ("y", y)):
        if argument is not None:
            raise ValueError(
                f"{name} must be left out for results of several models, whose members have sizes "
                f"of their own."
            )
    ensemble = with_intervals(ensemble, level)
    names = [name for name in estimated(ensemble) if name in TOTALS and name != "average_effect"]
    variables: dict[str, Any] = {}
    for name in names:
        facts = facts_of(ensemble, name)
        about = {"long_name": facts.long_name, "units": facts.units}
        variables[name] = ("feature", centre_of(ensemble, name), about)
        variables[f"{name}_ci"] = ensemble[f"{name}_ci"].variable
    attributes = ("output_name", "output_units", "bin_rule", "bin_parameters", "n_rows", "software")
    return xr.Dataset(
        variables,
        {
            "feature": ensemble["feature"].variable,
            "feature_kind": ensemble["feature_kind"].variable,
        },
        {
            "method": "effect sizes",
            **{name: ensemble.attrs[name] for name in attributes if name in ensemble.attrs},
        },
    ).assign_coords(BOUNDS)
