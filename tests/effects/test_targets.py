"""What errors are of, in words."""

import xarray as xr

from rhale_stats.effects.fit import source_of_errors, target_of


def test_targets_and_sources():
    """Of a standard error those that it names; else what the variable is, by rows."""
    effect = xr.Dataset(
        {
            "effect_se": ("bin", [1.0], {"target": "effect of a bin", "source": "parameters"}),
            "curve_se": ("edge", [1.0]),
        }
    )
    assert target_of(effect, "effect") == "effect of a bin"
    assert target_of(effect, "curve") == "curve"
    assert target_of(effect, "heterogeneity") == "standard deviation of local effects"
    assert source_of_errors(effect, "effect") == "parameters"
    assert source_of_errors(effect, "curve") == "rows"
