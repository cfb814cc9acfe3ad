"""Rows for the decision layer: each a name and something to call.

``rows()`` needs nothing but the package; the server rows appear when an OPA program is at hand.
Compare ``embedded fresh`` with ``embedded cached``, and ``opa server decision`` with ``opa bare
round trip``.
"""

from __future__ import annotations

import atexit
import http.client
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "policy"))

from opa_program import OpaServer, find_opa
from policy_inputs import default_of, make_document

from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.bundle_files import bundle_files, write_archive
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.engines.opa_server import OpaServerEngine
from agenttool_otel.readers.types import PathFact

DECISION = "data.agenttool.permission.decision"


def sample_document() -> Any:
    """A read of one file inside the workspace, which the stock bundle allows."""
    fact = default_of(PathFact)
    fact.update(
        argument="/path",
        raw="notes.txt",
        access="read",
        lexical="/w/notes.txt",
        resolved="/w/notes.txt",
    )
    fact.update(roots=["/w"], inside=True, certain=True)
    return make_document({"facts.paths": [fact], "input": {"path": "notes.txt"}})


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield name and callable of each row."""
    document = sample_document()
    bundle = load_bundle(default_bundle_path())
    compiled, interpreted = EmbeddedEngine(bundle), EmbeddedEngine(bundle, fast=False)
    fresh, cached = Decider([compiled]), Decider([compiled], cache=DecisionCache())
    slow = Decider([interpreted])
    cached.decide(document)
    yield "embedded fresh", lambda: fresh.decide(document)
    yield "embedded fresh, interpreted", lambda: slow.decide(document)
    yield "embedded cached", lambda: cached.decide(document)
    if find_opa() is None:
        return
    folder = tempfile.TemporaryDirectory()
    archive = Path(folder.name) / "bundle.tar.gz"
    archive.write_bytes(write_archive(bundle_files(bundle)))
    server = OpaServer("-b", str(archive))
    server.start()
    atexit.register(folder.cleanup)
    atexit.register(server.kill)
    engine = OpaServerEngine(server.url)
    bare = http.client.HTTPConnection("127.0.0.1", server.port)
    body = json.dumps({"input": document}).encode()
    target = "/v1/data/agenttool/permission/decision?provenance=true&strict-builtin-errors=true"

    def round_trip() -> bytes:
        bare.request("POST", target, body, {"Content-Type": "application/json"})
        return bare.getresponse().read()

    package = engine.client
    yield "opa bare round trip", round_trip
    yield "opa server decision", lambda: engine.evaluate(DECISION, document, timeout=5)
    yield (
        "opa-python-client query_rule",
        lambda: package.query_rule(document, "agenttool.permission", "decision"),
    )


def main() -> None:
    """Print the median of each row, all rows interleaved in one run."""
    import statistics
    import time

    made = list(rows())
    times: dict[str, list[float]] = {name: [] for name, _ in made}
    for _ in range(500):
        for name, call in made:
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    for name, values in times.items():
        print(
            f"{name:32} median {statistics.median(values) * 1e6:9.1f} us   best {min(values) * 1e6:9.1f} us"
        )


if __name__ == "__main__":
    main()
