"""Names in a query that show what they hold: columns of secrets, and tables that are files."""

from __future__ import annotations

import re
from typing import Final

from agenttool_otel.readers.sql.tables import sql_table

FILE_ENDING: Final = r"\.(?:csv|tsv|parquet|jsonl?|ndjson|xlsx|txt|db|gz|zst)"

# has_password, reset_password and the like are about a secret, and hold none
_ABOUT: Final = (
    "has|is|needs|requires?|must|uses?|force|allows?|no|num|can|should|reset|change|show|"
    "enables?|supports?"
)
_ENDING: Final = "secret|passw(?:or)?d|(?:private|api)_key|(?:access|refresh)_token"
_SECRET_COLUMN: Final = re.compile(rf"(?!(?:{_ABOUT})_)\w+_(?:{_ENDING})|\w+password_?hash")
_FILE_TABLE: Final = re.compile(rf"(?i)[/\\:@?]|\*(?!\Z)|(?<!\w)\*|{FILE_ENDING}\*?\Z")


def is_secret_column(column: str) -> bool:
    """Return whether a column or key holds passwords, keys or tokens by its name."""
    folded = column.lower()
    return folded in sql_table()["secret_columns"] or _SECRET_COLUMN.fullmatch(folded) is not None


def names_file(table: str) -> bool:
    """Return whether a table's name is a file, a URL or a pattern, which several databases read."""
    return _FILE_TABLE.search(table) is not None
