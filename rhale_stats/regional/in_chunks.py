"""Regions of local effects in chunks: searched on some rows, and counted on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.checks import is_in_chunks
from rhale_stats.arguments.rows import of_rows
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.chunks import listed, of_all
from rhale_stats.local.chunks import Sampled, sampled
from rhale_stats.models.chunked import chunks_of
from rhale_stats.regional.search import SplitSearch
from rhale_stats.regional.splits import checked_table, frame_of
from rhale_stats.regional.trees import Placing
from rhale_stats.schema.checks import check_local, is_chunked
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import as_attribute, row_labels


class SearchRows(NamedTuple):
    """The rows that splits are searched on, with their columns and groups.

    ``some`` is None where they are all rows, in memory. Else ``whole`` and ``whole_conditioning``
    are the local effects and conditioning of all rows, and ``whole_search`` is the search that was
    asked for.
    """

    local: xr.Dataset
    conditioning: Any
    groups: Any
    search: SplitSearch
    some: Sampled | None
    whole: xr.Dataset
    whole_conditioning: Any
    whole_search: SplitSearch

    @classmethod
    def from_arguments(
        cls, local: xr.Dataset, conditioning: Any, groups: Any, search: SplitSearch
    ) -> SearchRows:
        """Rows in memory as they are; of rows in chunks all, or some where they are many."""
        local = check_local(local, in_chunks=True)
        if not is_chunked(local):
            return cls(local, conditioning, groups, search, None, local, conditioning, search)
        some = sampled(local, "rows to be searched")
        whole_conditioning = conditioning
        if conditioning is not None and not is_in_chunks(conditioning):
            whole_conditioning = checked_table(local, conditioning)
        used_search = search
        if search.min_obs is not None and not some.every:
            share = len(some.rows) / sum(some.source.lengths)
            used_search = replace(search, min_obs=max(int(np.ceil(search.min_obs * share)), 1))
        labels = row_labels(some.local)
        table = (
            None
            if whole_conditioning is None
            else _rows_of(whole_conditioning, some.rows, sum(some.source.lengths))
        )
        if table is not None:
            table.index = pd.RangeIndex(len(table)) if labels is None else pd.Index(labels)
        if groups is not None:
            groups = groups.compute() if is_in_chunks(groups) else groups
            every = of_rows(groups, row_labels(local), sum(some.source.lengths), "groups")
            groups = np.asarray(every)[some.rows]
        return cls(some.local, table, groups, used_search, some, local, whole_conditioning, search)

    @property
    def facts(self) -> dict[str, int]:
        """What a result says, as an attribute, if some of the rows were searched."""
        return {} if self.some is None else self.some.facts

    def n_rows(self, in_memory: int) -> int:
        """Number of all rows of positive weight."""
        return in_memory if self.some is None else self.some.source.n_rows

    def of_all_rows(self, tree: xr.Dataset) -> xr.Dataset:
        """The tree with the regions of all rows, and nodes that count them."""
        if self.some is None:
            return tree
        n_rows = sum(self.some.source.lengths)
        searched_region = np.full(n_rows, -1)
        searched_region[self.some.rows] = tree[ROWS].values
        region = searched_region
        if not self.some.every:
            region = self._placed(tree)
            # Rows on which honest splits were searched stay without a region.
            region[self.some.rows] = searched_region[self.some.rows]
        weight = self.whole["weight"].values if "weight" in self.whole else None
        if weight is not None:
            region[~(weight > 0)] = -1
        labels = self.whole["obs"] if "obs" in self.whole.coords else np.arange(n_rows)
        about = tree[ROWS].attrs
        out = tree.drop_vars([ROWS, "obs"]).assign_coords(obs=("obs", np.asarray(labels)))
        out = out.assign({ROWS: ("obs", region, about)})
        name, source = str(tree["feature"].values), self.some.source
        facts: dict[str, Any] = self.facts | {"n_rows": source.n_rows}
        facts |= as_attribute({name: source.fingerprint(feature_position(self.whole, name))})
        return self._counted(out, region, weight).assign_attrs(facts)

    def _counted(self, tree: xr.Dataset, region: IntArray, weight: FloatArray | None) -> xr.Dataset:
        """With the rows of every node counted."""
        if self.some is None or self.some.every:
            return tree
        leaves, parent = tree["region"].values, tree["parent"].values
        counted = self.whole.attrs.get("weight_kind") == "frequency"

        def of_nodes(w: FloatArray | None) -> FloatArray:
            w = None if w is None else w[region >= 0]
            of_region = np.bincount(region[region >= 0], w, int(leaves.max()) + 1)
            totals = np.where(leaves >= 0, of_region[np.maximum(leaves, 0)], 0.0)
            for number in range(len(parent) - 1, 0, -1):
                totals[parent[number]] += totals[number]
            return totals

        share = of_nodes(weight)
        count = share if counted else of_nodes(None)
        node_counts = {"n_obs": count.astype(np.int64), "weight_share": share / share[0]}
        min_obs = self.whole_search.min_obs or max(int(count[0]) // 20, 10)
        tree = tree.assign({name: tree[name].copy(data=data) for name, data in node_counts.items()})
        return tree.assign_attrs(min_obs=min_obs)

    def _placed(self, tree: xr.Dataset) -> IntArray:
        """Region of every row, by the rules."""
        placing = Placing.from_tree(tree)
        if self.whole_conditioning is None:
            names = feature_names(self.whole)
            x = self.whole["x"].transpose("obs", "feature").data.rechunk({1: -1})
            chunks = [(chunk, names) for chunk in x.to_delayed(optimize_graph=False).ravel()]
        elif is_in_chunks(self.whole_conditioning):
            chunks = [(chunk, []) for chunk in chunks_of(self.whole_conditioning) or ()]
        else:
            return placing(self.whole_conditioning)
        regions: IntArray = of_all(chunks, _PlacedBy(placing), np.concatenate, "rows in regions")
        return regions


@dataclass(frozen=True)
class _PlacedBy:
    placing: Placing

    def __call__(self, chunk: Any, names: Sequence[str]) -> IntArray:
        table = frame_of(chunk, "conditioning")
        return self.placing(table.set_axis(list(names), axis=1) if names else table)


def _rows_of(conditioning: Any, rows: IntArray, n_rows: int) -> pd.DataFrame:
    """Rows of a table by their numbers, in memory or in chunks."""
    if isinstance(conditioning, pd.DataFrame):
        return conditioning.iloc[rows]
    chunks = chunks_of(conditioning) or []
    lengths = of_all([(chunk,) for chunk in chunks], _length, listed)
    if sum(lengths) != n_rows:
        raise ValueError(
            f"conditioning must have a row for each of the {n_rows} rows of local; got "
            f"{sum(lengths)}."
        )
    ends = np.cumsum(lengths)
    each = np.split(rows, np.searchsorted(rows, ends[:-1]))
    begins = ends - lengths
    parts = [
        (chunk, chunk_rows - begin)
        for chunk, chunk_rows, begin in zip(chunks, each, begins, strict=True)
    ]
    table: pd.DataFrame = of_all(parts, _taken, pd.concat)
    return table


def _length(chunk: Any) -> list[int]:
    return [len(chunk)]


def _taken(chunk: Any, rows: IntArray) -> pd.DataFrame:
    return frame_of(chunk, "conditioning").iloc[rows]
