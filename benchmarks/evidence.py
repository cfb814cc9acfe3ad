"""Decision records: what a record costs, whether replays are true, and what a replay costs.

Calls of every kind are recorded: commands of the corpus (generated ones where that is not at hand),
URLs, paths, SQL, mails to addresses that a result named before, sessions under a budget, and reported
effects. Each input is decided on five changed policies at once, live and in clear: that is the truth
which the replay of the record has to predict.

``python -m benchmarks.evidence [records]`` prints the figures; 15,000 records take some minutes.
"""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from agenttool_otel import EffectChange, Governor, agent_context, report_effects
from agenttool_otel.evidence.chain import Reading, read_lines
from agenttool_otel.evidence.files import key_of
from agenttool_otel.evidence.record import OBJECT, DecisionRecorder
from agenttool_otel.evidence.replay import Candidate
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from benchmarks.agent_commands import DEFAULT

_RULES = """package agenttool.custom.acme

deny contains {"rule": "custom.acme.build", "message": "no"} if {
	some fact in input.facts.shell
	some command in fact.commands
	some place in command.places
	startswith(place.path.lexical, "/srv/acme/")
}

allow contains {
	"rule": "custom.acme.mail",
	"message": "known",
	"waives": ["agenttool.rules.declared.access_external_send", "agenttool.rules.declared.unstated"],
} if {
	lower(input.input.recipient) == "ann@example.org"
}

ask contains {"rule": "custom.acme.rows", "message": "many rows"} if {
	some change in input.facts.effects.changes
	change.count > 50
}
"""
_CALLS_A_SESSION = 40


class Given(NamedTuple):
    """A call that is made."""

    tool: str
    arguments: dict[str, Any]


def policies() -> dict[str, Bundle]:
    """The changed policies."""
    stock = load_bundle(default_bundle_path())

    def changed(settings: dict[str, Any]) -> Bundle:
        return overlay(stock, data={"agenttool": {"settings": settings}})

    extension = bundle_from_files({"acme.rego": _RULES.encode()}, origin="acme")
    hosts = {"allowed_hosts": ["files.example.net", "*.example.com"]}
    return {
        "preset coding": changed({"preset": "coding"}),
        "preset strict": changed({"preset": "strict"}),
        "hosts, SQL denied": changed(
            {"network": hosts, "effects": {"agenttool.rules.sql.writes": "deny"}}
        ),
        "a budget of 20 calls": changed({"budgets": {"session": {"calls": 20}}}),
        "own rules": overlay(stock, extension=extension),
    }


def _commands() -> Iterator[str]:
    if DEFAULT.exists():
        lines = gzip.decompress(DEFAULT.read_bytes()).decode().splitlines()
        yield from itertools.cycle(json.loads(line)["command"] for line in lines)
    source = random.Random(7)
    while True:
        program = source.choice(("ls", "cat", "rm -rf", "git push", "curl", "python -c", "tee"))
        yield f"{program} {source.choice(('src', '/etc/hosts', '~/.ssh/id_rsa', '../x'))}"


def calls(count: int) -> Iterator[Given]:
    """Calls of every kind; two of three are commands."""
    source = random.Random(count)
    commands = _commands()
    hosts = (
        "docs.example.com",
        "169.254.169.254",
        "localhost:8080",
        "u:w@evil.example",
        "10.0.0.7",
    )
    folders = ("/srv/acme/src", "/etc", "~/.aws", "/srv/acme/.git", "/tmp/a b", "..")
    verbs = (
        "SELECT name FROM t",
        "DELETE FROM t",
        "DROP TABLE t",
        "UPDATE t SET a = 1 WHERE b = 2",
    )
    for _ in range(count):
        number = source.randrange(500)
        match source.randrange(18):
            case 0:
                url = f"https://{source.choice(hosts)}/page/{number}?q=word{number}"
                yield Given("fetch", {"url": url})
            case 1:
                path = f"{source.choice(folders)}/file{number}.txt"
                yield Given("read_file", {"path": path, "limit": number * 10})
            case 2:
                statement = source.choice(verbs).replace(" t", f" table{number}")
                yield Given("query", {"statement": statement})
            case 3:
                yield Given("search", {"words": f"address of person{number % 20}"})
            case 4:
                name = source.choice(
                    ("Ann@Example.org", f"person{number % 20}@firm{number}.example")
                )
                yield Given("send", {"recipient": name, "body": f"text number {number}"})
            case 5:
                yield Given("update_rows", {"rows": number % 90})
            case _:
                yield Given("sh", {"command": next(commands)})


def tools(governor: Governor) -> dict[str, Any]:
    """The governed tools by name."""

    def update_rows(rows: int) -> str:
        report_effects([EffectChange("sql", "orders", "changed", rows)])
        return "ok"

    def search(words: str) -> str:
        number = words.rpartition("person")[2]
        return f"person{number}@firm{number}.example writes often"

    return {
        "sh": governor.govern(
            lambda command: "ok",
            name="sh",
            tool_kind="shell_command",
            command_args=["command"],
            write_effects=["local_persistent"],
        ),
        "read_file": governor.govern(
            lambda path, limit: "ok",
            name="read_file",
            read_only=True,
            access_kinds=["file_read"],
            path_args=["path"],
        ),
        "fetch": governor.govern(
            lambda url: "ok",
            name="fetch",
            read_only=True,
            access_kinds=["network"],
            url_args=["url"],
        ),
        "query": governor.govern(lambda statement: "ok", name="query", sql_args=["statement"]),
        "search": governor.govern(
            search, name="search", read_only=True, access_kinds=["network"], tool_kind="retrieval"
        ),
        "send": governor.govern(
            lambda recipient, body: "ok",
            name="send",
            access_kinds=["external_send"],
            write_effects=["remote_mutation"],
        ),
        "update_rows": governor.govern(
            update_rows,
            name="update_rows",
            read_only=False,
            write_effects=["remote_mutation"],
            reports_effects=True,
        ),
    }


class Truth:
    """Decides each input on the changed policies while it is recorded, and times the recording."""

    def __init__(self, bundles: dict[str, Bundle]) -> None:
        self._deciders = {
            name: Decider((EmbeddedEngine(bundle),), timeout=10.0)
            for name, bundle in bundles.items()
        }
        self.decided: dict[str, dict[str, list[tuple[str, str]]]] = {name: {} for name in bundles}
        self.costs: list[int] = []
        self.least: list[int] = []  # what a call of a function that does nothing takes there
        self.kinds: Counter[str] = Counter()

    def watch(self, recorder: DecisionRecorder) -> None:
        """Take part in the recording of each decision."""
        record = recorder.record

        def watched(decider: Any, document: Any, verdict: Any, span: Any) -> None:
            started = time.thread_time_ns()
            record(decider, document, verdict, span)
            ended = time.thread_time_ns()
            self.costs.append(ended - started)
            _nothing(decider, document, verdict, span)
            self.least.append(time.thread_time_ns() - ended)
            self._decide(document)

        recorder.record = watched  # type: ignore[method-assign]

    def _decide(self, document: Any) -> None:
        facts = document["facts"]
        self.kinds.update(name for name, found in facts.items() if found)
        invocation = document["invocation"]["id"]
        for name, decider in self._deciders.items():
            verdict = decider.decide(document)
            decided = verdict.behavior.value, verdict.rule_ref
            self.decided[name].setdefault(invocation, []).append(decided)


def _nothing(decider: Any, document: Any, verdict: Any, span: Any) -> None:
    pass


def _median_us(times: list[int]) -> str:
    return f"{statistics.median(times) / 1000:.1f}"


def record(path: Path, count: int, truth: Truth) -> int:
    """Make calls until so many decisions are recorded; return how many were lost."""
    governor = Governor(decisions=f"file:{path}", approver=lambda request: True)
    recorder: Any = governor._decisions
    (sink,) = recorder.sinks
    sink._size = count + 1  # the truth takes longer than the calls: nothing may be lost
    truth.watch(recorder)
    made = tools(governor)
    where: dict[str, Any] = {"roots": ["/srv/acme"], "cwd": "/srv/acme", "actor": "agent:bench"}
    for number, call in enumerate(calls(count)):
        session = f"s-{number // _CALLS_A_SESSION}"
        with agent_context(session_id=session, **where), suppress(Exception):
            made[call.tool](**call.arguments)
        if len(truth.costs) >= count:
            break
    sink.flush(600)
    governor.close()
    return int(sink.lost)


class Found(NamedTuple):
    """What a replay on one policy came to."""

    policy: str
    records: int
    true: int  # predicted as it would have been
    named: int  # of the others, those that are named as unsure
    unsure: int
    changed: int  # decided otherwise than it was recorded
    seconds: float  # of CPU


def replay(lines: list[Any], name: str, bundle: Bundle, key: bytes, truth: Truth | None) -> Found:
    """Replay records in this process, and compare with the truth; with themselves without one."""
    candidate = Candidate(bundle, key)
    started = time.process_time()
    replays = [candidate.replay(line) for line in lines]
    seconds = time.process_time() - started
    at: Counter[str] = Counter()
    true = named = 0
    for each in replays:
        expected = (each.before, each.rule_before)
        if truth is not None:
            expected = truth.decided[name][each.invocation][at[each.invocation]]
        at[each.invocation] += 1
        if (each.after, each.rule_after) == expected:
            true += 1
        else:
            named += bool(each.unsure)
    unsure = sum(bool(each.unsure) for each in replays)
    changed = sum(not each.same for each in replays)
    return Found(name, len(lines), true, named, unsure, changed, seconds)


def measure(count: int) -> tuple[list[Found], dict[str, str]]:
    """Record, replay, and return what was found with the other figures as text."""
    bundles = policies()
    truth = Truth(bundles)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.jsonl"
        lost = record(path, count, truth)
        content = path.read_bytes()
        key = key_of(path)
        started = time.process_time()
        lines = [line for line in read_lines([path], key, Reading()) if line["object"] == OBJECT]
        reading = time.process_time() - started
    own = replay(lines, "its own", load_bundle(default_bundle_path()), key, None)
    found = [own, *(replay(lines, name, bundles[name], key, truth) for name in bundles)]
    figures = {
        "records": f"{len(lines):,} ({lost} lost)",
        "with facts": ", ".join(f"{name} {n:,}" for name, n in truth.kinds.most_common()),
        "CPU to read and check the chain": f"{reading:.1f} s",
        "CPU to replay on its own bundle": f"{own.seconds:.1f} s (bar 12 s for 15,000)",
        "bytes a record, compressed": f"{len(lzma.compress(content, preset=2)) / len(lines):.0f}"
        f" (bar 200; {len(content) / len(lines):,.0f} before)",
        "a record costs its call": f"{_median_us(truth.costs)} us (bar 10 us), where a function that"
        f" does nothing costs {_median_us(truth.least)} us",
    }
    return found, figures


def table(found: list[Found]) -> Table:
    """The replays as a table."""
    shown = Table(title="Replays: predicted as it would have been decided")
    headings = ("policy", "true", "%", "misses", "named unsure", "unsure", "changed", "CPU s")
    for heading in headings:
        shown.add_column(heading, justify="left" if heading == "policy" else "right")
    for one in found:
        figures = (
            one.true,
            f"{100 * one.true / one.records:.2f}",
            one.records - one.true,
            one.named,
        )
        rest = (one.unsure, one.changed, f"{one.seconds:.1f}")
        shown.add_row(one.policy, *map(str, (*figures, *rest)))
    return shown


def main(arguments: list[str]) -> int:
    """Measure and print."""
    count = int(arguments[0]) if arguments else 15_000
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    found, figures = measure(count)
    for name, figure in figures.items():
        console.print(f"{name}: {figure}")
    console.print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
