"""Local effects in chunks of rows, out of memory or on other machines: sums, copies, samples."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import warn
from rhale_stats.arrays.binning import most_of_chunk, thinned, together
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.chunks import all_see, array_of, client_of, listed, of_all
from rhale_stats.local.rows import SELECT_ROWS, Reduction, Rows, SortedValues, Source
from rhale_stats.schema.checks import MAX_ROWS, is_chunked
from rhale_stats.schema.dimensions import LEFT
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import as_attribute, joined_checksum
from rhale_stats.schema.parts import has_own_rows

# Begins the name of the part of a dask graph that holds the model.
WAITING = "model_of_local_effects-"
# So many bytes are kept in memory, more on the disk.
MAX_IN_MEMORY = 1 << 26
# Share of the free space of the disk that may be used.
MAX_OF_DISK = 0.8
KEPT = ("x", "local_effect")
WHAT = "chunks of local effects"


@contextmanager
def cached(local: xr.Dataset, *, read_once: bool = False) -> Iterator[xr.Dataset]:
    """The same local effects, computed once for all that the block asks of them.

    They are kept in memory if they are few, else in a temporary folder, which is removed at the
    end of the block, or by the workers of a cluster that do not all see that folder. Local effects
    without a model behind them, such as those of a file, stay as they are; and so do many that are
    ``read_once``: of further outputs, and for the sign of skewness under precision weights, rows
    are read again.
    """
    if not _wait(local):
        yield local
        return
    size = sum(local.variables[name].nbytes for name in KEPT)
    client = client_of()
    counted = "weight" not in local or local.attrs.get("weight_kind") == "frequency"
    if size > MAX_IN_MEMORY and read_once and counted and "output" not in local.dims:
        yield local
        return
    if size <= MAX_IN_MEMORY:
        yield _with_blocks(local, of_all(_chunks(local), _held, listed, WHAT))
        return
    with tempfile.TemporaryDirectory(prefix="rhale-stats-", dir=_place()) as name:
        folder = Path(name)
        if client is not None and not all_see(client, folder):
            # A cluster writes to the disks of its workers what their memory does not hold.
            stored = local.assign({name: local[name].persist() for name in KEPT})
        elif size > (free := shutil.disk_usage(folder).free) * MAX_OF_DISK:
            warn(
                f"The local effects take {size / 2**30:.3g} GiB, and {folder.parent} has "
                f"{free / 2**30:.3g} GiB free. They are therefore not kept, and the model is "
                f"called again in every pass over the rows. Name a folder with more space: "
                f"dask.config.set(temporary_directory=...)."
            )
            stored = local
        else:
            chunks = _chunks(local)
            numbered = [(*chunk, number) for number, chunk in enumerate(chunks)]
            of_all(numbered, _Writer(folder), listed, WHAT)
            stored = _with_blocks(local, _written(folder, len(chunks)))
        yield stored


def _wait(local: object) -> bool:
    """Whether these are local effects that a model computes when they are needed."""
    if not isinstance(local, xr.Dataset) or any(name not in local for name in KEPT):
        return False
    data = local.variables["local_effect"]._data if is_chunked(local) else None
    layers = getattr(getattr(data, "dask", None), "layers", {})
    return any(str(name).startswith(WAITING) for name in layers)


def _place() -> str | None:
    """The folder that a user has named for large temporary files, else one that is on a disk."""
    from dask import config

    named: str | None = config.get("temporary-directory", None)
    if named is not None or "TMPDIR" in os.environ:
        return named
    # /tmp may be in memory.
    return "/var/tmp" if os.access("/var/tmp", os.W_OK) else None


def _kept_lengths(local: xr.Dataset) -> tuple[int, ...]:
    name = "local_effect" if local.variables["local_effect"].chunks else "x"
    return tuple(local[name].chunksizes["obs"])


def _chunks(local: xr.Dataset) -> list[tuple[Any, Any]]:
    """Blocks of x and of the local effects, rows first, of the same rows."""

    def blocks(name: str) -> list[Any]:
        whole = local.variables[name].transpose("obs", ...)
        data = whole.chunk({"obs": _kept_lengths(local), **dict.fromkeys(whole.dims[1:], -1)}).data
        return list(data.to_delayed(optimize_graph=False).ravel())

    return list(zip(blocks("x"), blocks("local_effect"), strict=True))


def _with_blocks(local: xr.Dataset, blocks: Sequence[tuple[Any, Any]]) -> xr.Dataset:
    """The same Dataset with other blocks of x and local effects: arrays, or tasks of dask."""
    variables: dict[str, xr.Variable] = {}
    for name, of_name in zip(KEPT, zip(*blocks, strict=True), strict=True):
        whole = local.variables[name].transpose("obs", ...)
        array = array_of(f"kept-{uuid.uuid4().hex}", of_name, _kept_lengths(local), whole.shape[1:])
        stored = xr.Variable(whole.dims, array, whole.attrs)
        variables[name] = stored.transpose(*local.variables[name].dims)
    return local.assign(variables)


# --- in a worker ----------------------------------------------------------------------------------


def _held(x: NDArray[Any], g: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    return [(np.asfortranarray(x), np.asfortranarray(g))]


def _name(folder: Path, kind: str, number: int) -> Path:
    return folder / f"{kind}-{number}.npy"


@dataclass(frozen=True)
class _Writer:
    """Writes a chunk to two files, of x and of the local effects, column by column."""

    folder: Path

    def __call__(self, x: NDArray[Any], g: NDArray[Any], number: int) -> list[int]:
        for kind, values in zip(KEPT, (x, g), strict=True):
            # A worker that dies leaves no half of a file.
            whole = _name(self.folder, kind, number)
            part = whole.with_name(f"{os.getpid()}-{whole.name}")
            np.save(part, np.asfortranarray(values))
            part.replace(whole)
        return [number]


def _written(folder: Path, n_chunks: int) -> list[tuple[Any, Any]]:
    names = ([_name(folder, kind, number) for kind in KEPT] for number in range(n_chunks))
    return [((np.load, x), (np.load, g)) for x, g in names]


# --- rows of local effects in chunks --------------------------------------------------------------


class Sampled(NamedTuple):
    """Some rows of local effects in memory.

    ``rows`` are their numbers among all, ``every`` says whether they are all. ``source`` are all
    rows.
    """

    local: xr.Dataset
    rows: IntArray
    every: bool
    source: ChunkedRows

    @property
    def facts(self) -> dict[str, int]:
        """What a result says, as an attribute, if it comes from some of the rows."""
        return {} if self.every else {"n_rows_read": len(self.rows)}


def sampled(local: xr.Dataset, what: str) -> Sampled:
    """All rows, or one drawn from each of `MAX_ROWS` stretches of them.

    The draws are the same in every call, whatever the chunks. A progress bar counts chunks of
    ``what``.
    """
    source = ChunkedRows(local, precise=True)
    n_rows = sum(source.lengths)
    number, every = np.arange(n_rows), n_rows <= MAX_ROWS
    if not every:
        first = np.arange(MAX_ROWS + 1) * n_rows // MAX_ROWS
        drawn = np.random.default_rng(0).integers(first[:-1], first[1:])
        number = np.full(n_rows, -1)
        number[drawn] = drawn
    chosen = source.chosen(number, what)
    names = [name for name in ("x", "local_effect", "weight") if name in local]
    rest = local.drop_vars(names).isel(obs=chosen.rows, missing_dims="ignore")
    dims = ("obs", "feature")
    data: dict[str, Any] = {
        "x": (dims, chosen.x, local["x"].attrs),
        "local_effect": (dims, chosen.local_effect, local["local_effect"].attrs),
    }
    if chosen.weight is not None:
        data["weight"] = ("obs", chosen.weight, local["weight"].attrs)
    return Sampled(rest.assign(data), chosen.rows, every, source)


# --- local effects in chunks of rows --------------------------------------------------------------


R = TypeVar("R")


class ChunkedRows:
    """Rows of local effects in chunks: the `Source` that reads each chunk once a question.

    Made from local effects whose ``x`` and ``local_effect`` are dask arrays. Every question is
    asked of all chunks, and answers are merged in the order of the rows: the result does not depend
    on the number of workers, or on which of them is first.
    """

    def __init__(self, local: xr.Dataset, *, precise: bool = False) -> None:
        _check_mergeable(local, precise=precise)
        self.names = feature_names(local)
        self.frequency = "weight" in local and local.attrs.get("weight_kind") == "frequency"
        self._precise = "weight" in local and not self.frequency
        self.lengths = _lengths(local)
        self._chunks = _delayed_chunks(local)
        self._checksums: list[_Checksums] = []

    @cached_property
    def _about(self) -> _About:
        """What is known of ``x`` and the weights alone, without a call of the model."""
        chunks = [(chunk[0], None, chunk[2]) for chunk in self._chunks]
        about: _About = of_all(chunks, _AboutOf(most_of_chunk(len(chunks))), _about_all)
        if not about.n_rows:
            raise ValueError("local must have rows of positive weight; got none.")
        return about

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return self._about.n_rows

    @property
    def size(self) -> int:
        """Number of local effects."""
        return self.n_rows * len(self.names)

    @property
    def unequal(self) -> bool:
        """Whether rows have precision weights that differ."""
        return self._precise and not self._about.equal

    @property
    def largest(self) -> float:
        """Largest precision weight as it was given; weights are divided by it."""
        return self._about.largest if self._precise else 1.0

    @property
    def most_rows(self) -> int:
        """Most rows of a chunk that are taken where an answer is made of rows themselves."""
        return most_of_chunk(len(self.lengths))

    @property
    def _weights(self) -> _Weights | None:
        """How weights enter, which are dropped where they are as none; precise ones are up to 1."""
        if self._precise:
            return _Weights(False, self._about.largest) if self.unequal else None
        return None if self._about.ones else _Weights(True, 1.0)

    def ends(self, position: int, name: str) -> tuple[float, float]:
        """Smallest and largest value of a feature; refused where values are not finite."""
        about = self._about
        if about.n_bad[position]:
            raise ValueError(
                f"x of feature {name!r} must be finite; got {about.n_bad[position]} NaN or inf in "
                f"{about.n_rows} rows. {SELECT_ROWS}"
            )
        return float(about.low[position]), float(about.high[position])

    def places(self, position: int) -> SortedValues:
        """Where the rows of a feature are on its axis; a summary of them if they are many."""
        x, weight = self._about.places[position]
        if weight is None or (self._precise and not self.unequal and (weight == weight[0]).all()):
            return SortedValues(x, None, False)
        if self._precise:
            return SortedValues(x, weight / self._about.largest, not self.unequal)
        return SortedValues(x, weight, True)

    def reduced(
        self, plan: Callable[[Source, int], Reduction | None], positions: Sequence[int], /
    ) -> list[Any]:
        """The answers of the reductions of these features, None without one: in one pass."""
        plans = [plan(self, position) for position in positions]
        reductions = [reduction for reduction in plans if reduction is not None]
        answers = iter(self._reduced(reductions) if reductions else ())
        return [None if reduction is None else next(answers) for reduction in plans]

    def _reduced(
        self, reductions: list[Reduction], beside: Sequence[Any] = (), **how: Any
    ) -> Sequence[Any]:
        """Answers for all rows, and with the first of them checksums of the rows."""
        told = bool(self._checksums)
        everything = reductions if told else [*reductions, Reduction(_checksums_of, listed)]
        chunks: list[tuple[Any, ...]] = list(self._chunks)
        if beside:
            chunks = [(*chunk, extra) for chunk, extra in zip(chunks, beside, strict=True)]
        of_chunk, merge = _AnswersOf(everything, self._weights), _MergedOf(everything)
        answers: Sequence[Any] = of_all(chunks, of_chunk, merge, **how)
        if not told:
            *answers, self._checksums = answers
        return answers

    def merged(
        self,
        function: Callable[[Rows, Any], R],
        merge: Callable[[Sequence[R]], R],
        what: str,
        *,
        beside: Sequence[Any],
        progress: bool = True,
    ) -> R:
        """Merged results of a function of every chunk and of what is given ``beside`` it.

        That is something a chunk, or an array of a value a row.
        """
        how: dict[str, Any] = {"what": what, "delay": 2.0 if progress else np.inf, "most": 2}
        result, *_ = self._reduced([Reduction(function, merge)], beside, **how)
        return result  # type: ignore[no-any-return]

    def chosen(self, number: IntArray, what: str) -> RowSample:
        """Those rows whose ``number`` is not below 0, of weight 0 too; one number a row."""
        beside = np.split(number, np.cumsum(self.lengths)[:-1])
        chunks = [(*chunk, extra) for chunk, extra in zip(self._chunks, beside, strict=True)]
        rows, checksums = of_all(chunks, _ChosenOf(self._weights), _chosen_of_all, what, most=2)
        self._checksums = self._checksums or checksums
        return rows  # type: ignore[no-any-return]

    def fingerprints(self, names: Sequence[str], _threads: int = 1, /) -> dict[str, str]:
        """The attribute of an effect that tells what every feature of it was made from.

        Checksums are those of the same rows in memory (math [96]).
        """
        if not self._checksums:
            return {}
        return as_attribute(
            {name: self.fingerprint(position) for position, name in enumerate(names)}
        )

    def fingerprint(self, position: int) -> str:
        """Checksum of all rows and local effects of one feature, once they have been read."""
        weights = [checksum.weight for checksum in self._checksums if checksum.weight is not None]
        of_rows = joined_checksum([checksum.x[position] for checksum in self._checksums])
        of_effects = joined_checksum(
            [checksum.g[position] for checksum in self._checksums], self.n_rows
        )
        return f"{joined_checksum(weights, of_rows):08x}-{of_effects:08x}"


class RowSample(NamedTuple):
    """Chosen rows: their numbers, values and local effects (row, feature), and weights."""

    rows: IntArray
    x: FloatArray
    local_effect: FloatArray
    weight: FloatArray | None


def _check_mergeable(local: xr.Dataset, *, precise: bool) -> None:
    """Raise ``ValueError`` for rows of which sums over chunks are not enough."""
    if has_own_rows(local):
        what = "rows on edges of cells" if LEFT in local else "missing values"
        raise ValueError(
            f"local must have one value of every feature in every row here where it is in chunks; "
            f"got {what}. Drop these rows before local_effects, or use local.compute()."
        )
    if "weight" in local and local.attrs.get("weight_kind") != "frequency" and not precise:
        raise ValueError(
            "weights must be frequency weights here where local effects are in chunks; got "
            "precision weights. Use local.compute(), or the rows of a sample."
        )


def _lengths(local: xr.Dataset) -> tuple[int, ...]:
    """Numbers of rows of the chunks."""
    names = [name for name in ("x", "local_effect", "weight") if name in local]
    sizes = (local[name].variable.chunksizes for name in names if local[name].chunks)
    return tuple(next(sizes)["obs"])


def _delayed_chunks(local: xr.Dataset) -> list[tuple[Any, Any, Any]]:
    """Blocks of x, of the local effects and of the weights (None without), by chunk of rows."""
    names = [name for name in ("x", "local_effect", "weight") if name in local]
    data, sizes = local[names].drop_vars(list(local.coords)), _lengths(local)
    data = data.chunk({"obs": sizes, "feature": -1})

    def blocks(name: str) -> list[Any]:
        array = data[name]
        order = ("obs", "feature") if "feature" in array.dims else ("obs",)
        return list(array.transpose(*order).data.to_delayed(optimize_graph=False).ravel())

    weight = blocks("weight") if "weight" in local else [None] * len(sizes)
    return list(zip(blocks("x"), blocks("local_effect"), weight, strict=True))


# --- in a worker ----------------------------------------------------------------------------------


class _Weights(NamedTuple):
    """Kind of the weights of rows, and what they are divided by."""

    frequency: bool
    largest: float


class _About(NamedTuple):
    """Facts of rows without their local effects; ``ones``: all weights are 1, ``equal``: the same.

    ``largest`` is the largest weight.
    """

    n_rows: int
    ones: bool
    equal: bool
    largest: float
    low: FloatArray
    high: FloatArray
    n_bad: NDArray[np.int64]
    places: list[tuple[FloatArray, FloatArray | None]]


@dataclass(frozen=True)
class _AboutOf:
    """The facts of one chunk, with ``most`` places of each feature at most."""

    most: int

    def __call__(self, x: Any, _local_effect: None, weight: Any) -> _About:
        rows = _rows(x, None, weight, weights=None if weight is None else _Weights(True, 1.0))
        if not rows.n_rows:
            none = np.full(x.shape[1], np.nan)
            return _About(0, True, True, 0.0, none, none, np.zeros(x.shape[1], dtype=np.int64), [])
        ends = np.array([(values.min(), values.max()) for values in rows.x])
        bad = [int((~np.isfinite(values)).sum()) for values in rows.x]
        least, largest = 1.0, 1.0
        if rows.weight is not None:
            least, largest = float(rows.weight.min()), float(rows.weight.max())
        ones = least == 1 and largest == 1
        weight = None if ones else rows.weight
        places = [thinned(values, weight, self.most) for values in rows.x]
        sizes = rows.n_rows, ones, least == largest, largest
        return _About(*sizes, ends[:, 0], ends[:, 1], np.array(bad), places)


def _about_all(chunks: list[_About]) -> _About:
    some = [chunk for chunk in chunks if chunk.n_rows]
    if not some:
        return chunks[0]
    n_rows, ones, equal, largest, low, high, n_bad, places = zip(*some, strict=True)
    return _About(
        sum(n_rows),
        all(ones),
        all(equal) and len(set(largest)) == 1,
        max(largest),
        np.min(low, axis=0),
        np.max(high, axis=0),
        np.sum(n_bad, axis=0),
        [together(each) for each in zip(*places, strict=True)],
    )


@dataclass(frozen=True)
class _AnswersOf:
    """The answers of one chunk of rows; None where it has no rows."""

    reductions: Sequence[Reduction]
    weights: _Weights | None

    def __call__(self, x: Any, g: Any, weight: Any, *beside: Any) -> list[Any] | None:
        rows = _rows(x, g, weight, weights=self.weights)
        if not rows.n_rows:
            return None
        if weight is not None:
            present = np.asarray(weight) > 0
            beside = tuple(x[present] if isinstance(x, np.ndarray) else x for x in beside)
        return [reduction.map(rows, *beside) for reduction in self.reductions]


@dataclass(frozen=True)
class _MergedOf:
    """Merges the answers of several chunks."""

    reductions: Sequence[Reduction]

    def __call__(self, chunks: list[list[Any]]) -> list[Any]:
        each = zip(*chunks, strict=True)
        pairs = zip(self.reductions, each, strict=True)
        return [reduction.combine(answers) for reduction, answers in pairs]


class _Checksums(NamedTuple):
    """Checksums of a chunk with their numbers of bytes, of every feature, and of the weights."""

    x: list[tuple[int, int]]
    g: list[tuple[int, int]]
    weight: tuple[int, int] | None


@dataclass(frozen=True)
class _ChosenOf:
    """The chosen rows of one chunk, with the checksums of all of its rows."""

    weights: _Weights | None

    def __call__(
        self, x: Any, g: Any, weight: Any, number: IntArray
    ) -> tuple[RowSample, list[_Checksums]]:
        rows = _rows(x, g, weight, weights=self.weights)
        selected = np.flatnonzero(number >= 0)
        x, g = [np.asarray(table, dtype=np.float64)[selected] for table in (x, g)]
        weights = None if weight is None else np.asarray(weight, dtype=np.float64)[selected]
        return RowSample(number[selected], x, g, weights), _checksums_of(
            rows
        ) if rows.n_rows else []


def _chosen_of_all(
    chunks: Sequence[tuple[RowSample, list[_Checksums]]],
) -> tuple[RowSample, list[_Checksums]]:
    chosen, checksums = zip(*chunks, strict=True)
    rows, x, g, weights = zip(*chosen, strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    chosen = RowSample(np.concatenate(rows), np.concatenate(x), np.concatenate(g), weight)
    return chosen, listed(checksums)


def _checksums_of(rows: Rows, *_: Any) -> list[_Checksums]:
    def each(columns: list[FloatArray]) -> list[tuple[int, int]]:
        return [(zlib.crc32(column.data), column.nbytes) for column in columns]

    weight = None
    if rows.weight is not None:
        weights = rows.weight.astype(np.float32)
        weight = zlib.crc32(weights.data), weights.nbytes
    return [_Checksums(each(rows.x), each(rows.local_effect), weight)]


def _rows(x: Any, g: Any, weight: Any, *, weights: _Weights | None) -> Rows:
    """The rows of a chunk that have weight, as `columns` makes them of all rows."""
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        present = weight > 0
        x, weight = np.asarray(x)[present], weight[present]
        g = None if g is None else np.asarray(g)[present]
    weight = None if weights is None else weight / weights.largest
    frequency = weights is None or weights.frequency
    return Rows(_columns(x), [] if g is None else _columns(g), weight, frequency, len(x))


def _columns(table: Any) -> list[FloatArray]:
    return [
        np.ascontiguousarray(table[:, column], dtype=np.float64)
        for column in range(np.shape(table)[1])
    ]
