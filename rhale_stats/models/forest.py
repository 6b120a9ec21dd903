"""Trees of a fitted model, as the library shap reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.arrays.shapley import Tree, add_tree
from rhale_stats.parallel import ignoring, numpy_state_kept

# A leaf costs a row about as much as comparing it, in one tree, with so many background rows by the
# library, which goes down the tree for each of them.
LEAF_COST = 0.2
# Rows explained by the library in one call.
ROWS_TOGETHER = 256


class Forest(NamedTuple):
    """Trees whose sum is the output of a model, up to a constant."""

    explainer: Any
    trees: list[Tree]

    @classmethod
    def read(cls, model: Any, background: FloatArray) -> Forest | None:
        """Trees of scikit-learn, xgboost, lightgbm and catboost; None of what is no such model."""
        if not hasattr(model, "__dict__") or not hasattr(model, "predict"):
            return None
        import shap

        try:
            with ignoring(Warning), numpy_state_kept():
                explainer = shap.TreeExplainer(
                    model, background, feature_perturbation="interventional"
                )
            ensemble = explainer.model
            if np.any(np.asarray(getattr(ensemble, "threshold_types", 0)) > 0):
                return None  # splits of categories; leaves have -1
            limit = ensemble.tree_limit
            n_trees = len(ensemble.features)
            n_trees = n_trees if limit is None or limit < 0 else min(n_trees, int(limit))
            each = (
                ensemble.children_left,
                ensemble.children_right,
                ensemble.children_default,
                ensemble.features,
                ensemble.thresholds,
                ensemble.values,
            )
            trees = [Tree(*(array[number] for array in each)) for number in range(n_trees)]
        except Exception:  # the library refuses what it does not know in many ways
            return None
        return cls(explainer, trees)

    def _rows(self, rows: FloatArray) -> FloatArray:
        """As the trees compare them: many libraries hold single precision."""
        dtype = self.explainer.model.input_dtype
        return rows.astype(dtype).astype(np.float64)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Sum of the trees, (row, output)."""
        with ignoring(Warning):
            total = np.asarray(self.explainer.model.predict(rows), dtype=np.float64)
        return total.reshape(len(rows), -1)

    def values(self, rows: FloatArray, background: FloatArray, bar: tqdm[Any]) -> FloatArray:
        """Shapley values over the background, (row, column, output)."""
        shape = (*rows.shape, self.trees[0].value.shape[1])
        n_leaves = sum(int((tree.left < 0).sum()) for tree in self.trees)
        if LEAF_COST * n_leaves <= len(background) * len(self.trees):
            values = np.zeros(shape)
            rows, background = self._rows(rows), self._rows(background)
            for number, tree in enumerate(self.trees, 1):
                add_tree(values, tree, rows, background)
                bar.update(len(rows) * number // len(self.trees) - bar.n)
            return values
        parts = []
        for begin in range(0, len(rows), ROWS_TOGETHER):
            part = rows[begin : begin + ROWS_TOGETHER]
            with ignoring(Warning), numpy_state_kept():
                part_values = np.asarray(self.explainer.shap_values(part, check_additivity=False))
            parts.append(part_values.reshape(len(part), *shape[1:]))
            bar.update(len(part))
        return np.concatenate(parts)
