"""What results cost: values, digests, sizes, content, previews, errors and stores; ``rows()`` is
for ``make bench``.

``python benchmarks/results.py`` prints them.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

from agenttool_otel.results.content.map_content import map_content
from agenttool_otel.results.content.preview import preview
from agenttool_otel.results.content.size import size_of
from agenttool_otel.results.errors.control_flow import control_flow
from agenttool_otel.results.errors.mapper import classify
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.persistence.strategy import Demand
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore
from agenttool_otel.values.canonical import canonical_bytes, digest
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.pointers import changed_pointers
from agenttool_otel.values.snapshot import snapshot


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each row and what to time."""
    folder = Path(tempfile.mkdtemp(prefix="results-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    small = {"path": "notes.txt", "limit": 20, "flag": True}
    nested = {
        "query": {"terms": ["a", "b"], "range": {"from": 1, "to": 2.5}},
        "note": "gr\u00fc\u00dfe",
    }
    short, medium = "x" * 200, "line of text\n" * 1600
    wide = "\u00e9" * 20_000
    table = [{"id": number, "name": "row", "tags": ["a", "b"]} for number in range(1000)]
    large = "line of text\n" * (100_000_000 // 13)
    failure = ValueError("no such thing")

    yield "to_json_value, 3 fields", lambda: to_json_value(small)
    yield "to_json_value, nested", lambda: to_json_value(nested)
    yield "snapshot, 3 fields", lambda: snapshot(small)
    yield "snapshot, nested", lambda: snapshot(nested)
    yield "canonical_bytes, 3 fields", lambda: canonical_bytes(small)
    yield "digest, 3 fields", lambda: digest(small)
    yield "digest, nested", lambda: digest(nested)
    yield "changed_pointers, 3 fields", lambda: changed_pointers(small, {**small, "limit": 21})
    yield "size, 200 B text", lambda: size_of(short)
    yield "size, 20 KB text", lambda: size_of(medium)
    yield "size, 40 KB not ASCII", lambda: size_of(wide)
    yield "size, 100 MB text", lambda: size_of(large)
    yield "size, 3 fields", lambda: size_of(small)
    yield "size, 1000 rows", lambda: size_of(table)
    yield "content, 200 B text", lambda: map_content(short)
    yield "content, 3 fields", lambda: map_content(small)
    yield "preview, 20 KB", lambda: preview(medium, 2048)
    yield "error, ValueError", lambda: classify(failure)
    yield "control flow, ValueError", lambda: control_flow(failure)

    keeper = ResultKeeper(ResultStore(LocalBackend(folder / "store")), deadline_s=300)

    def keep(value: object) -> Callable[[], object]:
        choice = keeper.choose(value, Demand(obliged_strategy="preview_and_persist"))
        assert choice is not None

        def run() -> object:
            kept = keeper.keep(value, choice, invocation_id="inv")
            assert kept.failure is None, kept.failure
            return kept

        return run

    yield "choose, 200 B text", lambda: keeper.choose(short, size=200)
    yield "keep, 500 KB text", keep("line of text\n" * 38_500)
    yield "keep, 100 MB text", keep(large)


if __name__ == "__main__":
    for title, call in rows():
        call()
        slow = timeit.timeit(call, number=1) > 1e-3
        count = 2 if slow else 2000
        best = min(timeit.repeat(call, number=count, repeat=3)) / count
        sys.stdout.write(f"{title:32} {best * 1e6:12.2f} us\n")
