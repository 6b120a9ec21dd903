"""Runs a study: replicates in several processes, each with its own seed; runs can be resumed."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

import studies
from rhale_stats.arguments.checks import check_count
from rhale_stats.arguments.words import one_line
from rhale_stats.files import Checkpoint, locked
from rhale_stats.parallel import cpus, in_processes
from rhale_stats.schema.variables import software

# A run shorter than this, in seconds, shows no bar.
PROGRESS_DELAY = 2.0
# Replicates that are handed to a process at once: at most so many, and at least so many portions
# a process, for the bar to move and little to be lost.
CHUNK_SIZE = 10
CHUNKS_PER_JOB = 20
# Names that the results have beside those of the study.
RESERVED = ("scenario", "replicate", "done", "failure", "parameters")
# netCDF stores a seed as a signed integer of eight bytes.
LARGEST_SEED = 2**63 - 1
# So many characters of a coordinate are shown in a message.
SHOWN = 200
ANOTHER_FOLDER = "Choose another folder, or delete the file."

Parameters: TypeAlias = Mapping[str, Any]
Replicate: TypeAlias = Callable[[Parameters, np.random.Generator, Any], Mapping[str, ArrayLike]]
Arrays: TypeAlias = dict[str, NDArray[np.float64]]


class OutputError(Exception):
    """A replicate did not return the outputs that its study declares: a mistake in the study."""


@dataclass(frozen=True)
class Options:
    """Options of a study, as on the command line.

    Parameters
    ----------
    quick : bool
        Fewer or smaller scenarios and replicates, for a test that takes a minute.
    settings : str or None
        Variant of the study. A study without variants raises ``ValueError`` if there is one.
    data : Path or None
        File to read. A study that reads none raises ``ValueError`` if there is one.
    """

    quick: bool = False
    settings: str | None = None
    data: Path | None = None


# Frozen, so that one instance can be the default of all functions.
DEFAULT_OPTIONS = Options()


@dataclass(frozen=True)
class Scenario:
    """One setting in which replicates are made.

    Parameters
    ----------
    name : str
        Unique in its study.
    parameters : mapping of str to number or str
        What ``Study.replicate`` receives.

    Raises
    ------
    TypeError
        A parameter that is neither a number nor text.

    Examples
    --------
    >>> Scenario("few rows", {"n": 50, "sd": 0.5})
    Scenario(name='few rows', parameters={'n': 50, 'sd': 0.5})
    """

    name: str
    parameters: Parameters

    def __post_init__(self) -> None:
        for name, value in self.parameters.items():
            if not isinstance(value, str | int | float | np.integer | np.floating | np.bool_):
                raise TypeError(
                    f"parameters of scenario {self.name!r} must be numbers or text; got "
                    f"{name}={value!r} of type {type(value).__name__}. Build anything else from "
                    f"them in replicate, or once in prepare."
                )


@dataclass(frozen=True)
class Output:
    """Declaration of one output of a replicate.

    Parameters
    ----------
    dims : tuple of str
        Dimensions beyond scenario and replicate; () for a single number.
    long_name : str
        Description in words.
    units : str
        Its units, "1" for none.
    """

    dims: tuple[str, ...]
    long_name: str
    units: str = "1"


@dataclass(frozen=True)
class Study:
    """A simulation study, declared.

    Parameters
    ----------
    name : str
        Name on the command line and in `STUDIES`.
    title : str
        Heading of the report.
    source : str
        The document and its figures.
    claim : str
        The claim of the document.
    scenarios : tuple of Scenario
        At least one. Seeds go by position: add new ones at the end.
    coords : mapping of str to sequence
        Values along every dimension of the outputs.
    outputs : mapping of str to Output
        What a replicate returns, by name.
    replicate : callable
        A module-level function ``(parameters, rng, context) -> outputs by name``, arrays in the
        order of their dims. It leaves ``context``, which all replicates share, as it is.
    n_replicates : int
        How many replicates of each scenario, unless told otherwise.
    tables : callable
        ``results -> [(title, DataFrame), ...]``.
    findings : callable
        ``results -> sentences`` with computed numbers: does the claim hold here.
    figure : callable
        ``results -> Figure``.
    prepare : callable or None
        ``options -> context``, called once, in the parent process. What it returns is pickled.
    takes : tuple of str
        Which of ``settings`` and ``data`` it takes; `load` refuses the others.
    page : callable or None
        ``results -> Markdown`` that is saved for readers, in place of all but the figure.
    rows : mapping of str to str
        Beginnings of titles of tables -> a query, as of ``DataFrame.query``, of the rows that the
        saved report has. "" for a table that is printed only. All rows of other tables are saved.
    printed_only : tuple of str
        Beginnings of findings that are printed, but not saved.

    Raises
    ------
    ValueError
        No or repeated scenarios, a dimension without coordinate values, a name used twice.
    """

    name: str
    title: str
    source: str
    claim: str
    scenarios: tuple[Scenario, ...]
    coords: Mapping[str, Sequence[str | int | float]]
    outputs: Mapping[str, Output]
    replicate: Replicate
    n_replicates: int
    tables: Callable[[xr.Dataset], list[tuple[str, pd.DataFrame]]]
    findings: Callable[[xr.Dataset], list[str]]
    figure: Callable[[xr.Dataset], Figure]
    prepare: Callable[[Options], Any] | None = None
    takes: tuple[str, ...] = ()
    page: Callable[[xr.Dataset], str] | None = None
    rows: Mapping[str, str] = field(default_factory=dict)
    printed_only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count("n_replicates", self.n_replicates, 1)
        if not self.scenarios:
            raise ValueError(f"scenarios of study {self.name!r} must be at least one; got none.")
        _check_unique(self, "scenarios", [scenario.name for scenario in self.scenarios])
        for name, output in self.outputs.items():
            missing = [dim for dim in output.dims if dim not in self.coords]
            if missing:
                raise ValueError(
                    f"coords of study {self.name!r} must have values along every dimension of its "
                    f"outputs; got none along {', '.join(missing)} of output {name!r}."
                )
        parameters = dict.fromkeys(name for s in self.scenarios for name in s.parameters)
        _check_unique(
            self,
            "outputs, coords and parameters",
            [*RESERVED, *self.coords, *self.outputs, *parameters],
        )


def _check_unique(study: Study, what: str, names: list[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{what} of study {study.name!r} must have names of their own, other than "
            f"{', '.join(RESERVED)}; got {', '.join(repeated)} twice. Rename one."
        )


def names() -> list[str]:
    """Names of all studies, as `load` and `run` accept them.

    Examples
    --------
    >>> all(isinstance(name, str) for name in names())
    True
    """
    return list(studies.STUDIES)


def load(name: str, options: Options = DEFAULT_OPTIONS) -> Study:
    """The study of that name, its module imported now.

    Parameters
    ----------
    name : str
        One of `names`.
    options : Options
        Handed to the module's ``study``. Every study can be built with the default ones.

    Returns
    -------
    Study

    Raises
    ------
    KeyError
        Unknown name; the message lists those there are.
    ValueError
        The study does not have these options, or its name differs from the one in the registry.

    Examples
    --------
    >>> load("no-such-study")
    Traceback (most recent call last):
        ...
    KeyError: "name must be one of ...; got 'no-such-study'."
    """
    if name not in studies.STUDIES:
        raise KeyError(f"name must be one of {', '.join(names()) or '(none)'}; got {name!r}.")
    module = studies.STUDIES[name]
    study: Study = import_module(module).study(options)
    if study.name != name:
        raise ValueError(f"study of {module} must be named {name!r}; it is named {study.name!r}.")
    refused = {
        "settings": f"one variant only; got {options.settings!r}",
        "data": f"the study reads no file; got {options.data}",
    }
    for option, why in refused.items():
        if getattr(options, option) is not None and option not in study.takes:
            raise ValueError(f"{option} must not be given: {why}.")
    return study


def run(
    name: str,
    options: Options = DEFAULT_OPTIONS,
    *,
    n_replicates: int | None = None,
    jobs: int | None = None,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Run the replicates of a study.

    Every replicate of every scenario has a random generator of its own, made of ``seed``, the
    position of the scenario and the number of the replicate: results depend neither on ``jobs``
    nor on interruptions, and more replicates extend fewer. (Where a replicate does linear algebra
    on large arrays, last digits may differ between ``jobs=1`` and more: other processes are held
    to one thread each, this one is not, and the order of a sum may follow the threads.)

    A replicate that raises an exception is counted, not dropped: its outputs are NaN and its
    ``failure`` is the message. It is not tried again on resumption.

    Parameters
    ----------
    name : str
        One of `names`.
    options : Options
        What the study is to be like.
    n_replicates : int or None
        Replicates of each scenario; None for as many as the study says. If the file at ``path``
        holds more, all that it holds is kept and returned.
    jobs : int or None
        Processes; None for the number of CPUs. With 1 everything happens in this process; with
        more, a script needs ``if __name__ == "__main__":`` around its call.
    seed : int
        Seed of the whole study, from 0.
    path : path-like or None
        netCDF file of the results. It is written every few seconds, each time as a whole, and at
        the end; if it exists, only the replicates that it does not hold are run.
    progress : bool
        Whether to show a bar over replicates, if it takes longer than two seconds.

    Returns
    -------
    Dataset
        Over (scenario, replicate) and the dims of the outputs: one variable an output; ``done``,
        1 where the replicate was run; ``failure``, text, "" where nothing went wrong. Over
        scenario: ``parameters`` as JSON, and each parameter that all scenarios have. Attributes:
        study, title, source, claim, the options (quick 0 or 1, settings, data), seed, and the
        versions of software, python and numpy.

    Raises
    ------
    KeyError
        Unknown name; the message lists those there are.
    ValueError
        A number out of range, or the file at ``path`` holds something else than this study with
        these options, seed, scenarios, outputs and coords; the message says what differs.
    OutputError
        A replicate returned outputs of other names or shapes than the study declares.
    RuntimeError
        Another process writes the file at ``path`` (`LockedError` of ``rhale_stats.files``).

    Examples
    --------
    >>> results = run("density", Options(quick=True), n_replicates=2, jobs=1, progress=False)
    >>> results["done"].sum("replicate").values
    array([2, 2, 2])
    """
    study = load(name, options)
    n_replicates = study.n_replicates if n_replicates is None else n_replicates
    check_count("n_replicates", n_replicates, 1)
    jobs = cpus() if jobs is None else jobs
    check_count("jobs", jobs, 1)
    check_count("seed", seed, 0)
    if seed > LARGEST_SEED:
        raise ValueError(f"seed must be at most {LARGEST_SEED}; got {seed}.")
    file = Checkpoint(None if path is None else Path(path))
    results = _begun(study, options, seed, n_replicates, file.path)
    if (results["done"].values[:, :n_replicates] == 1).all():
        return results
    with nullcontext() if file.path is None else locked(file.path):
        # Read again: another process may have written the file in the meantime.
        results = _begun(study, options, seed, n_replicates, file.path)
        done = results["done"].values[:, :n_replicates]
        context = None if study.prepare is None else study.prepare(options)
        # At once, so that a folder where nothing can be written shows before the work is done.
        file.save(results)
        _fill(results, _Task.of(study, seed, context), done, jobs, file, progress)
    return results


# What is computed: one replicate, and a portion of them ------------------------------------------


@dataclass(frozen=True)
class _Task:
    """Data for making any replicate, without the tables and pictures of its study."""

    study: str
    replicate: Replicate
    scenarios: tuple[tuple[str, dict[str, Any]], ...]
    shapes: dict[str, tuple[int, ...]]
    seed: int
    context: Any

    @classmethod
    def of(cls, study: Study, seed: int, context: Any) -> _Task:
        return cls(
            study=study.name,
            replicate=study.replicate,
            scenarios=tuple((s.name, dict(s.parameters)) for s in study.scenarios),
            shapes={
                name: tuple(len(study.coords[dim]) for dim in output.dims)
                for name, output in study.outputs.items()
            },
            seed=seed,
            context=context,
        )


@dataclass(frozen=True)
class _Chunk:
    """Some replicates of one scenario, by position."""

    scenario: int
    replicates: tuple[int, ...]


@dataclass(frozen=True)
class _Record:
    """The result of one replicate."""

    scenario: int
    replicate: int
    outputs: Arrays
    failure: str


def _work(task: _Task, chunk: _Chunk) -> list[_Record]:
    return [_one(task, chunk.scenario, number) for number in chunk.replicates]


def _one(task: _Task, scenario: int, number: int) -> _Record:
    name, parameters = task.scenarios[scenario]
    rng = np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(scenario, number)))
    try:
        returned = task.replicate(dict(parameters), rng, task.context)
    except Exception as error:
        return _Record(scenario, number, {}, one_line(error))
    where = f"replicate {number} of scenario {name!r} of study {task.study!r}"
    return _Record(scenario, number, _checked(returned, task.shapes, where), "")


def _checked(returned: object, shapes: Mapping[str, tuple[int, ...]], where: str) -> Arrays:
    """Outputs as arrays; `OutputError` unless they are those declared."""
    if not isinstance(returned, Mapping):
        raise OutputError(
            f"{where} must return a mapping of outputs by name; got {type(returned).__name__}."
        )
    if set(returned) != set(shapes):
        raise OutputError(
            f"{where} must return the outputs that the study declares, {', '.join(shapes)}; "
            f"got {', '.join(map(str, returned)) or 'none'}."
        )
    arrays = {}
    for name, shape in shapes.items():
        try:
            array = np.asarray(returned[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise OutputError(f"{where} must return numbers as {name!r}: {error}") from error
        if array.shape != shape:
            raise OutputError(
                f"{where} must return {name!r} in shape {shape}, the sizes of its dims in order; "
                f"got shape {array.shape}."
            )
        arrays[name] = array
    return arrays


def _fill(
    results: xr.Dataset,
    task: _Task,
    done: NDArray[np.int8],
    jobs: int,
    file: Checkpoint,
    progress: bool,
) -> None:
    """Make the missing replicates of ``results``; save regularly, and also after errors."""
    n_missing = int((done == 0).sum())
    jobs = min(jobs, n_missing)
    size = 1 if jobs == 1 else min(CHUNK_SIZE, max(1, n_missing // (CHUNKS_PER_JOB * jobs)))
    bar = tqdm(
        total=done.size,
        initial=done.size - n_missing,
        desc=task.study,
        unit="run",
        disable=not progress,
        delay=PROGRESS_DELAY,
    )

    def keep(records: list[_Record]) -> None:
        for record in records:
            _store(results, record)
        bar.update(len(records))
        if file.is_due:
            file.save(results)

    with bar:
        try:
            in_processes(partial(_work, task), list(_chunks(done, size)), jobs, keep)
        finally:
            file.save(results)


def _chunks(done: NDArray[np.int8], size: int) -> Iterator[_Chunk]:
    for scenario, row in enumerate(done):
        missing = np.flatnonzero(row == 0).tolist()
        for start in range(0, len(missing), size):
            yield _Chunk(scenario, tuple(missing[start : start + size]))


def _store(results: xr.Dataset, record: _Record) -> None:
    at = record.scenario, record.replicate
    for name, values in record.outputs.items():
        results[name].values[at] = values
    results["failure"].values[at] = record.failure
    # Last, so that what an interruption leaves half stored is made again.
    results["done"].values[at] = 1


# The results and their file ----------------------------------------------------------------------


def _empty(study: Study, options: Options, seed: int, n_replicates: int) -> xr.Dataset:
    """Results without any replicate."""
    runs = ("scenario", "replicate")
    sizes = {"scenario": len(study.scenarios), "replicate": n_replicates}
    sizes |= {dim: len(values) for dim, values in study.coords.items()}
    data: dict[str, Any] = {}
    for name, output in study.outputs.items():
        dims = (*runs, *output.dims)
        values = np.full([sizes[dim] for dim in dims], np.nan)
        data[name] = (dims, values, {"long_name": output.long_name, "units": output.units})
    shape = [sizes[dim] for dim in runs]
    data["done"] = (
        runs,
        np.zeros(shape, dtype=np.int8),
        {"long_name": "1 where the replicate was run", "units": "1"},
    )
    data["failure"] = (
        runs,
        np.full(shape, "", dtype=object),
        {"long_name": "what went wrong, empty where nothing did"},
    )
    coords: dict[str, Any] = {
        "scenario": [scenario.name for scenario in study.scenarios],
        "replicate": np.arange(n_replicates),
        **{dim: np.asarray(values) for dim, values in study.coords.items()},
        **{name: ("scenario", values) for name, values in _parameters(study.scenarios).items()},
    }
    return xr.Dataset(data, coords, _attributes(study, options, seed))


def _parameters(scenarios: tuple[Scenario, ...]) -> dict[str, Any]:
    """Values over scenarios: all parameters as JSON, and those that every scenario has."""
    tables = [scenario.parameters for scenario in scenarios]
    out: dict[str, Any] = {"parameters": [_json(table) for table in tables]}
    for name in tables[0]:
        if all(name in table for table in tables):
            values = [table[name] for table in tables]
            # Numbers beside text would become text.
            if len({isinstance(value, str) for value in values}) == 1:
                out[name] = np.asarray(values)
    return out


def _json(parameters: Parameters) -> str:
    return json.dumps(dict(parameters), default=lambda value: value.item(), sort_keys=True)


def _attributes(study: Study, options: Options, seed: int) -> dict[str, str | int]:
    return {
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "claim": study.claim,
        "quick": int(options.quick),
        "settings": options.settings or "",
        "data": "" if options.data is None else str(options.data),
        "seed": int(seed),
        "software": software(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _begun(
    study: Study, options: Options, seed: int, n_replicates: int, path: Path | None
) -> xr.Dataset:
    """Results with what the file holds, where there is one, be it more than asked for."""
    if path is None or not path.exists():
        return _empty(study, options, seed, n_replicates)
    held = _read(path)
    n_held = held.sizes.get("replicate", 0)
    results = _empty(study, options, seed, max(n_held, n_replicates))
    differences = _differences(held, results)
    if differences:
        raise ValueError(
            f"path must hold results of the same study, options, seed, scenarios, outputs and "
            f"coords, or nothing yet; {path} differs: {'; '.join(differences)}. {ANOTHER_FOLDER}"
        )
    for name in results.data_vars:
        results[name].values[:, :n_held] = held[name].values
    for name in ("software", "python", "numpy"):
        results.attrs[name] = _both(str(held.attrs[name]), str(results.attrs[name]))
    return results


def _both(old: str, new: str) -> str:
    """Versions that made the results, where they were begun with one and resumed with another."""
    return old if new in old.split(", ") else f"{old}, {new}"


def _read(path: Path) -> xr.Dataset:
    try:
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            return dataset.load()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"path must be a netCDF file of a study's results, or none yet; "
            f"{path} cannot be read: {error}. {ANOTHER_FOLDER}"
        ) from error


def _differences(held: xr.Dataset, asked: xr.Dataset) -> list[str]:
    """In words, why the one cannot continue the other."""
    facts = [
        (name, str(held.attrs.get(name, "missing")), str(asked.attrs[name]))
        for name in ("study", "quick", "settings", "data", "seed")
    ]
    variables = [
        (name, _described(held, name), _described(asked, name))
        for name in dict.fromkeys([*asked.variables, *held.variables])
        if name != "replicate"
    ]
    # Where facts differ the variables do so for that reason.
    for compared in (facts, variables):
        found = [
            f"{name} is {_short(there)} there, {_short(here)} asked for"
            for name, there, here in compared
            if there != here
        ]
        if found:
            return found
    return []


def _described(dataset: xr.Dataset, name: Hashable) -> str:
    """Values of a coordinate, dimensions of anything else."""
    if name not in dataset.variables:
        return "missing"
    dims = f"over ({', '.join(str(dim) for dim in dataset[name].dims)})"
    return f"{dataset[name].values.tolist()} {dims}" if name in dataset.coords else dims


def _short(text: str) -> str:
    """A text as part of a message: seen if it is empty, cut if it is long."""
    return text[:SHOWN] + "..." if len(text) > SHOWN else text or repr(text)
