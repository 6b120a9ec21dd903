"""What kind of table a user has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd
from numpy.typing import NDArray

Data: TypeAlias = pd.DataFrame | NDArray[Any]
PLAIN = (
    "A table has columns of numbers, true and false, text, categories, dates, times or durations"
)


def as_is(rows: Any) -> Any:
    """Rows as they are."""
    return rows


@dataclass(frozen=True)
class TableFormat:
    """What kind of table the user has, and how rows are brought into this kind.

    ``labelled`` says whether rows have labels of their own, by which pandas objects are aligned.
    ``days`` are the numbers of columns of dates without a time of the day. ``restore`` turns
    columns that were read as numbers or dates back into what they hold.
    """

    name: str
    give: Callable[[Data], Any] = as_is
    labelled: bool = False
    days: frozenset[int] = frozenset()
    restore: Callable[[Data], Any] = as_is

    def as_given(self, rows: Data) -> Any:
        """Rows in the form and the types of the user."""
        return self.give(self.restore(rows))


PANDAS = TableFormat("pandas DataFrame", labelled=True)
ARRAY = TableFormat("array")


def framed(columns: Mapping[Any, Any], names: Sequence[Any], n_rows: int) -> pd.DataFrame:
    """Columns as a DataFrame, whose rows are numbered."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=pd.RangeIndex(n_rows))
    return frame.set_axis(pd.Index(list(names), dtype=object if not len(names) else None), axis=1)
