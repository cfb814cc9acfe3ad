"""Statements that SQLAlchemy writes and the driver runs: what SQLAlchemy does around one takes five
times as long.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

_row_type: Any = namedtuple  # the columns are those of the statement


class Statement:
    """One statement, compiled once for each dialect; its columns are texts, integers and bytes,
    which need no help.
    """

    def __init__(self, statement: Any) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, Mapping[str, Any]]] = {}
        names = statement.selected_columns.keys() if statement.is_select else ()
        self._row: Callable[[Any], Any] = _row_type("StoredRow", names, rename=True)._make

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run it and return the driver's cursor."""
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            made = self._statement.compile(dialect=dialect)
            self._compiled[dialect.name] = str(made), made.params
        text, fixed = self._compiled[dialect.name]
        cursor = connection.connection.cursor()
        cursor.execute(text, {**fixed, **values})
        return cursor

    def all(self, connection: Connection, **values: Any) -> list[Any]:
        """Run it and return its rows."""
        return list(map(self._row, self.run(connection, **values).fetchall()))

    def first(self, connection: Connection, **values: Any) -> Any:
        """Run it and return its first row, ``None`` where there is none."""
        return next(iter(self.all(connection, **values)), None)
