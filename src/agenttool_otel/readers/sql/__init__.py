"""SQL: what a text reads and changes, and whether it ends."""

from agenttool_otel.readers.sql.fact import sql_fact

__all__ = ["sql_fact"]
