"""What an explanation calls to matter, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass

from rhale_stats.arguments.checks import check_flag, check_number, check_percentiles
from rhale_stats.arguments.words import shown
from rhale_stats.explanation.budget import seconds_of
from rhale_stats.schema.validation import Options


@dataclass(frozen=True)
class ExplainOptions(Options):
    """Threshold and time of `explain`, and what it says and keeps of the rows.

    Parameters
    ----------
    matters : float, default 0.05
        What is called to matter: a share of the standard deviation of the outcome, or of the
        predictions where no outcomes are given. A feature
        "matters" if the interval of its size lies above, "hardly" if it lies below, and otherwise
        one "cannot tell".
    outcome : {"auto", True, False}
        Whether to examine which effects are in the data and not in the model alone, by ten refits
        (`outcome_effects`). "auto": if ``y`` is given, the model can be fitted again, and the fits
        take at most 30 seconds by the time of the first.
    budget : str, float or None, default "60s"
        Time to keep to, as "30s", "2min" or seconds. What takes longer is made smaller: first the
        rows are thinned at random, then single curves and splits; the attribute ``cut`` of the
        result says what was left out. None is no bound.
    held_out : bool, optional
        Whether the rows were kept from the fit of the model; it is only printed.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows of a feature its average curve counts in sizes, ranges
        and shapes: a few distant rows decide nothing. The curve itself is complete.
    keep_local : bool, default False
        Keep the local effects, as the group "local".

    Raises
    ------
    TypeError, ValueError
        A value that cannot be used.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.ExplainOptions(budget="2min").matters
    0.05
    """

    matters: float = 0.05
    outcome: bool | str = "auto"
    budget: str | float | None = "60s"
    held_out: bool | None = None
    percentiles: tuple[float, float] = (1, 99)
    keep_local: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("matters", self.matters)
        if not 0 < self.matters < 1:
            raise ValueError(
                f"matters must lie in (0, 1): a share of the standard deviation of the "
                f"outcome; got {self.matters!r}."
            )
        text = isinstance(self.outcome, str) and self.outcome == "auto"
        if not text and not isinstance(self.outcome, bool):
            raise ValueError(f"outcome must be 'auto', True or False; got {shown(self.outcome)}.")
        object.__setattr__(self, "percentiles", check_percentiles(self.percentiles))
        seconds_of(self.budget)
        if self.held_out is not None:
            check_flag("held_out", self.held_out)
