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
        names: list[str] = []
        if statement.is_select:
            names = statement.selected_columns.keys()
        # rename: a column of a union has a name such as "anon_1" or "class"
        row_type = _row_type("StoredRow", names, rename=True)
        self._row: Callable[[Any], Any] = row_type._make

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run it and return the driver's cursor.

        Args:
            connection: whose dialect the statement is compiled for, at its first run.
            values: the statement's parameters by name, or the columns of a row to insert.
        """
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            made = self._statement.compile(dialect=dialect)
            self._compiled[dialect.name] = (str(made), made.params)
        text, fixed = self._compiled[dialect.name]
        parameters = dict(fixed)
        parameters.update(values)
        cursor = connection.connection.cursor()
        cursor.execute(text, parameters)
        return cursor

    def all(self, connection: Connection, **values: Any) -> list[Any]:
        """Run it and return its rows."""
        rows = self.run(connection, **values).fetchall()
        return [self._row(row) for row in rows]

    def first(self, connection: Connection, **values: Any) -> Any:
        """Run it and return its first row, ``None`` where there is none."""
        rows = self.all(connection, **values)
        return rows[0] if rows else None
