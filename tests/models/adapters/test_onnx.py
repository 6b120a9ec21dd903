"""ONNX models answer as the models of scikit-learn that they were made from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rhale_stats as rs
from rhale_stats.models.adapters.libraries import adapter_of

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
from skl2onnx.common.data_types import (  # noqa: E402
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 2)), columns=["a", "b"])
Y = np.sin(X["a"]) + X["a"] * X["b"]


def session(model, inputs, **options):
    # A version of the format that older runtimes read, too.
    text = skl2onnx.convert_sklearn(model, initial_types=inputs, target_opset=18, **options)
    return onnxruntime.InferenceSession(
        text.SerializeToString(), providers=["CPUExecutionProvider"]
    )


@pytest.mark.thorough
def test_one_input_for_all_columns():
    network = MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=3000, random_state=0)
    network.fit(X.to_numpy(), Y)
    onnx = session(network, [("rows", DoubleTensorType([None, 2]))])
    expected = rs.local_effects(lambda rows: network.predict(rows.to_numpy()), X)
    found = rs.local_effects(onnx, X)
    np.testing.assert_allclose(found["local_effect"], expected["local_effect"], atol=1e-6)


@pytest.mark.parametrize("zipmap", [True, False])
def test_probabilities_of_classes(zipmap):
    three = np.digitize(Y, [-0.5, 0.5])
    model = LogisticRegression().fit(X.to_numpy(), three)
    onnx = session(
        model, [("rows", FloatTensorType([None, 2]))], options={id(model): {"zipmap": zipmap}}
    )
    found = adapter_of(onnx).predict(X)
    np.testing.assert_allclose(found, model.predict_proba(X.to_numpy()), atol=1e-6)
    assert adapter_of(onnx).features is None


def test_an_input_a_column_by_name_and_type():
    table = X.assign(ground=RNG.choice(["clay", "rock"], 300), n=RNG.integers(0, 9, 300))
    y = Y + (table["ground"] == "clay") + table["n"]
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b", "n"]), (OneHotEncoder(), ["ground"])
    )
    model = make_pipeline(columns, LinearRegression()).fit(table, y)
    onnx = session(
        model,
        [
            ("a", FloatTensorType([None, 1])),
            ("b", FloatTensorType([None, 1])),
            ("ground", StringTensorType([None, 1])),
            ("n", Int64TensorType([None, 1])),
        ],
    )
    found = adapter_of(onnx)
    assert found.features == ["a", "b", "ground", "n"]
    more = table.assign(more=1.0)[["n", "more", "ground", "b", "a"]]
    np.testing.assert_allclose(
        found.predict(more), model.predict(table), atol=1e-5
    )  # single precision
    with pytest.raises(ValueError, match="'ground' of 4 is not among 'a', 'b', 'n'"):
        found.predict(table.drop(columns="ground"))


def test_labels_alone_are_no_output():
    model = LogisticRegression().fit(X.to_numpy(), Y > 0)
    onnx = session(
        model, [("rows", FloatTensorType([None, 2]))], options={id(model): {"zipmap": False}}
    )

    class OnlyLabels:
        def get_inputs(self):
            return onnx.get_inputs()

        def get_outputs(self):
            return onnx.get_outputs()[:1]

    from rhale_stats.models.adapters.onnx import adapter

    with pytest.raises(TypeError, match=r"its outputs are tensor\(int64\). Export a classifier"):
        adapter(OnlyLabels())
