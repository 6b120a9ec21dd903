"""The grid of each feature: which features, which points or levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.words import listed
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models import table as models
from rhale_stats.schema.features import by_name

GRID_KINDS = ("quantile", "equal_width")
N_GRID = 40
# What a user may give as a grid: of the only feature, or by its name.
Grid = ArrayLike | Mapping[str, ArrayLike] | None


def size(background: int | pd.DataFrame | ArrayLike, n_rows: int) -> int:
    """Number of background rows: the number asked for, or the rows given."""
    if isinstance(background, int | np.integer):
        return min(int(background), n_rows)
    return int(np.shape(background)[0])


# --- what is given --------------------------------------------------------------------------------


class Axis(NamedTuple):
    """One feature: its values in the rows, or numbers of levels, and its grid."""

    name: str
    position: int
    kind: str
    x: FloatArray
    grid: FloatArray
    values: models.Values
    levels: list[str] | None

    @property
    def there(self) -> NDArray[np.bool_]:
        """Rows that have a value, or "missing" as a level."""
        return ~np.isnan(self.x)


def grids(grid: Grid, names: Sequence[str], known: Sequence[str]) -> dict[str, ArrayLike]:
    """Grids of a user's own, by name; ``known`` are the names of all columns."""
    if grid is None:
        return {}
    if isinstance(grid, Mapping):
        own = by_name(grid, known, "grid")
        unknown = [name for name in own if name not in names]
        if unknown:
            raise KeyError(
                f"grid must be of features among {listed(names)}; got {listed(unknown)}."
            )
        return own
    if len(names) > 1:
        raise ValueError(
            f"grid must map names to points where there are several features; got one array for "
            f"{', '.join(map(repr, names))}. Pass grid={{{names[0]!r}: [...]}}."
        )
    return {names[0]: grid}
