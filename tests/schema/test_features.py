"""What an answer says of a column does not depend on the labels of the columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

N, P = 120, 4
TEXTS = ["d", "a", "c", "b"]


def labels_of(rng):
    """Labels of all kinds: integers in any order, of NumPy, negative ones, mixed with text."""
    numbers = rng.choice([list(range(P)), list(range(-2, P + 6))][rng.integers(2)], P, False)
    kinds = [numbers.tolist(), list(numbers), [int(numbers[0]), "b", int(numbers[2]), "a"]]
    return kinds[rng.integers(3)]


def data(rng):
    values = rng.normal(size=(N, P))
    values[:, 2] = rng.integers(0, 3, N)
    return values


def model(rows):
    a = np.asarray(rows, dtype=np.float64)
    return 5 * a[:, 0] + a[:, 1] ** 2 + a[:, 0] * a[:, 2] + np.sin(a[:, 3])


def curves(effect):
    return effect["curve"].values


VERBS = {
    "local_effects": lambda X, k, _: rs.local_effects(model, X, features=k)["local_effect"].values,
    "ale": lambda X, k, _: curves(rs.ale(model, X, features=[k])),
    "categorical": lambda X, _, c: curves(rs.ale(model, X, features=[c], categorical=[c])),
    "order": lambda X, _, c: curves(
        rs.ale(model, X, features=c, categorical=c, order={c: [2, 0, 1]})
    ),
    "pdp": lambda X, k, _: curves(rs.pdp(model, X, features=[k])),
    "grid": lambda X, k, c: curves(rs.pdp(model, X, features=[c, k], grid={k: [-1, 0, 1]})),
    "ice": lambda X, k, _: rs.ice(model, X, features=k)["ice"].values,
    "m_plot": lambda X, k, _: curves(rs.m_plot(model, X, features=k)),
    "ale2": lambda X, k, c: rs.ale2(model, X, (k, c), bins=rs.QuantileBins(4))["surface"].values,
    "h_statistic": lambda X, k, c: (
        rs.h_statistic(model, X.iloc[:40], features=[k, c], pairwise=True)["h2_pairwise"].values
    ),
    "regions": lambda X, k, _: (
        rs.regions(rs.local_effects(model, X, features=[k]), k, conditioning=X)["best_drop"].values
    ),
    "regional_ale": lambda X, k, _: (
        rs.regional_ale(model, X, k, conditioning=X)["best_drop"].values
    ),
    "explain": lambda X, k, c: (
        rs.explain(model, X, features=[k, c], rng=0, progress=False)["effect"]["curve"].values
    ),
    "predict": lambda X, k, c: (
        rs.predict(rs.ale(model, X, features=[c, k]), [0.0, 0.5], feature=k).values
    ),
    "summary": lambda X, k, c: len(
        str(rs.summary(rs.rhale(rs.local_effects(model, X, features=[c, k])), feature=k)).split(
            "\n"
        )
    ),
    "plot": lambda X, k, c: (
        rs.plots.effect(rs.ale(model, X, features=[c, k]), k)[0].lines[0].get_xydata()
    ),
    "reference": lambda X, k, c: (
        rs.plots.effects(rs.ale(model, X, features=[c, k]), features=[k], reference={k: 0.5})[0]
        .lines[0]
        .get_xydata()
    ),
    "vcov": lambda X, k, c: (
        rs.vcov(rs.std_error(rs.rhale(rs.local_effects(model, X, features=[c, k]))), k).values
    ),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.filterwarnings("ignore")
def test_answers_do_not_depend_on_the_labels_of_columns(verb):
    rng = np.random.default_rng(sum(map(ord, verb)))
    for _ in range(1 if verb in ("explain", "plot", "reference") else 2):
        values, labels = data(rng), labels_of(rng)
        at = int(rng.choice([0, 1, 3]))
        asked = []
        for one in (TEXTS, labels):
            X = pd.DataFrame(values, columns=pd.Index(one, dtype=object))
            asked.append(VERBS[verb](X, one[at], one[2]))
        np.testing.assert_allclose(asked[0], asked[1], err_msg=f"{labels}, column {at}")


def test_an_integer_is_a_label_where_the_table_has_integers_and_else_a_position():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=[1, 2, 3, 4])

    def slope(table, feature):
        local = rs.local_effects(
            lambda rows: 5 * rows.iloc[:, 0] + rows.iloc[:, 1], table, features=[feature]
        )
        return float(local["local_effect"].mean())

    assert slope(X, 1) == pytest.approx(5)
    assert slope(X, 4) == 0
    assert slope(X.set_axis(list("dcba"), axis=1), 1) == pytest.approx(1)
    with pytest.raises(KeyError, match=r"features must be one of '1', '2', '3', '4'; got 0"):
        slope(X, 0)
    linear = rs.Parametric(lambda p, rows: p[0] * rows[1] + p[1] * rows[2], [5, 1], np.eye(2))
    assert rs.averages(linear, X, features=[1, 2])["average"].values[1:] == pytest.approx([5, 1])


def test_labels_that_are_tuples_go_by_their_text():
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(50, 2)),
        columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
    )
    local = rs.local_effects(lambda t: 3 * t.iloc[:, 1], X, features=["('a', 2)"])
    np.testing.assert_allclose(local["local_effect"], 3)
    with pytest.raises(TypeError, match="must be names or numbers of columns"):
        rs.local_effects(lambda t: 3 * t.iloc[:, 1], X, features=[("a", 2)])
