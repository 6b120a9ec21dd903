"""`study`: bias, spread and coverage of any estimator, over many samples with a known truth."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_callable, check_count
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.seeds import number_of
from rhale_stats.arguments.words import one_line, warn
from rhale_stats.files import Checkpoint, locked
from rhale_stats.parallel import in_processes, n_processes
from rhale_stats.schema.in_bins import in_bins
from rhale_stats.schema.kinds import EFFECT

TRUTH, ERROR, INTERVAL = "_truth", "_se", "_ci"
STATISTICS = ("bias", "std", "rmse", "mean_se", "coverage", "width")


def study(
    draw: Callable[[int, np.random.Generator], Any],
    estimate: Callable[[Any], Any],
    truth: Any,
    n: int | Sequence[int],
    replicates: int = 200,
    *,
    rng: np.random.Generator | int | None = None,
    n_jobs: int | None = -1,
    path: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Bias, spread and coverage of an estimator, by simulation with a known truth.

    Parameters
    ----------
    draw : callable
        ``(n, rng) -> data``: a sample of ``n`` rows, of any form.
    estimate : callable
        ``data -> result``: a number, a DataArray, a Dataset such as that of `confint`, or a mapping
        of names to numbers and DataArrays. Of an estimate ``a``, ``a_se`` is the standard error and
        ``a_ci`` the interval: a pair of numbers, or with the dimension ``ci_bound``.
    truth : number, DataArray, Dataset, mapping or callable
        The true values, by the same names, or a function ``(data, result) -> truth``, as in
        ``lambda data, effect: example.truth(effect)``. An estimate without a truth of its name and
        shape (a single number is of any shape) is left out.
    n : int or sequence of int
        Numbers of rows.
    replicates : int, default 200
        Samples of each size.
    rng : Generator, int or None
        Source of random numbers, or its seed, which the attribute ``seed`` keeps. A sample depends
        on the seed, its size and its number, not on processes or interruptions.
    n_jobs : int or None, default -1
        Processes, as joblib counts them; None for this process alone.
    path : path-like, optional
        netCDF file of the replicates, written now and then. If it exists, only the replicates that
        it does not hold are made, from its seed.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        For each estimate ``a`` with a truth: ``a`` over n, ``statistic`` and the dimensions of the
        result, and its Monte-Carlo standard error ``a_mcse``. Statistics are ``bias``; ``std``, the
        standard deviation of the errors; ``rmse``; ``mean_se``, the root mean square of ``a_se``;
        ``coverage`` (0 to 1) and mean ``width`` of ``a_ci``. The samples themselves are
        ``a_estimate`` and ``a_truth`` (n, replicate, ...). ``failure`` (n, replicate) says why a
        replicate failed; it is left out of the means.

    Raises
    ------
    TypeError
        ``draw`` or ``estimate`` is no function.
    ValueError
        All replicates failed; no estimate has a truth; results of different labels, as of bins that
        are searched in every sample; ``path`` holds another seed.
    RuntimeError
        Another process writes the file at ``path``.

    Warns
    -----
    UserWarning
        Some replicates failed.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> def draw(n, rng):
    ...     return rng.exponential(size=n)
    >>> def mean(x):
    ...     error = x.std(ddof=1) / len(x) ** 0.5
    ...     return {"mean": x.mean(), "mean_ci": (x.mean() - 2 * error, x.mean() + 2 * error)}
    >>> found = rs.simulate.study(draw, mean, {"mean": 1}, [20, 80], 400, rng=0, n_jobs=1)
    >>> found["mean"].sel(statistic=["bias", "coverage"]).values.round(2)
    array([[0.01, 0.9 ],
           [0.  , 0.95]])
    """
    check_callable("draw", draw)
    check_callable("estimate", estimate)
    sizes = [int(size) for size in np.atleast_1d(n)]
    for size in sizes:
        check_count("n", size, 1)
    check_count("replicates", replicates, 1)
    file = Checkpoint(None if path is None else Path(path))
    made: dict[tuple[int, int], xr.Dataset] = {}

    def replicate(item: tuple[int, int]) -> tuple[tuple[int, int], xr.Dataset]:
        stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=item))
        try:
            data = draw(item[0], stream)
            result = estimate(data)
            true = truth(data, result) if callable(truth) else truth
            return item, _with_truth(_labelled(result), _labelled(true))
        except Exception as error:
            return item, xr.Dataset({"failure": one_line(error)})

    def keep(answer: tuple[tuple[int, int], xr.Dataset]) -> None:
        made[answer[0]] = answer[1]
        bar.update(1)
        # The first may fail; what labels the results have is known from one that did not.
        if file.is_due and any(len(sample.data_vars) > 1 for sample in made.values()):
            file.save(_together(made, seed))

    with nullcontext() if file.path is None else locked(file.path):
        if file.path is not None and file.path.exists():
            before = xr.load_dataset(file.path)
            seed, stored = int(before.attrs["seed"]), before.drop_vars("done")
            for i, k in zip(*np.nonzero(before["done"].values), strict=True):
                item = int(before["n"][i]), int(before["replicate"][k])
                made[item] = stored.isel(n=i, replicate=k, drop=True)
            if isinstance(rng, int | np.integer) and rng != seed:
                raise ValueError(
                    f"rng must be the seed of {file.path}, {seed}; got {rng}. Leave it out, or "
                    f"choose another file."
                )
        else:
            seed = number_of(rng)
        missing = [(n, k) for n in sizes for k in range(replicates) if (n, k) not in made]
        processes = n_processes(n_jobs, most=max(len(missing), 1))
        with progress_bar(len(missing), "study", "sample", progress=progress) as bar:
            in_processes(replicate, missing, processes, keep)
        runs = _together(made, seed)
        if missing:
            file.save(runs)
    return _summarised(runs.sel(n=sizes, replicate=slice(replicates - 1)))


def _labelled(value: Any) -> xr.Dataset:
    """What an estimator returned, or a truth, as a Dataset."""
    if isinstance(value, xr.Dataset):
        # The edges of bins are those of every sample; the cells of a curve are not.
        return in_bins(value) if EFFECT.holds(value) else value
    if not isinstance(value, Mapping):
        value = {"estimate": value}
    pairs = {name: ("ci_bound", list(pair)) for name, pair in value.items() if np.ndim(pair) == 1}
    return xr.Dataset({**value, **{k: v for k, v in pairs.items() if k.endswith(INTERVAL)}})


def _with_truth(result: xr.Dataset, truth: xr.Dataset) -> xr.Dataset:
    """The estimates that have a truth, the truth, errors and intervals."""
    names = [
        str(name)
        for name in result
        if name in truth
        and truth[name].sizes in (result[name].sizes, {})
        and result[name].dtype.kind in "fiub"
    ]
    if not names:
        raise ValueError(
            f"truth must have the name and the shape of an estimate; got {_shapes(truth)} for "
            f"{_shapes(result)}."
        )
    out = {name: result[name].astype(float) for name in names}
    out |= {name + TRUTH: truth[name].astype(float) for name in names}
    out |= {
        name + suffix: result[name + suffix].astype(float)
        for name in names
        for suffix in (ERROR, INTERVAL)
        if name + suffix in result
    }
    return xr.Dataset(out).reset_coords(drop=True).assign(failure="")


def _shapes(values: xr.Dataset) -> str:
    return ", ".join(f"{name} {dict(values[name].sizes)}" for name in values)


def _together(made: dict[tuple[int, int], xr.Dataset], seed: int) -> xr.Dataset:
    """All replicates over n and replicate; NaN where none was made, or where it failed."""
    succeeded = [sample for sample in made.values() if not str(sample["failure"].values)]
    if not succeeded:
        reason = str(next(iter(made.values()))["failure"].values)
        raise ValueError(f"estimate must work on samples; all {len(made)} failed: {reason}")
    first = succeeded[0].drop_vars("failure")
    labels = _labels(succeeded[0])
    if any(_labels(sample) != labels for sample in succeeded):
        raise ValueError(
            "estimate must return the same labels for every sample, as with bins that are given: "
            "GivenBins([...])."
        )
    sizes = sorted({size for size, _ in made})
    numbers = range(1 + max(number for _, number in made))
    runs, shape = ("n", "replicate"), (len(sizes), len(numbers))
    arrays = {name: np.full((*shape, *first[name].shape), np.nan) for name in first}
    failure, done = np.full(shape, "", dtype=object), np.zeros(shape, dtype=bool)
    for (size, number), sample in made.items():
        place = sizes.index(size), number
        failure[place], done[place] = str(sample["failure"].values), True
        if not failure[place]:
            for name, array in arrays.items():
                array[place] = sample[name].values
    values = {name: ((*runs, *first[name].dims), array) for name, array in arrays.items()}
    about = {"failure": (runs, failure), "done": (runs, done)}
    coords = {**first.coords, "n": sizes, "replicate": list(numbers)}
    return xr.Dataset({**values, **about}, coords, {"seed": seed})


def _labels(result: xr.Dataset) -> tuple[dict[Any, Any], dict[Any, Any]]:
    coords = {name: coord.values.tolist() for name, coord in result.coords.items()}
    return coords, {name: result[name].sizes for name in result}


def _summarised(runs: xr.Dataset) -> xr.Dataset:
    """Statistics of the errors, with Monte-Carlo errors, beside the estimates."""
    failed = runs["failure"].values != ""
    if failed.any():
        first = runs["failure"].values[failed][0]
        warn(f"{int(failed.sum())} of {failed.size} replicates failed; the first: {first}")
    out = runs[["failure"]].assign_coords(statistic=list(STATISTICS))
    for name in [str(key)[: -len(TRUTH)] for key in runs if str(key).endswith(TRUTH)]:
        truth = runs[name + TRUTH]
        error, unknown = runs[name] - truth, xr.full_like(truth, np.nan)
        n_samples = error.notnull().sum("replicate")
        square = (error - error.mean("replicate")) ** 2 * n_samples / (n_samples - 1)
        ends = runs.get(name + INTERVAL)
        low, high = (
            unknown if ends is None else ends.isel(ci_bound=bound, drop=True) for bound in (0, 1)
        )
        covered = ((low <= truth) & (truth <= high)).where((low + high + truth).notnull())
        statistics = {
            "bias": _mean(error),
            "std": _root(_mean(square)),
            "rmse": _root(_mean(error**2)),
            "mean_se": _root(_mean(runs.get(name + ERROR, unknown) ** 2)),
            "coverage": _mean(covered),
            "width": _mean(high - low),
        }
        for suffix, parts in zip(
            ("", "_mcse"), zip(*statistics.values(), strict=True), strict=True
        ):
            stacked = xr.concat([part.expand_dims(statistic=1) for part in parts], "statistic")
            out[name + suffix] = stacked.transpose("n", "statistic", ...)
        out[f"{name}_estimate"], out[name + TRUTH] = runs[name], truth
    return out


def _mean(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over the replicates that have a value, and its Monte-Carlo standard error."""
    n_samples = values.notnull().sum("replicate")
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no value, or an infinite one
        deviation = values.std("replicate", ddof=1)
        return values.mean("replicate"), deviation / np.sqrt(n_samples)


def _root(mean: tuple[xr.DataArray, xr.DataArray]) -> tuple[xr.DataArray, xr.DataArray]:
    """The root of a mean, and its Monte-Carlo standard error (delta method)."""
    root = mean[0] ** 0.5
    return root, mean[1] / (2 * root)
