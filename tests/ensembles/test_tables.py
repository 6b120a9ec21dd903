"""Tables of several models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from tests.ensembles.made import REFITS, ensemble

CURVES = np.random.default_rng(4).standard_normal((41, 5))


def test_tidy_has_a_line_a_point():
    made = rs.confint(ensemble(CURVES, se_rows=0.3), level=0.9)
    table = rs.tidy(made, level=0.9)
    assert_allclose(table["x"], np.linspace(0, 1, 5))
    assert_allclose(table["estimate"], CURVES.mean(axis=0))
    parts = table["std_error_model"] ** 2 + table["std_error_rows"] ** 2
    assert_allclose(table["std_error"] ** 2, parts)
    assert_allclose(table[["conf_low", "conf_high"]], made["curve_ci"].values[0])
    # Intervals of another level are made again, and those of this level are kept.
    other = rs.tidy(made, level=0.5)
    assert (other["conf_high"] < table["conf_high"]).all()
    kept = rs.tidy(rs.confint(ensemble(CURVES), level=0.9, method="hdi"), level=0.9)
    assert not np.allclose(kept["conf_low"], table["conf_low"])


def test_t_and_p_only_of_refits():
    table = rs.glance(ensemble(CURVES + 1, **REFITS))
    statistic = table["estimate"] / table["std_error"]
    assert_allclose(table["statistic"], statistic)
    assert_allclose(table["p_value"], 2 * stats.norm.sf(abs(statistic)))
    for source in ("draws", "models"):
        assert "p_value" not in rs.glance(ensemble(CURVES, source=source))


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"source": "draws"}, ["Draws of the parameters", "credible intervals", "rows as given"]),
        ({"source": "models"}, ["Several models", "no confidence intervals"]),
        (REFITS, ["Refits (bootstrap)", "Uncertainty:", "refits", "P"]),
    ],
)
def test_summary_names_the_uncertainty(attrs, words):
    text = rs.summary(ensemble(CURVES, se_rows=0.3, **attrs)).as_text()
    assert all(word in text for word in words), text
    assert "model as given" not in text
    shown = str(rs.show(ensemble(CURVES, se_rows=0.3, **attrs)))
    assert "41" in shown.split()
    assert words[0] in shown
    assert "<table" in rs.show(ensemble(CURVES, **attrs))._repr_html_()


def test_values_between_points():
    made = ensemble(CURVES, CURVES**2)
    found = rs.predict(made, [0.125, 0.5, 2.0], "x")
    mean = CURVES.mean(axis=0)
    assert_allclose(found, [(mean[0] + mean[1]) / 2, mean[2], np.nan])
    effect = rs.predict(made, 0.25, "x", "effect")
    assert effect.item() == pytest.approx((CURVES**2).mean(axis=0)[1])


def test_sizes_are_those_of_the_members():
    made = ensemble(CURVES)
    sizes = rs.effect_sizes(made, level=0.8)
    own = CURVES.std(axis=1)
    assert sizes["importance"].item() == pytest.approx(own.mean())
    assert_allclose(sizes["importance_ci"].values[0], np.quantile(own, [0.1, 0.9]))
    text = rs.summary(sizes).as_text()
    assert "model as given" not in text
    assert "aled" not in text
    for name, given in (("boot", made), ("y", np.ones(3))):
        with pytest.raises(ValueError, match=f"{name} must be left out .* several models"):
            rs.effect_sizes(made, **{name: given})


def test_methods_and_trees(tmp_path):
    made = ensemble(CURVES).rhale.confint()
    assert "curve_ci" in made
    assert "Draws of the parameters" in repr(made.rhale)
    tree = rs.to_datatree(effect=made)
    assert tree["effect"].to_dataset().identical(made)
