"""One table of the variables of all results: dimensions, long names, units.

A new variable is a line in one of the files of `schema/tables`; `variable` of
`schema/variables.py` makes it. What a result knows of itself only when it is made, such as the name
of a feature, is passed to that function.
"""

from __future__ import annotations

from collections.abc import Mapping

from rhale_stats.schema.kinds import (
    AVERAGES,
    EFFECT,
    H_STATISTICS,
    INTERACTIONS,
    PROFILE,
    REPLICATES,
    SURFACE,
    TREE,
    Kind,
)
from rhale_stats.schema.tables.averages import AVERAGE_VARIABLES
from rhale_stats.schema.tables.checks import CHECKS
from rhale_stats.schema.tables.errors import ERRORS
from rhale_stats.schema.tables.estimates import ESTIMATES
from rhale_stats.schema.tables.profiles import PROFILE_VARIABLES
from rhale_stats.schema.tables.surfaces import H_VARIABLES, SURFACE_VARIABLES
from rhale_stats.schema.tables.trees import INTERACTION_VARIABLES, NODE_VARIABLES
from rhale_stats.schema.tables.units import SE_PARTS, Table

EFFECT_VARIABLES: Table = ESTIMATES | ERRORS | CHECKS
# What of a standard error comes from the rows, and from the parameters of the model.
WITH_PARTS = ("effect", "slope", "heterogeneity", "curve", "cell_curve", "average_effect", "spread")
EFFECT_VARIABLES |= {
    f"{name}_{part}": (dims, f"{long_name}, {origin}", units)
    for name, (dims, long_name, units) in EFFECT_VARIABLES.items()
    for part, origin in SE_PARTS.items()
    if name.endswith("_se") and name.removesuffix("_se") in WITH_PARTS
}
# Intervals, bands, and sizes without their bias, of what they are made of.
for _name in (
    "effect", "slope", "heterogeneity", "spread", "curve", "cell_curve", "average_effect",
    "heterogeneity_index",
    "heterogeneity_output", "importance", "aled", "aler_min", "aler_max", "naled", "naler_min",
    "naler_max", "missing_effect",
):  # fmt: skip
    _dims, _long_name, _units = EFFECT_VARIABLES[_name]
    EFFECT_VARIABLES |= {
        f"{_name}_ci": ((*_dims, "ci_bound"), f"confidence interval of {_long_name}", _units),
        f"{_name}_band": ((*_dims, "ci_bound"), f"simultaneous band of {_long_name}", _units),
        f"{_name}_corrected": (_dims, f"{_long_name}, without the part of noise", _units),
        f"{_name}_acceleration": (_dims, f"acceleration of {_long_name}", "1"),
    }
# Sizes of columns without information, what they say of the sizes of features (math [70]).
for _name in (
    "importance", "aled", "aler_min", "aler_max", "naled", "naler_min", "naler_max",
    "heterogeneity_output", "heterogeneity_index",
):  # fmt: skip
    _dims, _long_name, _units = EFFECT_VARIABLES[_name]
    EFFECT_VARIABLES |= {
        f"{_name}_chance": (("replicate", *_dims), f"{_long_name}, by chance", _units),
        f"{_name}_chance_p_value": (_dims, f"p-value of {_long_name}, by refits", "1"),
        f"{_name}_threshold": (_dims, f"threshold of {_long_name}", _units),
    }
# Replicates with bins of their own; all others are of the variables of their effects.
REBIN_VARIABLES: Table = {
    "edge_frequency": (
        ("feature", "grid_cell"),
        "share of replicates with an edge in the cell",
        "1",
    )
}
VARIABLES: Mapping[Kind, Table] = {
    AVERAGES: AVERAGE_VARIABLES,
    EFFECT: EFFECT_VARIABLES,
    PROFILE: PROFILE_VARIABLES,
    SURFACE: SURFACE_VARIABLES,
    H_STATISTICS: H_VARIABLES,
    TREE: NODE_VARIABLES,
    INTERACTIONS: INTERACTION_VARIABLES,
    REPLICATES: EFFECT_VARIABLES | REBIN_VARIABLES,
}
