"""Effects of several models: draws of a posterior, ensembles, any list of models (math [85])."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import DEFAULT_BINS, SEARCHING, describe
from rhale_stats.bins.rule import BinRule, Partition, check_rule
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.levels import level_ale
from rhale_stats.effects.rhale import CENTERINGS, quiet_rhale, warn_of_gaps
from rhale_stats.ensembles.given import MODELS, DrawOptions, Members, members_of
from rhale_stats.ensembles.labelled import MemberGrid, common_grid, labelled, on_grid
from rhale_stats.ensembles.variances import SPREAD
from rhale_stats.local.ale import ale_local_effects
from rhale_stats.local.cells import ALE_BINS
from rhale_stats.local.levels import DIFFERENCES, LABELS
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.forms import collected, n_rows_of
from rhale_stats.models.options import ModelOptions
from rhale_stats.parallel import in_processes, n_processes
from rhale_stats.profiles.pdp import pdp
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.levels import categorical_features
from rhale_stats.schema.padding import concat_features
from rhale_stats.schema.validation import validated

EFFECTS = ("rhale", "ale", "pdp")
HELD = "chosen on the mean of the local effects of all models, the same for all"
FIXED = "the same for all models"


@validated
def over_models(
    models: Any,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    draws: Any = None,
    method: str = "rhale",
    bins: BinRule | None = None,
    centering: str = "mean",
    n_jobs: int | None = 1,
    drawn: DrawOptions = DrawOptions(),
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Effects of several models on the same rows: posterior draws, an ensemble, any models.

    The spread of the effects between the models is how well the models determine the effect. It is
    kept apart from the spread between rows: ``heterogeneity`` stays that of the rows.

    Parameters
    ----------
    models : sequence or mapping of models, ensemble, or callable
        Fitted models, such as `local_effects` takes them, in a list or by name; an ensemble of
        scikit-learn that averages its ``estimators_`` (a forest, bagging, voting); or, with
        ``draws``, a function ``predict(draw, X)`` of one draw of the parameters and the rows.
    X : table, or array_like of shape (n_rows, n_columns)
        Rows at which all models are evaluated.
    draws : array_like, mapping, Dataset or DataTree, optional
        Draws of the parameters. An array is over (draw, ...), and the function gets one entry of
        it, of shape (...). A mapping of names to arrays, an xarray Dataset, or what ArviZ holds
        (its group "posterior"): the function gets a mapping of names to the values of one draw.
    method : {"rhale", "ale", "pdp"}, default "rhale"
        Effect of each model: `local_effects` and `rhale`, `ale`, or `pdp`.
    features : name, number, or sequence of them, optional
        As in `local_effects`, `ale` or `pdp`.
    bins : bin rule, optional
        As in `rhale` or `ale`. The bins are the same for all models. Rules that look at local
        effects choose the edges on the mean of the local effects of all models, which are those of
        the mean model. Not for "pdp".
    centering : {"mean", "start", "integral"}, default "mean"
        Zero of every curve, as in `rhale`.
    n_jobs : int or None, default 1
        Processes in which models are evaluated, as joblib counts them.
    drawn : DrawOptions, optional
        How draws are read and how many are used. Its fields can be given directly, as in
        ``max_draws=500``.
    options : ModelOptions, optional
        Output and scale of the models, and weights of the rows. Its fields can be given directly.
        Of several outputs choose one.
    progress : bool, default True
        Show a progress bar if it takes long.

    Returns
    -------
    Dataset
        Over (chain, draw, feature, grid): ``effect``, ``heterogeneity`` (not for "pdp") and
        ``curve`` of every model at ``grid_value``, and their standard errors by the rows with the
        model as given, ``effect_se_rows``, ``heterogeneity_se_rows`` and ``curve_se_rows``; over
        (chain, draw, feature): ``average_effect``, ``importance``, ``heterogeneity_index`` and
        ``heterogeneity_output``. The means over the models are the estimates, ``curve_estimate``
        and so on. Models that are not draws are one chain, with their names in ``member``. ArviZ
        reads the result. `std_error` divides the error into the part of the models and that of the
        rows; `confint` and `confband` give credible intervals and bands of draws.

    Raises
    ------
    TypeError
        ``models`` without ``draws`` where a function is given; draws that are no numbers.
    ValueError
        No models; several outputs; ensembles of estimators that are no models by themselves;
        ``bins`` with ``method="pdp"``.
    KeyError, ModelError
        As `local_effects`.

    Warns
    -----
    UserWarning, JumpWarning
        As `local_effects` and `rhale`.

    Notes
    -----
    How local effects are taken (derivatives, or slopes across cells where the output jumps) is
    decided by the first model, and is the same for all. Draws are thinned to ``max_draws`` at equal
    distances in every chain. With a rule that looks at local effects, those of all models are held
    in memory: 8 bytes per row, feature and model.

    Examples
    --------
    A Bayesian regression, with draws of its two coefficients:

    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> betas = rng.normal([2.0, 1.0], 0.1, (400, 2))
    >>> found = rs.over_models(lambda beta, X: X @ beta, X, draws=betas, max_draws=100)
    >>> found["average_effect"].std(("chain", "draw")).round(1).values
    array([0.1, 0.1])

    Models by name:

    >>> models = {"line": lambda X: X[:, 0], "bend": lambda X: X[:, 0] ** 2}
    >>> rs.over_models(models, X, features=0)["member"].values
    array(['line', 'bend'], dtype='<U4')
    """
    check_choice("method", method, EFFECTS)
    check_choice("centering", centering, CENTERINGS)
    rule = _rule(method, bins)
    X = collected(X)
    members = members_of(models, draws, drawn, n_rows_of(X))
    request = _DrawRequest(X, method, features, rule, centering, drawn.n_grid, options)
    with progress_bar(members.n, "models", "model", progress=progress) as bar:
        estimates = request.effects(members, n_jobs, bar.update)
    return _labelled(estimates, members, request)


def _rule(method: str, bins: BinRule | None) -> BinRule | None:
    """The rule for bins; None for a profile."""
    if bins is None:
        return {"rhale": DEFAULT_BINS, "ale": ALE_BINS}.get(method)
    if method == "pdp":
        raise ValueError(
            "bins must be None for method='pdp', which has a grid and no bins; take n_grid=, or "
            "method='rhale'."
        )
    check_rule(bins)
    return bins


class _MemberEstimates(NamedTuple):
    """Estimates of all members on one grid, and the effect of the first."""

    members: list[dict[str, FloatArray]]
    grid: MemberGrid
    first: xr.Dataset


class _DrawRequest(NamedTuple):
    """What a user asked of every model."""

    X: Any
    method: str
    features: Any
    rule: BinRule | None
    centering: str
    n_grid: int
    options: ModelOptions

    @property
    def searches(self) -> bool:
        """Whether bins depend on the local effects, so that all are needed before any bin."""
        return isinstance(self.rule, SEARCHING)

    def effects(
        self, members: Members, n_jobs: int | None, done: Callable[[int], object]
    ) -> _MemberEstimates:
        """The effects of all members, on one grid."""
        first, *others = members.portions
        begun = self._parts(first)
        how = _same_method(begun[0]) if self.method == "rhale" else None
        done(members.sizes[0])
        processes = n_processes(n_jobs, most=max(len(others), 1))

        def told(parts: Sequence[object]) -> None:
            done(len(parts))

        if self.searches:
            rest = in_processes(partial(self._parts, how=how), others, processes, told)
            locals_ = [local for parts in (begun, *rest) for local in parts]
            partitions: dict[str, Partition] = {}
            self._effect(_mean_of(locals_), partitions)
            effect = self._effect(locals_[0], partitions)
            grid = self._grid(effect)
            evaluated = partial(self._held, grid=grid, partitions=partitions)
            values = in_processes(evaluated, locals_[1:], processes)
            return _MemberEstimates([on_grid(effect, grid), *values], grid, effect)
        effects = [self._effect(local) for local in begun]
        grid = self._grid(effects[0])
        values = [on_grid(member_effect, grid) for member_effect in effects]
        rest_on = in_processes(partial(self._on_grid, grid=grid, how=how), others, processes, told)
        return _MemberEstimates(
            [*values, *(member_values for part in rest_on for member_values in part)],
            grid,
            effects[0],
        )

    def _grid(self, effect: xr.Dataset) -> MemberGrid:
        return common_grid([effect], self.n_grid, "models")

    def _held(
        self, local: xr.Dataset, *, grid: MemberGrid, partitions: dict[str, Partition]
    ) -> dict[str, FloatArray]:
        return on_grid(self._effect(local, partitions), grid)

    def _on_grid(
        self, model: Any, *, grid: MemberGrid, how: Mapping[str, str] | None
    ) -> list[dict[str, FloatArray]]:
        return [on_grid(self._effect(local), grid) for local in self._parts(model, how=how)]

    def _parts(self, model: Any, *, how: Mapping[str, str] | None = None) -> list[xr.Dataset]:
        """Local effects, or the profile, of every member of a portion."""
        alike: dict[str, Any] = {"options": self.options, "progress": False}
        if self.method == "pdp":
            result = pdp(
                model,
                self.X,
                features=self.features,
                centering=self.centering,
                n_grid=self.n_grid,
                **alike,
            )
        elif self.method == "ale":
            result = ale_local_effects(
                model, self.X, bins=self.rule, features=self.features, **alike
            )
        elif how is None:
            result = local_effects(model, self.X, features=self.features, **alike)
        else:
            result = _by_method(model, self.X, how, alike)
        return _each_output(result, model)

    def _effect(
        self, local: xr.Dataset, partitions: dict[str, Partition] | None = None
    ) -> xr.Dataset:
        """The effect of one member with standard errors, in the bins that are held."""
        if self.method == "pdp":
            return local
        levels = categorical_features(local)
        numbers = [name for name in feature_names(local) if name not in levels]
        parts = []
        if numbers:
            numeric = local.sel(feature=numbers).drop_vars([*DIFFERENCES, *LABELS], errors="ignore")
            numeric = quiet_rhale(numeric, self.rule, centering=self.centering, cache=partitions)
            parts.append(numeric)
        if levels:
            parts.append(level_ale(local.sel(feature=levels), centering=self.centering))
        effect = concat_features(parts, feature_names(local)).assign_attrs(method=self.method)
        return with_std_error(effect)


def _same_method(local: xr.Dataset) -> dict[str, str]:
    """How local effects of every feature were taken."""
    kinds = local["local_effect_method"].values
    return dict(zip(feature_names(local), map(str, kinds), strict=True))


def _by_method(model: Any, X: Any, how: Mapping[str, str], alike: Mapping[str, Any]) -> xr.Dataset:
    """Local effects of every feature, taken as those of the first model were."""
    groups: dict[str, list[str]] = {}
    for name, kind in how.items():
        groups.setdefault(kind, []).append(name)
    parts = [
        local_effects(model, X, features=names, method=kind, **alike)
        for kind, names in groups.items()
    ]
    return concat_features(parts, list(how))


def _each_output(result: xr.Dataset, model: Any) -> list[xr.Dataset]:
    """The members of a portion: outputs of a function of many draws, or one result."""
    many = isinstance(model, partial) and model.func.__name__ == "_answers_of_all"
    if not many:
        if OUTPUT in result.dims:
            raise ValueError(
                f"output must name one output here; the models have {result.sizes[OUTPUT]}: "
                f"{', '.join(map(str, result[OUTPUT].values[:5]))}. Pass output=."
            )
        return [result]
    if OUTPUT not in result.dims:
        return [result]
    labels = [name for name in result.coords if str(name).startswith(OUTPUT)]
    return [
        result.isel({OUTPUT: number}).drop_vars(labels) for number in range(result.sizes[OUTPUT])
    ]


def _mean_of(each: Sequence[xr.Dataset]) -> xr.Dataset:
    """Local effects of the mean model, which are means of those of all models."""
    first = each[0]
    mean = np.mean([local["local_effect"].values for local in each], axis=0)
    return first.assign(local_effect=first["local_effect"].copy(data=mean))


def _labelled(estimates: _MemberEstimates, members: Members, request: _DrawRequest) -> xr.Dataset:
    """All members with their means, over (chain, draw, ...)."""
    estimate = {
        name: np.mean([member[name] for member in estimates.members], axis=0)
        for name in estimates.members[0]
    }
    facts = {
        "method": "over_models",
        "source": members.source,
        "variance": SPREAD,
        "members": members.identity,
        "estimate": "mean over the members",
        "model": "draws of its parameters" if members.source != MODELS else "several models",
        "bins": HELD if request.searches else FIXED,
        "n_resamples": members.n,
    }
    if request.rule is not None:
        name, parameters = describe(request.rule)
        facts |= {"bin_rule": name, "bin_parameters": parameters}
        warn_of_gaps(estimates.first)
    out = labelled(
        estimates.members, estimates.grid, estimates.first, estimate, members.chains, facts
    )
    if members.names:
        out = out.assign_coords(
            member=("draw", np.array(members.names), {"long_name": "name of the model"})
        )
    return out
