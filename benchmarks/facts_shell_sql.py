"""Cost of shell and SQL facts per kind of input: ``rows()`` gives named callables for
``make bench``.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable, Iterator

from agenttool_otel.policy.alternatives import shell_alternatives
from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.sql import sql_fact

_SHELL = {
    "shell: one reading command": "ls -la",
    "shell: a file": "cat src/app/main.py",
    "shell: a pipe of four": "find . -name '*.ts' | grep -v node_modules | sort | head -20",
    "shell: ten commands with places": (
        "cd src && cat a.py | head -n 5 | sort && grep -n x b.py && ls -la && wc -l c.py && "
        "touch d && cp a.py e && echo 1 > f"
    ),
    "shell: bash -c": "bash -c 'ls -la'",
    "shell: known writer": "rm -rf build",
    "shell: construct outside the proof": "for f in a b; do touch $f; done",
    "shell: 8 KB of words": "echo " + "word " * 1600,
    "shell: 1 MB, refused": "x" * 1_000_000,
}
_SQL = {
    "sql: small select": ("select a, b from t where c = 1", "postgres"),
    "sql: join, group, cte": (
        "with q as (select * from t where d > 1) select q.a, count(*) from q join u using (id) group by q.a",
        "postgres",
    ),
    "sql: update": ("update t set a = 1 where b = 2", "postgres"),
    "sql: refused by the scan": ("select 1 /*! , 2 */", "mysql"),
}
_READ = {
    "read": {
        "name": "read",
        "kind": "file_operation",
        "access_kinds": ["file_read"],
        "argument_names": ["path"],
    }
}


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yields (name, callable) pairs; one call is one fact."""
    for name, command in _SHELL.items():
        yield name, lambda command=command: shell_fact(command, argument="/command")  # type: ignore[misc]
    for name, (query, dialect) in _SQL.items():
        yield (
            name,
            lambda query=query, dialect=dialect: sql_fact(
                query, argument="/query", dialect=dialect
            ),
        )  # type: ignore[misc]
    fact = shell_fact("head -n 5 a.txt", argument="/command")
    yield "shell: alternatives", lambda: shell_alternatives(fact, available=_READ)


if __name__ == "__main__":
    for title, call in rows():
        call()
        count = 20 if "1 MB" in title or "8 KB" in title else 200
        best = min(timeit.repeat(call, number=count, repeat=5)) / count
        sys.stdout.write(f"{title:40} {best * 1e6:10.0f} us\n")
