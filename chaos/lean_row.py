"""A row by its column names in the room of a tuple: of a long run there are a million of them."""

from collections.abc import Iterable, Iterator, Mapping
from sys import intern
from typing import Any

Columns = Mapping[str, int]


class LeanRow(Mapping[str, Any]):
    __slots__ = ("_columns", "_values")

    def __init__(self, columns: Columns, values: tuple[Any, ...]) -> None:
        self._columns = columns
        self._values = values

    def __getitem__(self, column: str) -> Any:  # noqa: ANN401 - a column's value
        return self._values[self._columns[column]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return repr(dict(self))


def columns_of(names: Iterable[str]) -> Columns:
    return {name: place for place, name in enumerate(names)}


def lean(columns: Columns, values: Iterable[Any]) -> LeanRow:
    """Words that come again and again are kept once."""
    return LeanRow(columns, tuple(intern(each) if type(each) is str else each for each in values))
