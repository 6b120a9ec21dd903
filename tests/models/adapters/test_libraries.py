"""Which models are recognised, what is listed, and adapters that users make."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.models.adapters.libraries import LIBRARIES, adapter_of

X = np.random.default_rng(0).uniform(-1, 1, (200, 2))


def test_libraries_are_listed():
    table = rs.adapters()
    assert {"torch", "jax", "xgboost", "lightgbm", "catboost", "sklearn", "pygam"} <= set(
        table["library"]
    )
    assert table["installed"].dtype == bool
    assert table.loc[table["library"] == "sklearn", "installed"].all()


def test_every_maker_is_there():
    from importlib import import_module

    for one in LIBRARIES:
        module, _, name = one.maker.partition(":")
        assert callable(getattr(import_module(f"rhale_stats.models.adapters.{module}"), name))


def test_nothing_is_imported_to_recognise_a_model():
    code = (
        "import sys, numpy as np, rhale_stats as rs\n"
        "rs.local_effects(lambda X: X[:, 0], np.random.default_rng(0).normal(size=(50, 1)))\n"
        "print(*[one for one in ('torch', 'jax', 'xgboost', 'sklearn') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("model", [np.sin, "text", None, 3, object()])
def test_other_objects_have_no_adapter(model):
    assert adapter_of(model) is None


def squares(rows):
    return rows[:, 0] ** 2 + rows[:, 1]


def slopes(rows, columns):
    return np.column_stack([2 * rows[:, 0], np.ones(len(rows))])[:, columns]


def test_an_adapter_of_a_user():
    local = rs.local_effects(rs.Adapter(squares, slopes), X)
    assert set(local["local_effect_method"].values) == {"gradient"}
    assert_allclose(local["local_effect"][:, 0], 2 * X[:, 0])
    wrong = rs.Adapter(squares, lambda rows, columns: 2 * slopes(rows, columns))
    with pytest.warns(UserWarning, match="differs from its central differences"):
        near = rs.local_effects(wrong, X)
    assert set(near["local_effect_method"].values) == {"central_difference"}
    short = rs.Adapter(squares, lambda rows, columns: slopes(rows, columns)[:5])
    with pytest.raises(rs.ModelError, match=r"must have shape \(200, 1, 2\)"):
        rs.local_effects(short, X)


def test_features_and_classes_of_an_adapter():
    table = pd.DataFrame(X, columns=["a", "b"])

    def chances(rows):
        p = 1 / (1 + np.exp(-rows["a"]))
        return np.column_stack([1 - p, p])

    model = rs.Adapter(chances, features=["a"], classes=["no", "yes"])
    local = rs.local_effects(model, table)
    assert list(local["feature"].values) == ["a"]
    assert local.attrs["output_label"] == "yes"
    with pytest.raises(TypeError, match="gradient must be a function"):
        rs.Adapter(chances, gradient=3)
