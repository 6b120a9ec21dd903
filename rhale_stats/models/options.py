"""Which output of a model is asked for, and how the rows of its table count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_choice
from rhale_stats.models.outputs import SCALES, OutputLabels
from rhale_stats.schema.validation import Options

WEIGHT_KINDS = ("precision", "frequency", "sampling")
MISSING = ("raise", "drop", "bin")


@dataclass(frozen=True, eq=False)
class ModelOptions(Options):
    """Which output of a model is taken, on which scale, and how the rows of ``X`` count.

    Parameters
    ----------
    output : label, or sequence of labels, optional
        Which of several outputs: of a classifier a class, else the name or number of a column. By
        default all of them, and the second of two classes. More than one are a dimension
        ``output``; the model is called once for all.
    scale : {"response", "logit", "decision", "link"} or callable, default "response"
        What the model answers, with classifiers the probability of a class; its log-odds; or the
        ``decision_function``, which also replaces probabilities where there are none. `averages`
        takes the link of the model, and functions of the response such as ``numpy.log``, too.
        Elsewhere pass a function as the model, or `Parametric` for its standard errors.
    weights : array_like of shape (n_rows,), optional
        Row weights, math [6]. Rows of weight zero count as absent. A Series goes by the index of
        ``X``.
    weight_kind : {"precision", "frequency", "sampling"}, default "precision"
        Survey and precision weights, or counts of repeated rows. "sampling" is "precision", with
        the linearised errors of a `SurveyDesign` in `averages`.
    missing : {"raise", "drop", "bin"}, optional
        Missing values of a feature: refused; these rows left out of the effect of this feature, and
        counted; or kept, to say what being missing does in them. The function describes what it
        does with "bin". In the rows of other features the model receives missing values as they
        are. By default `ale`, `explain` and `averages` drop them, and leave out altogether the rows
        for which the model gives no number because a value is missing; a warning says how many
        rows. Other functions refuse missing values.
    batch_rows : int, optional
        Number of rows that a call of the model has at most. By default 131,072, or fewer where
        these would be a table of more than 32 MiB. Results do not depend on it if the model
        answers row by row; `local_effects` and `ale` check that it does.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> model = lambda X: np.column_stack([X[:, 0], X[:, 0] * X[:, 1]])
    >>> options = rs.ModelOptions(output=1, weights=X[:, 1] + 1)
    >>> effect = rs.ale(model, X, options=options)
    >>> effect.identical(rs.ale(model, X, output=1, weights=X[:, 1] + 1))
    True
    """

    output: OutputLabels = None
    scale: Any = "response"
    weights: ArrayLike | None = None
    weight_kind: str = "precision"
    missing: str | None = None
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.scale):
            check_choice("scale", self.scale, (*SCALES, "link"))
        check_choice("weight_kind", self.weight_kind, WEIGHT_KINDS)
        if self.missing is not None:
            check_choice("missing", self.missing, MISSING)
