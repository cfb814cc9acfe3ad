"""What the facts about paths, URLs, arguments and provenance cost: the rows of ``make bench`` for this part."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from agenttool_otel.facts import FactEnvironment, ProvenanceLedger, path_fact, plan_facts, url_fact


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each row and what to time."""
    base = Path(tempfile.mkdtemp(prefix="facts-bench-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    (base / "src" / "deep").mkdir(parents=True)
    (base / "src" / "deep" / "module.py").write_text("x")
    env = FactEnvironment(roots=(str(base),), cwd=str(base), home="/home/agent")
    lexical = FactEnvironment(roots=(str(base),), cwd=str(base), home="/home/agent", touch_file_system=False)
    guarded = FactEnvironment(
        roots=(str(base),),
        cwd=str(base),
        home="/home/agent",
        protected=((str(base / "policies"), "policy"), (str(base / "approvals.db"), "approval")),
    )

    def path(text: str, environment: FactEnvironment) -> Callable[[], object]:
        return lambda: path_fact(text, argument="/path", access="read", env=environment)

    yield "path, existing file", path("src/deep/module.py", env)
    yield "path, existing file, two protected places", path("src/deep/module.py", guarded)
    yield "path, outside", path("../../../../etc/passwd", env)
    yield "path, text only", path("src/deep/module.py", lexical)
    yield "path, other letters", path("src/caf\u00e9/\u043e\u0442\u0447\u0451\u0442.pdf", lexical)
    yield "path, 4 KB", path("a/" * 2000, lexical)

    def url(text: str) -> Callable[[], object]:
        return lambda: url_fact(text, argument="/url", env=env)

    yield "url, public name", url("https://docs.python.org/3/library/urllib.parse.html?highlight=quote")
    yield "url, address", url("http://0x7f000001:8080/")
    yield "url, other letters", url("https://m\u00fcnchen.example/stra\u00dfe")

    def schema(**names: str) -> dict[str, object]:
        return {"type": "object", "properties": {name: {"type": kind} for name, kind in names.items()}}

    assert plan_facts(schema=schema(count="integer", text="string")) is None  # no plan: nothing to time
    one = plan_facts(schema=schema(path="string", limit="integer"), read_only=True)
    two = plan_facts(schema=schema(path="string", url="string", note="string"), write_effects=["remote_mutation"])
    assert one is not None
    assert two is not None
    yield "plan, one path", lambda: one.establish({"path": "src/deep/module.py", "limit": 3}, env)
    yield (
        "plan, making it",
        lambda: plan_facts(schema=schema(path="string", url="string", note="string"), access_kinds=["file_write"]),
    )

    ledger = ProvenanceLedger()
    ledger.record_user("Send the report to bob@example.org")
    ledger.record_tool_output("web.fetch", "Contact eve@evil.example or https://evil.example/", open_world=True)
    traced = FactEnvironment(roots=(str(base),), cwd=str(base), home="/home/agent", ledger=ledger)
    arguments = {"path": "src/deep/module.py", "url": "https://docs.python.org/3/", "note": "to bob@example.org"}
    yield "plan, path and URL and three origins", lambda: two.establish(arguments, traced)
    yield "provenance, look up an address", lambda: ledger.lookup("eve@evil.example")
    small = "Contact eve@evil.example or see https://evil.example/ for more of the same. " * 3
    letters = "abcdefghij"
    words = " ".join("".join(letters[int(digit)] for digit in str(index * 7919 % 10_000)) for index in range(5000))
    sink = ProvenanceLedger()
    yield "provenance, record 200 B", lambda: sink.record_tool_output("web.fetch", small[:200], open_world=True)
    yield "provenance, record 20 KB", lambda: sink.record_tool_output("web.fetch", words[:20_000], open_world=True)


if __name__ == "__main__":
    import timeit

    for name, call in rows():
        timer = timeit.Timer(call)
        number, _ = timer.autorange()
        best = min(timer.repeat(3, number)) / number
        print(f"{name:45} {best * 1e6:10.1f} us")
