"""A consumer that knows the standard and the lines alone rebuilds what happened to every call of a
mixed run.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standard_consumer import Journal

from agenttool_otel import ApprovalAnswer, Governor, TelemetrySettings
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.records import ToolResult
from agenttool_otel.telemetry.sinks import JsonlSink
from agenttool_otel.testing import StaticEngine, decision

KEY = "a key that this consumer has, too"


@pytest.fixture(autouse=True)
def key_of_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_DIGEST_KEY", KEY)


def keyed(value: dict[str, Any]) -> str:
    """Digest plain JSON data as RFC 8785 has it, under the stated key, without this package."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "hmac-sha256:" + hmac.digest(KEY.encode(), text.encode(), "sha256").hex()


def add(number: int, note: str = "none") -> str:
    return f"{number}:{note}"


async def later(number: int, note: str = "none") -> str:
    await asyncio.sleep(0)
    return f"{number}:{note}"


def broken(number: int, note: str = "none") -> str:
    raise ConnectionError(note)


def refused(number: int, note: str = "none") -> str:
    raise AssertionError("never runs")


def asked(number: int, note: str = "none") -> str:
    return f"{number}:{note}"


def trimmed(number: int, note: str = "none") -> str:
    return note


def large(number: int, note: str = "none") -> str:
    return "line\n" * 200


def counted(number: int, note: str = "none") -> Iterator[int]:
    yield from range(number % 5)


async def canceled(number: int, note: str = "none") -> None:
    await asyncio.sleep(60)


async def slow(number: int, note: str = "none") -> None:
    await asyncio.sleep(60)


ENDS = {f"tool.invocation.{word}" for word in ("succeeded", "failed", "canceled", "timed_out")}
TOOLS = (add, later, broken, refused, asked, trimmed, large, counted, canceled, slow)
BEHAVIOR = {"refused": "deny", "asked": "ask"}


class Run:
    """Mixed calls through one Governor, with what is known of each of them from outside."""

    def __init__(self, path: Path, seed: int) -> None:
        self.sink = JsonlSink(path)
        self.random = random.Random(seed)
        self.expected: dict[str, dict[str, Any]] = {}
        # calls that were canceled, by the digest of what was given
        self.canceled: Counter[str] = Counter()
        hooks = Hooks()
        hooks.add(
            lambda ctx: UpdatedInput({**ctx.arguments, "note": "trimmed"}, "shorter"),
            "pre_tool_use",
            tool="trimmed",
            hook_id="trimmer",
            timeout=60,  # on a busy machine too, each number is trimmed
        )
        engine = StaticEngine(
            {tool.__name__: decision(BEHAVIOR.get(tool.__name__, "allow")) for tool in TOOLS}
        )
        self.governor = Governor(
            policy=engine,
            approvals="sqlite://",
            hooks=hooks,
            max_inline_chars=500,
            telemetry=TelemetrySettings(sinks=(self.sink,)),
        )
        self.tools = {
            tool.__name__: self.governor.govern(
                tool, **({"timeout_ms": 1} if tool is slow else {})
            ).tool
            for tool in TOOLS
        }

    async def one(self, number: int) -> None:
        name = self.random.choice(list(self.tools))
        given: dict[str, Any] = {"number": number}
        if self.random.random() < 0.5:
            given["note"] = f"grüße {number}"
        if self.random.random() < 0.1:
            given["number"] = "no number"
        tool = self.tools[name]
        if name == "canceled" and isinstance(given["number"], int):
            task = asyncio.ensure_future(tool.ainvoke(**given))
            await asyncio.sleep(0.001)
            task.cancel()
            try:
                result = await task
            except asyncio.CancelledError:
                # nobody is told the id of a call that was canceled
                self.canceled[keyed(given)] += 1
                return
        else:
            result = await tool.ainvoke(**given)
        if result.status == "pending" and self.random.random() < 0.8:
            result = await self.answered(result, approved=self.random.random() < 0.7)
        self.note(name, given, result)

    async def answered(self, paused: ToolResult, *, approved: bool) -> ToolResult:
        store = self.governor.approvals.store
        request = store.by_invocation(paused.invocation_id)
        assert request is not None
        store.answer(request.request_id, ApprovalAnswer(approved=approved, answered_by="user:ada"))
        return await self.governor.aresume(paused.invocation_id)

    def note(self, name: str, given: dict[str, Any], result: ToolResult) -> None:
        ran = (
            result.status in ("succeeded", "failed")
            and isinstance(given["number"], int)
            and name != "refused"
        )
        runs_with = {"note": "none", **given, **({"note": "trimmed"} if name == "trimmed" else {})}
        kept = "preview_and_persist" if name == "large" and ran else None
        if result.status == "too_large":  # on a busy machine the store may be too slow
            kept = "drop_with_reason"
        permission = result.permission or {}
        self.expected[result.invocation_id] = {
            "tool": self.tools[name].spec.tool_id,
            "result_status": str(result.status),
            "is_error": result.is_error,
            "error": str(result.error.error_class) if result.error is not None else None,
            "decision": (permission["behavior"], permission["reason"].get("rule_ref", ""))
            if permission
            else None,
            "model_input": keyed(given),
            "call_input": keyed(runs_with) if ran else None,
            "persisted": kept,
            "mutated": name == "trimmed" and isinstance(given["number"], int),
        }


def differences(run: Run, journal: Journal) -> list[tuple[str, str, Any, Any]]:
    found: list[tuple[str, str, Any, Any]] = []
    for key, expected in run.expected.items():
        call = journal.calls.get(key)
        if call is None:
            found.append((key, "missing", expected, None))
            continue
        rebuilt = {
            **{
                name: getattr(call, name)
                for name in ("tool", "result_status", "is_error", "error", "decision")
            },
            "model_input": call.inputs.get("model_input"),
            "call_input": call.inputs.get("call_input") if expected["call_input"] else None,
            "persisted": call.persisted,
            "mutated": "hook" in call.mutations,
        }
        names = set(expected)
        if expected["result_status"] == "pending":
            # a call that waits has no result yet
            names -= {"result_status", "is_error", "error"}
        found += [
            (key, name, expected[name], rebuilt[name])
            for name in sorted(names)
            if expected[name] != rebuilt[name]
        ]
        ends = [event for event in call.events if event in ENDS]
        if len(ends) != (expected["result_status"] != "pending"):
            found.append((key, "terminal events", expected["result_status"], ends))
        if call.ended is (expected["result_status"] == "pending"):
            found.append((key, "ended", expected["result_status"], call.status))
    others = [call for key, call in journal.calls.items() if key not in run.expected]
    canceled = Counter(
        call.inputs["model_input"]
        for call in others
        if call.result_status == call.status == "canceled"
    )
    if canceled != run.canceled or len(others) != canceled.total():
        found.append(("", "canceled", run.canceled, canceled))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("count", [1500, 10_000])
def test_every_call_is_rebuilt_from_the_lines_alone(tmp_path: Path, count: int) -> None:
    run = Run(tmp_path / "calls.jsonl", seed=count)

    async def all_of_them() -> None:
        for start in range(0, count, 20):
            await asyncio.gather(*(run.one(number) for number in range(start, start + 20)))

    asyncio.run(all_of_them())
    assert run.sink.flush(60)
    run.governor.close()
    assert run.sink.lost == 0
    journal = Journal().read(tmp_path / "calls.jsonl")
    assert len(run.expected) + run.canceled.total() == len(journal.calls) == count
    assert journal.missing == 0
    assert differences(run, journal) == []
    statuses = Counter(entry["result_status"] for entry in run.expected.values())
    assert set(statuses) >= {"succeeded", "failed", "denied", "rejected", "pending"}, statuses
    assert run.canceled


def test_the_consumer_is_short_and_stands_alone() -> None:
    text = (Path(__file__).parent / "standard_consumer.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert "agenttool" not in text


def test_a_changed_line_is_a_difference(tmp_path: Path) -> None:
    run = Run(tmp_path / "calls.jsonl", seed=1)
    asyncio.run(run.one(1))
    run.governor.close()
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    for name, value in (("status", "yielded"), ("error", {"error_class": "timeout"})):
        changed = [
            {**line, "record": {**line["record"], name: value}}
            if line["object"] == "tool_result"
            else line
            for line in lines
        ]
        journal = Journal()
        journal.take(changed)
        assert differences(run, journal)
