"""Trees of scikit-learn, xgboost, lightgbm and catboost as arrays of nodes.

Each library compares in its own precision and sends missing values and categories its own way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.adapter import numbers
from rhale_stats.models.trees import Answer, LeafTree, Trees


def trees_of(model: Any, method: str) -> Trees | None:
    """The trees of a model that answers by this method; None where they are not read."""
    library, name = type(model).__module__.partition(".")[0], type(model).__name__
    for of_library, stems, read in READERS:
        names = [stem + kind for stem in stems.split() for kind in ("", "Regressor", "Classifier")]
        if library == of_library and name in names:
            with suppress(Exception):  # a version of the library that keeps its trees elsewhere
                return read(model, method)
    return None


def _single(rows: Any) -> FloatArray:
    return numbers(rows, "trees").astype(np.float32).astype(np.float64)


def _softmax(sums: FloatArray) -> FloatArray:
    return np.asarray(softmax(sums, axis=-1))


def _with_opposite(answer: Answer) -> Answer:
    """Probabilities of both classes, from that of the second."""

    def both(sums: FloatArray) -> FloatArray:
        p = answer(sums)
        return np.concatenate([1 - p, p], axis=-1)

    return both


def _set_bits(words: Any) -> IntArray:
    """Numbers of the bits that are set in words of 32."""
    octets = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))


# --- scikit-learn ---------------------------------------------------------------------------------


def _of_sklearn(tree: Any, value: FloatArray, column: int = 0) -> LeafTree:
    left, right = tree.children_left.astype(np.intp), tree.children_right.astype(np.intp)
    missing_left = tree.missing_go_to_left.astype(bool)
    return LeafTree(tree.feature, tree.threshold, left, right, missing_left, value, column)


def _forest(model: Any, method: str) -> Trees | None:
    several = hasattr(model, "estimators_")
    trees = [estimator.tree_ for estimator in (model.estimators_ if several else [model])]
    of_classes = method == "predict_proba"
    if of_classes and trees[0].value.shape[1] > 1:
        return None  # answers are a list of tables
    values = [tree.value[:, 0] if of_classes else tree.value[:, :, 0] for tree in trees]
    return Trees(
        [_of_sklearn(tree, value) for tree, value in zip(trees, values, strict=True)],
        np.zeros(values[0].shape[1]),
        _single,
        (lambda sums: sums / len(trees)) if several else None,
    )


def _gradient_boosting(model: Any, method: str) -> Trees | None:
    if model.init_ != "zero" and not type(model.init_).__name__.startswith("Dummy"):
        return None  # it starts from another model
    trees = [
        _of_sklearn(estimator.tree_, model.learning_rate * estimator.tree_.value[:, :, 0], column)
        for stage in model.estimators_
        for column, estimator in enumerate(stage)
    ]
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]
    answer = model._loss.predict_proba if method == "predict_proba" else None
    return Trees(trees, start, _single, answer)


def _hist_gradient_boosting(model: Any, method: str) -> Trees:
    is_category = np.zeros(model.n_features_in_, dtype=bool)
    if model.is_categorical_ is not None:
        is_category = model.is_categorical_
    # The model puts categories first, and takes those that it does not know for missing.
    order = np.argsort(~is_category, kind="stable")
    bits, number_of = model._bin_mapper.make_known_categories_bitsets()

    def inputs(rows: Any) -> FloatArray:
        x = np.empty((len(rows), len(order)))
        x[:, order] = model._preprocess_X(rows, reset=False)
        for place, column in enumerate(order[: is_category.sum()]):
            is_level = np.isin(x[:, column], _set_bits(bits[number_of[place]]))
            x[~is_level, column] = np.nan
        return x

    def tree(predictor: Any, column: int) -> LeafTree:
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"] != 0
        codes = {
            node: (_set_bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]), True)
            for node in np.flatnonzero((nodes["is_categorical"] != 0) & ~is_leaf).tolist()
        }
        return LeafTree(
            np.where(is_leaf, -1, order[np.where(is_leaf, 0, nodes["feature_idx"])]),
            nodes["num_threshold"],
            nodes["left"].astype(np.intp),
            nodes["right"].astype(np.intp),
            nodes["missing_go_to_left"],
            nodes["value"][:, None],
            column,
            codes,
        )

    trees = [tree(p, column) for stage in model._predictors for column, p in enumerate(stage)]
    answer = model._loss.link.inverse if method == "predict" else None
    if method == "predict_proba":
        answer = model._loss.predict_proba
    return Trees(trees, model._baseline_prediction[0], inputs, answer)


# --- xgboost --------------------------------------------------------------------------------------

# Answers of an objective from sums, and sums from answers; None where they are the same.
LOGISTIC = expit, lambda p: np.log(p) - np.log1p(-p)
OBJECTIVES: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(("binary:logistic", "reg:logistic"), LOGISTIC),
    "binary:logitraw": (None, LOGISTIC[1]),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), (np.exp, np.log)),
    **dict.fromkeys(("reg:squarederror", "reg:absoluteerror"), (None, None)),
    "multi:softprob": (_softmax, None),
}


def _xgboost(model: Any, method: str) -> Trees | None:
    booster = model if method == "adapter" else model.get_booster()
    if not np.isnan(getattr(model, "missing", np.nan)):
        return None  # missing values are coded as a number
    document = json.loads(bytes(booster.save_raw("json")))["learner"]
    answer, start_of = OBJECTIVES[document["objective"]["name"]]
    facts, boosting = document["learner_model_param"], document["gradient_booster"]
    forest = boosting.get("gbtree", boosting)["model"]
    best, n_trees = booster.attr("best_iteration"), len(forest["trees"])
    if best is not None:
        n_trees = forest["iteration_indptr"][int(best) + 1]
    start = np.array(json.loads(facts["base_score"]), ndmin=1, dtype=np.float32).astype(np.float64)
    start = start if start_of is None else start_of(start)
    # Of dropout; from version 3.4 on beside the trees.
    factors = (boosting | forest).get("weight_drop") or np.ones(n_trees)

    def tree(nodes: dict[str, Any], factor: float, column: int) -> LeafTree:
        left = np.array(nodes["left_children"])
        values = np.array(nodes["split_conditions"], dtype=np.float32).astype(np.float64)
        categories = np.array(nodes["categories"], dtype=np.intp)
        sets = [nodes[f"categories_{name}"] for name in ("nodes", "segments", "sizes")]
        if int(nodes["tree_param"]["size_leaf_vector"]) > 1:
            raise ValueError("leaves hold several values")
        return LeafTree(
            np.where(left < 0, -1, nodes["split_indices"]),
            values,
            left,
            np.array(nodes["right_children"]),
            np.array(nodes["default_left"]),
            factor * values[:, None],
            column,
            {
                node: (categories[begin : begin + size], False)
                for node, begin, size in zip(*sets, strict=True)
            },
        )

    parts = zip(forest["trees"][:n_trees], factors, forest["tree_info"], strict=False)
    return Trees(
        [tree(*part) for part in parts],
        np.broadcast_to(start, max(int(facts["num_class"]), 1)),
        _single,
        _with_opposite(answer) if method == "predict_proba" and answer is expit else answer,
        booster.feature_names if method == "adapter" else None,
        strict=True,
    )


# --- lightgbm -------------------------------------------------------------------------------------

# Values up to this size are zeros.
ZERO_OF_LIGHTGBM = float(np.float32(1e-35))


def _lightgbm(model: Any, method: str) -> Trees | None:
    booster = model if method == "adapter" else model.booster_
    head, *parts = booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    facts = _facts(head)
    n_sums = int(facts["num_tree_per_iteration"])
    trees = [_of_lightgbm(_facts(part), number % n_sums) for number, part in enumerate(parts)]
    n_averaged = len(trees) // n_sums if "average_output" in facts else 1
    objective = "" if method == "decision_function" else facts.get("objective", "")
    link = _link_of_lightgbm(*objective.partition(" ")[::2])

    def answer(sums: FloatArray) -> FloatArray:
        return link(sums / n_averaged)

    def inputs(rows: Any) -> FloatArray:
        if booster.pandas_categorical:
            # Numbers of the categories in the fit; columns of categories have the same order.
            names, rows = rows.columns[rows.dtypes == "category"], rows.copy()
            for name, of_column in zip(names, booster.pandas_categorical, strict=True):
                codes = rows[name].cat.set_categories(list(of_column)).cat.codes
                rows[name] = codes.where(codes >= 0)
        x = numbers(rows, "lightgbm")
        return np.where(np.abs(x) <= ZERO_OF_LIGHTGBM, 0.0, x)

    by_name = method == "adapter" and not booster.feature_name()[0].startswith("Column_")
    return Trees(
        trees,
        np.zeros(n_sums),
        inputs,
        _with_opposite(answer) if method == "predict_proba" and n_sums == 1 else answer,
        booster.feature_name() if by_name else None,
    )


def _facts(text: str) -> dict[str, str]:
    """Lines "name=value", or a name alone."""
    return dict(line.partition("=")[::2] for line in text.splitlines())


def _of_lightgbm(facts: dict[str, str], column: int) -> LeafTree:
    """A tree whose leaves are numbered apart, as ~0, ~1, ...: here behind the other nodes."""

    def of_nodes(name: str, kind: Any = np.float64) -> NDArray[Any]:
        return np.array(facts.get(name, "").split(), dtype=kind)

    leaves, threshold = of_nodes("leaf_value"), of_nodes("threshold")
    decision, n_splits = of_nodes("decision_type", np.int64), len(leaves) - 1
    missing, is_category = decision >> 2 & 3, decision & 1 == 1
    if facts.get("is_linear", "0") != "0" or (missing == 1).any():
        raise ValueError("leaves are linear functions, or zeros are missing values")
    # Where no value was missing in the fit, a missing one is 0.
    missing_left = np.where(missing == 2, decision & 2, threshold >= 0) * ~is_category
    ends, words = of_nodes("cat_boundaries", np.int64), of_nodes("cat_threshold", np.uint32)
    codes = {
        node: (_set_bits(words[slice(*ends[int(threshold[node]) :][:2])]), True)
        for node in np.flatnonzero(is_category).tolist()
    }

    def with_leaves(of_splits: NDArray[Any], filler: int) -> NDArray[Any]:
        return np.append(of_splits, np.full(len(leaves), filler, of_splits.dtype))

    def children(name: str) -> IntArray:
        child = of_nodes(name, np.intp)
        return with_leaves(np.where(child < 0, n_splits + ~child, child), -1)

    return LeafTree(
        with_leaves(of_nodes("split_feature", np.intp), -1),
        with_leaves(threshold, 0),
        children("left_child"),
        children("right_child"),
        with_leaves(missing_left, 0),
        np.append(np.zeros(n_splits), leaves)[:, None],
        column,
        codes,
    )


def _link_of_lightgbm(objective: str, options: str) -> Answer:
    """From sums to answers."""
    factor = float(dict(o.partition(":")[::2] for o in options.split()).get("sigmoid", 1))
    if objective in ("binary", "multiclassova", "cross_entropy"):
        return lambda sums: expit(factor * sums)
    if objective in ("poisson", "gamma", "tweedie"):
        return lambda sums: np.exp(sums)
    if objective == "multiclass":
        return _softmax
    return lambda sums: np.sign(sums) * sums**2 if "sqrt" in options else sums


# --- catboost -------------------------------------------------------------------------------------


def _catboost(model: Any, method: str) -> Trees | None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
    factor, start = document["scale_and_bias"]
    columns = document["features_info"]["float_features"]
    answer: Answer | None = _softmax if len(start) > 1 else _with_opposite(expit)
    trees = [_oblivious(t, columns, factor, len(start)) for t in document["oblivious_trees"]]
    return Trees(trees, np.array(start), _single, answer if method == "predict_proba" else None)


def _oblivious(tree: dict[str, Any], columns: Sequence[Any], factor: float, width: int) -> LeafTree:
    """A tree with one question a level, as nodes level by level.

    The answers are the digits of the number of a leaf, that of the first level the last digit.
    """
    splits = tree["splits"] or []
    level = np.repeat(np.arange(len(splits) + 1), 1 << np.arange(len(splits) + 1))
    below = np.arange(len(level)) + (1 << level)
    inner = level < len(splits)
    questions = [(columns[s["float_feature_index"]], s["border"]) for s in splits]
    feature = [column["flat_feature_index"] for column, _ in questions]
    missing_left = [column["nan_value_treatment"] != "AsTrue" for column, _ in questions]
    value = np.zeros((len(level), width))
    value[~inner] = factor * np.reshape(tree["leaf_values"], (-1, width))
    return LeafTree(
        np.array([*feature, -1])[level],
        np.array([*(border for _, border in questions), 0.0])[level],
        np.where(inner, below, -1),
        np.where(inner, below + (1 << level), -1),
        np.array([*missing_left, True])[level],
        value,
    )


# Readers of classes by their library and name; classes that inherit may answer otherwise.
READERS: tuple[tuple[str, str, Callable[[Any, str], Trees | None]], ...] = (
    ("sklearn", "DecisionTree ExtraTree RandomForest ExtraTrees", _forest),
    ("sklearn", "GradientBoosting", _gradient_boosting),
    ("sklearn", "HistGradientBoosting", _hist_gradient_boosting),
    ("xgboost", "Booster XGB XGBRF", _xgboost),
    ("lightgbm", "Booster LGBM", _lightgbm),
    ("catboost", "CatBoost", _catboost),
)
