"""What the facts about paths, URLs, arguments and provenance cost: the rows of ``make bench`` for
this part.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from agenttool_otel.facts import FactEnvironment, ProvenanceLedger, plan_facts
from agenttool_otel.facts.outputs import OPEN_WORLD, OutputTrust
from agenttool_otel.readers.paths.fact import path_fact
from agenttool_otel.readers.urls.fact import url_fact


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each row and what to time."""
    base = Path(tempfile.mkdtemp(prefix="facts-bench-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    (base / "src" / "deep").mkdir(parents=True)
    (base / "src" / "deep" / "module.py").write_text("x")
    env = FactEnvironment(roots=(str(base),), cwd=str(base), home="/home/agent")
    lexical = FactEnvironment(
        roots=(str(base),), cwd=str(base), home="/home/agent", read_file_system=False
    )
    guarded = FactEnvironment(
        roots=(str(base),),
        cwd=str(base),
        home="/home/agent",
        protected=((str(base / "policies"), "policy"), (str(base / "approvals.db"), "approval")),
    )

    def path(text: str, environment: FactEnvironment) -> Callable[[], object]:
        return lambda: path_fact(text, argument="/path", access="read", surroundings=environment)

    yield "path, existing file", path("src/deep/module.py", env)
    yield "path, existing file, two protected places", path("src/deep/module.py", guarded)
    yield "path, outside", path("../../../../etc/passwd", env)
    yield "path, text only", path("src/deep/module.py", lexical)
    yield "path, other letters", path("src/caf\u00e9/\u043e\u0442\u0447\u0451\u0442.pdf", lexical)
    yield "path, 4 KB", path("a/" * 2000, lexical)

    def url(text: str) -> Callable[[], object]:
        return lambda: url_fact(text, argument="/url", surroundings=env)

    yield (
        "url, public name",
        url("https://docs.python.org/3/library/urllib.parse.html?highlight=quote"),
    )
    yield "url, address", url("http://0x7f000001:8080/")
    yield "url, other letters", url("https://m\u00fcnchen.example/stra\u00dfe")

    def schema(**names: str) -> dict[str, object]:
        return {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in names.items()},
        }

    one = plan_facts(schema=schema(path="string", limit="integer"), read_only=True)
    two = plan_facts(
        schema=schema(path="string", url="string", note="string"), write_effects=["remote_mutation"]
    )
    assert one is not None
    assert two is not None
    yield "plan, one path", lambda: one.establish({"path": "src/deep/module.py", "limit": 3}, env)
    yield (
        "plan, making it",
        lambda: plan_facts(
            schema=schema(path="string", url="string", note="string"), access_kinds=["file_write"]
        ),
    )

    ledger = ProvenanceLedger()
    ledger.record_user("Send the report to bob@example.org")
    ledger.record_output(
        "web.fetch", "Contact eve@evil.example or https://evil.example/", OPEN_WORLD
    )
    traced = FactEnvironment(roots=(str(base),), cwd=str(base), home="/home/agent", ledger=ledger)
    arguments = {
        "path": "src/deep/module.py",
        "url": "https://docs.python.org/3/",
        "note": "to bob@example.org",
    }
    yield "plan, path and URL and three origins", lambda: two.establish(arguments, traced)
    yield "provenance, look up an address", lambda: ledger.lookup("eve@evil.example")
    small = "Contact eve@evil.example or see https://evil.example/ for more of the same. " * 3
    sink = ProvenanceLedger()
    page = _prose(20_000, random.Random(7))
    records = [
        {"id": str(at), "sender": f"ann{at}@example.org", "body": page[300 * at :][:280]}
        for at in range(14)
    ]
    for name, seen in (
        ("200 B", small[:200]),
        ("5 KB", page[:5000]),
        ("5 KB of records", records),
        ("20 KB", page),
    ):
        yield (
            f"provenance, record {name}",
            partial(sink.record_output, "web.fetch", seen, OPEN_WORLD),
        )

    long = ProvenanceLedger()
    long.record_user("pay ann@user.example, and the bill 4711 to DE89370400440532013000")
    for at in range(1000):
        told = f"{_prose(1200, random.Random(at))} was never in that house mail{at}@known.example"
        long.record_output(f"tool{at % 30}", told, OutputTrust(open_world=at % 2 == 0))
    known = [f"mail{at}@known.example" for at in range(980, 1000)]
    mixed = [
        "ann@user.example",
        "nobody@nowhere.example",
        "DE89370400440532013000",
        "Main street 5",
        "4711",
        "13",
    ]
    mixed += [
        "https://a.example/x/y?z=1",
        "/srv/data/report.pdf",
        "bob",
        "the house that was never",
        *known[:10],
    ]
    nowhere = [f"new{at}@nowhere{at}.example" for at in range(20)]
    for name, values in (("known", known), ("mixed", mixed), ("nowhere", nowhere)):
        yield f"provenance, 20 targets, {name}", partial(_look_up, long, values)


def _look_up(ledger: ProvenanceLedger, values: list[str]) -> None:
    for value in values:
        ledger.lookup(value, name="recipient", family="mail")


def _prose(size: int, chance: random.Random) -> str:
    """Return text of words, names, numbers, addresses and links, about as often as in mails."""
    lengths = (2, 2, 3, 3, 4, 4, 5, 6, 7, 9, 11)
    known = [
        "".join(chance.choices("abcdefghijklmnoprstuvwyz", k=chance.choice(lengths)))
        for _ in range(2000)
    ]
    words: list[str] = []
    while sum(map(len, words)) + len(words) < size:
        for _ in range(20):
            word = known[int(chance.expovariate(0.005)) % 2000]
            forms = (
                f"{word}.",
                f"{word},",
                word.title(),
                str(chance.randrange(10**5)),
                f"{word}@{word}.example",
            )
            link = f"https://{word}.example/{word}"
            words += chance.choices([word, *forms, link], [87, 4, 4, 2, 1, 1, 0.5])
    return " ".join(words)[:size]


if __name__ == "__main__":
    import time
    import timeit

    for name, call in rows():
        timer = timeit.Timer(call, timer=time.thread_time)
        number, _ = timer.autorange()
        best = min(timer.repeat(3, number)) / number
        print(f"{name:45} {best * 1e6:10.1f} us")
