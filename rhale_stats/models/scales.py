"""Scales of predictions: a function of the response, with its derivative for the delta method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.outputs import log_odds

# Step of a derivative in the imaginary direction: there is no difference to lose digits in.
IMAGINARY = 1e-30
# Links of models of statsmodels that are not generalised linear models.
LINKS = {
    **dict.fromkeys(("OLS", "WLS", "GLS", "GLSAR", "MixedLM", "QuantReg"), "Identity"),
    **dict.fromkeys(
        ("Poisson", "NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson"), "Log"
    ),
    "Logit": "Logit",
    "Probit": "Probit",
}


class PredictionScale(NamedTuple):
    """What is said instead of the response, and its derivative by the response."""

    name: str
    value: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]

    @classmethod
    def from_option(cls, scale: Any, results: Any) -> PredictionScale | None:
        """Of results of statsmodels; None for the response."""
        if callable(scale):
            derivative = _derivative(scale)
            derivative(np.full(2, 0.5))  # refused before the model is called
            return cls(str(getattr(scale, "__name__", "function")), scale, derivative)
        if scale == "logit":
            return cls("logit", log_odds, lambda share: 1 / (share * (1 - share)))
        if scale == "link":
            link = _link_of(results)
            return cls("link", link, link.deriv)
        return None


def _derivative(function: Callable[[Any], Any]) -> Callable[[FloatArray], FloatArray]:
    """Exact to rounding."""

    def derivative(response: FloatArray) -> FloatArray:
        try:
            moved = np.asarray(function(response + IMAGINARY * 1j))
        except TypeError as error:
            raise TypeError(
                "scale must be a function of NumPy such as numpy.log, which takes complex numbers; "
                f"got {shown(function)}."
            ) from error
        return np.asarray(np.imag(moved) / IMAGINARY)

    return derivative


def _link_of(results: Any) -> Any:
    from statsmodels.genmod.families import links

    model = getattr(results, "model", None)
    family, kind = getattr(model, "family", None), type(model).__name__
    if family is not None:
        return family.link
    if kind not in LINKS:
        raise ValueError(
            f"scale='link' needs a model of statsmodels with a link; got {kind}. Pass the link as "
            f"a function of the response: scale=numpy.log."
        )
    return getattr(links, LINKS[kind])()
