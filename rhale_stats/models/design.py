"""What a design without full rank leaves open: contrasts that are not estimable, empty cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from itertools import combinations
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments.words import listed, warn
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.adapters import statsmodels
from rhale_stats.models.versions import Along

# A gradient is not estimable where this share of its length is outside the row space.
OUTSIDE = 1e-6
# Names that a message lists.
LISTED = 5


class Design(NamedTuple):
    """The null space of the design of a fit, (direction, column), where its rank is not full.

    Columns are divided by ``scale``, their root mean squares: rank does not depend on units.
    """

    null: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, results: Any) -> Design | None:
        """Of results of statsmodels; None where the rank is full, or the design is not known."""
        model = getattr(getattr(results, "_results", results), "model", None)
        if np.ndim(getattr(model, "exog", None)) != 2 or hasattr(model, "exog_infl"):
            return None
        if model not in _KNOWN:
            exog = np.asarray(getattr(model, "wexog", model.exog), dtype=np.float64)
            scale = np.sqrt(np.mean(exog**2, axis=0))
            scale[~(scale > 0)] = 1.0
            right = np.linalg.qr(exog / scale, mode="r")
            values, right = np.linalg.svd(np.pad(right, ((0, len(scale) - len(right)), (0, 0))))[1:]
            free = values <= values.max(initial=0.0) * max(exog.shape) * np.finfo(float).eps
            _KNOWN[model] = cls(right[free], scale) if free.any() else None
        return _KNOWN[model]

    def leaves(self, scaled: FloatArray) -> NDArray[np.bool_]:
        """Which gradients by coefficients, (..., column) over ``scale``, leave the row space."""
        outside = np.linalg.norm(scaled @ self.null.T, axis=-1)
        return np.asarray(outside > OUTSIDE * np.linalg.norm(scaled, axis=-1))

    def inside(self, n_params: int, *, several: bool) -> FloatArray:
        """Projection of parameters of the scaled design on its row space, of ``several`` outputs.

        Parameters beyond the columns of the design stay as they are.
        """
        n, out = len(self.scale), np.eye(n_params)
        for at in range(0, n_params if several else 1, n):
            out[at : at + n, at : at + n] -= self.null.T @ self.null
        return out

    def reason(self, results: Any, rows: Any) -> str:
        """Why predictions of some ``rows`` are not estimable; empty where all of them are."""
        inner = copy(getattr(results, "_results", results))
        names, inner.model = inner.model.exog_names, _Rows(inner.model, self.null)
        away = self.leaves(np.asarray(inner.predict(rows), dtype=np.float64) / self.scale)
        frame, known = getattr(inner.model.data, "frame", None), statsmodels.columns(results)
        if not away.any():
            return ""
        if known is not None and isinstance(frame, pd.DataFrame):
            factors = [
                name
                for name in known.names
                if name in frame
                and (name in known.levels or not pd.api.types.is_numeric_dtype(frame[name]))
            ]
            words = [set(re.findall(r"\w+", name)) for name in names]
            for some in (one for n in range(1, 5) for one in combinations(factors, n)):
                together = any(set(re.findall(r"\w+", " ".join(some))) <= one for one in words)
                cells = together and _absent(frame[list(some)], rows.loc[away, list(some)])
                if cells:
                    more = f", and {len(cells) - LISTED} more" * (len(cells) > LISTED)
                    return f"no rows with {'; '.join(cells[:LISTED])}{more}"
        dependent = np.asarray(names)[np.abs(self.null).max(axis=0) > OUTSIDE]
        return f"columns of the design are linearly dependent: {listed(dependent.tolist(), LISTED)}"

    def watched(
        self, results: Any, predict: Callable[..., Any], reasons: set[str]
    ) -> Callable[..., Any]:
        """``predict`` that warns once of rows that are not estimable, and notes all `reasons`."""

        def of_rows(rows: Any, **offset: Any) -> Any:
            reason = self.reason(results, rows)
            if reason and not reasons:
                warn(
                    f"Not estimable: {reason}. Rows are moved there, and the fit does not "
                    f"determine their predictions. Leave out the interaction, or these rows."
                )
            reasons.update([reason] * bool(reason))
            return predict(rows, **offset)

        return of_rows


_KNOWN: WeakKeyDictionary[Any, Design | None] = WeakKeyDictionary()


class _Rows(Along):
    """A model of statsmodels whose predictions are rows of its design."""

    def predict(self, _params: Any, exog: Any = None, *_args: Any, **_kwargs: Any) -> FloatArray:
        """The rows themselves, (row, column)."""
        return np.asarray(exog, dtype=np.float64)


def _absent(fit: pd.DataFrame, asked: pd.DataFrame) -> list[str]:
    """Cells of rows that the fit has not, in words."""
    own, other = (
        dict.fromkeys(one.astype(object).itertuples(index=False, name=None)) for one in (fit, asked)
    )
    return [
        " and ".join(f"{name} = {level!r}" for name, level in zip(fit.columns, cell, strict=True))
        for cell in other
        if cell not in own
    ]
