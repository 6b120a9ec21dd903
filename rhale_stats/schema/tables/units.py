"""Words that all tables of variables share."""

from __future__ import annotations

from typing import TypeAlias

# Name -> (dims, long_name, units).
Table: TypeAlias = dict[str, tuple[tuple[str, ...], str, str]]
EFFECT_UNITS = "output units per feature unit"
EFFECT_SQUARE_UNITS = "(output units per feature unit)^2"
SLOPE_UNITS = "output units per feature unit^2"
OUTPUT_UNITS = "output units"
X_UNITS = "feature units"
IN_SPREAD_BINS = ("feature", "spread_bin")
# What of a standard error comes from the rows, and from the parameters of the model.
SE_PARTS = {"rows": "by the rows", "model": "by the parameters of the model"}
