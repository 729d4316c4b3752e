"""Tables of a page that can be searched, sorted and filtered, column by column.

The first rows stand in the page as HTML; all of them as data, for the page's script.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal


@dataclasses.dataclass(frozen=True)
class Column:
    """One column.  texts: what its cells show; by: what they are sorted by, or None for their texts.

    kind "choice": few different texts, by which rows can be chosen; "picture": levels() of survivors.
    """

    name: str
    kind: Literal["text", "place", "amount", "choice", "picture"]
    texts: Sequence[str]
    by: Sequence[float] | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    """name: its id in the page.  label: what it lists, in the plural.  marked: rows that stand out.

    few: rows that the page shows before more are asked for.
    """

    name: str
    label: str
    columns: Sequence[Column]
    marked: Sequence[bool] = ()
    few: int = 10

    def __len__(self) -> int:
        return len(self.columns[0].texts) if self.columns else 0

    def first_rows(self) -> list[list[tuple[Column, str]]]:
        """(column, text) of each cell of the rows that are shown at first."""
        return [
            [(column, column.texts[row]) for column in self.columns]
            for row in range(min(self.few, len(self)))
        ]

    def is_marked(self, row: int) -> bool:
        return bool(self.marked) and self.marked[row]

    def to_data(self) -> dict[str, Any]:
        """For the page's script."""
        return {
            "columns": [vars(column) for column in self.columns],
            "marked": [row for row in range(len(self)) if self.is_marked(row)],
            "label": self.label,
            "few": self.few,
        }
