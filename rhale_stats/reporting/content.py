"""What a report shows of one feature and of all, as plain values: no tree, no HTML."""

from __future__ import annotations

from dataclasses import dataclass, field

from rhale_stats.arrays.moments import FloatArray

# Quantiles of single rows in `Windows`.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class PictureCurve:
    """A curve over points or levels, with the ends of its band or intervals; NaN is a gap."""

    x: FloatArray
    y: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class ReportSize:
    """One of the two sizes of a feature, with its interval and verdict."""

    value: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Group:
    """Rows of a region: the condition that parts them from those above, their number and curve.

    Of a feature with two levels ``difference`` is the second less the first.
    """

    condition: str
    n_rows: int
    curve: PictureCurve
    depth: int = 0
    is_leaf: bool = True
    rule: str = ""
    difference: ReportSize | None = None


@dataclass(frozen=True)
class Windows:
    """Changes of single rows along an axis: quantiles (window, quantile) and mean, by window."""

    left: FloatArray
    right: FloatArray
    quantiles: FloatArray
    mean: FloatArray
    # By how much the feature rises, with its units.
    step: str


@dataclass(frozen=True)
class Bars:
    """Numbers of rows by bin."""

    left: FloatArray
    right: FloatArray
    n: FloatArray


@dataclass(frozen=True)
class Stretch:
    """A part of an axis where the curve cannot be relied on, and why."""

    left: float
    right: float
    why: str


@dataclass(frozen=True)
class ReportFeature:
    """What is known of one feature."""

    name: str
    label: str
    units: str
    anchor: str
    headline: str
    average: ReportSize
    rows: ReportSize
    curve: PictureCurve
    # Of levels, in the order of the curve; empty for an axis.
    levels: tuple[str, ...] = ()
    ordered: bool = True
    counts: Bars | None = None
    windows: Windows | None = None
    stretches: tuple[Stretch, ...] = ()
    groups: tuple[Group, ...] = ()
    # Between the usual values, as text: the change of the average prediction and of the outcome,
    # whose verdict says whether it is in the data; and whether rows differ in the data.
    usual: str = ""
    change: ReportSize | None = None
    in_data: ReportSize | None = None
    differs_in_data: str = ""
    sentences: tuple[str, ...] = ()
    shape: str = ""
    split: str = ""
    warning: str = ""
    band: str = ""
    # Levels that too few rows have to be shown.
    left_out: int = 0
    # Of two levels: the second less the first, and quantiles of single rows.
    difference: tuple[ReportSize, FloatArray | None] | None = None
    # Means of the observed and predicted output by place: place_left, place_right, observed,
    # predicted.
    outcome: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Its name for people, and its units."""
        return f"{self.label} [{self.units}]" if self.units else self.label

    @property
    def leaves(self) -> tuple[Group, ...]:
        """The groups that no split divides."""
        return tuple(group for group in self.groups if group.is_leaf)


@dataclass(frozen=True)
class SplitPair:
    """Two columns that act together: the effect of one differs by the other."""

    feature: str
    by: str
    rule: str
    drop: float
    pvalue: float


@dataclass(frozen=True)
class Trust:
    """How the model does on the rows, if the outcome is known."""

    # Names, values and notes.
    scores: tuple[tuple[str, str, str], ...]
    sentences: tuple[str, ...] = ()
    calibration: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ReportContent:
    """All that a report says."""

    output: str
    units: str
    about: str
    n_rows: int
    level: float
    threshold: float
    threshold_share: float
    points: tuple[str, ...]
    # Those that move the predictions most come first.
    features: tuple[ReportFeature, ...]
    trust: Trust | None = None
    pairs: tuple[SplitPair, ...] = ()
    # How many were tried; None if none were.
    n_pairs: int | None = None
    limits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    software: str = ""
    # Whether effects on the outcome were estimated; what is called to matter is a share of this.
    examined: bool = False
    matters_of: str = "predictions"
    # Whether intervals of average curves hold the parameters of the model.
    parameters: bool = False

    @property
    def shown(self) -> str:
        """The output, and its units."""
        return f"{self.output} [{self.units}]" if self.units else self.output
