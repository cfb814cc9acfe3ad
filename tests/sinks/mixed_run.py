"""Calls of every kind through one Governor: allowed, denied, invalid, asked and answered in four
ways, hooked, in batches that fail, stopped, late, reporting, persisted, deferred, custom, streamed.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    Governor,
    SchedulerPolicy,
    TelemetrySettings,
    agent_context,
    current_call,
    report_progress,
)
from agenttool_otel.hooks import Hooks, PermissionResult, UpdatedInput
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.types import EngineAnswer
from agenttool_otel.telemetry.sinks import Sink
from agenttool_otel.testing import StaticEngine, decision

CANARY = "marigold-" + "4711"
_LONG_S = 60.0  # until a call that waits for its end gives up


class _Policy(StaticEngine):
    """Decides as stated, and lets every tool be seen."""

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        if entry_point == EntryPoint.DECISION:
            return super().evaluate(entry_point, document, timeout=timeout)
        return EngineAnswer(True, self.revision)


class Bodies:
    """The bodies of the tools, and the ids of the calls whose body ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def _note(self) -> Any:
        call = current_call()
        assert call is not None
        self.ran.append(call.invocation_id)
        return call

    def add(self, number: int, note: str = "none") -> str:
        """Add a number."""
        self._note()
        return f"{number}:{note}"

    def refuse(self, number: int) -> None:
        """Never runs: the policy denies it."""
        self._note()

    def ask(self, number: int, note: str = "none") -> str:
        """Runs once a person approves it."""
        self._note()
        return f"{number}:{note}"

    def trim(self, number: int, note: str = "none") -> str:
        """A hook changes its note."""
        self._note()
        return note

    def object_to(self, number: int) -> None:
        """Never runs: a hook objects."""
        self._note()

    def break_down(self, number: int) -> None:
        """Fail."""
        self._note()
        raise ConnectionError(CANARY)

    def oversleep(self, number: int) -> None:
        """Take longer than allowed."""
        self._note()
        time.sleep(0.05)

    def wait(self, number: int) -> None:
        """Go on until it is stopped."""
        call = self._note()
        until = time.monotonic() + _LONG_S
        while time.monotonic() < until:
            call.raise_if_canceled()
            time.sleep(0.002)

    def report(self, number: int) -> str:
        """Report progress."""
        self._note()
        for percent in (10, 50, 90):
            report_progress(percent, CANARY)
        return "done"

    def dump(self, number: int) -> str:
        """Return a long text."""
        self._note()
        return "line of text\n" * 500

    def draw(self, number: int) -> list[dict[str, Any]]:
        """Make an image."""
        self._note()
        reference = {
            "type": "artifact_ref",
            "artifact_id": f"img-{number}",
            "uri": f"artifact://img-{number}",
            "media_type": "image/png",
        }
        return [reference]

    def count(self, number: int) -> Iterator[int]:
        """Yield numbers."""
        self._note()
        yield from range(number % 5)

    def forecast(self, number: int) -> str:
        """Return the weather forecast of a town."""
        self._note()
        return "sunny"

    def pick(self, number: int) -> str:
        """Runs elsewhere."""
        raise AssertionError("a custom tool must not run here")


_DECISIONS = {"refuse": "deny", "ask": "ask"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "add": {"read_only": True, "concurrency_safe": True, "sensitive_fields": ["note"]},
    "oversleep": {"timeout_ms": 10},
    "wait": {"supports_cancel": True},
    "report": {"supports_progress": True},
    "dump": {"max_inline_chars": 500},
    "forecast": {"defer": True},
    "pick": {"ownership": "custom"},
}


def _hooks() -> Hooks:
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "note": "trimmed"}, "shorter"),
        "pre_tool_use",
        tool="trim",
        hook_id="trimmer",
        timeout=60,
    )
    hooks.add(
        lambda ctx: PermissionResult("deny", "the hook objects"),
        "pre_tool_use",
        tool="object_to",
        hook_id="objector",
        timeout=60,
    )
    return hooks


class MixedRun:
    """Makes calls of every kind, and counts them.

    Args:
        sink: takes the records.
        settings: further fields of TelemetrySettings, for example ``verbose=True``.
    """

    def __init__(self, sink: Sink, **settings: Any) -> None:
        self.bodies = Bodies()
        self.made: Counter[str] = Counter()  # calls by kind
        names = [name for name in vars(Bodies) if not name.startswith("_")]
        answers = {name: decision(_DECISIONS.get(name, "allow")) for name in names}
        self.governor = Governor(
            policy=_Policy(answers),
            hooks=_hooks(),
            approvals="sqlite://",
            policy_timeout=60,
            telemetry=TelemetrySettings(sinks=(sink,), **settings),
        )
        self.tools: dict[str, Any] = {}
        for name in names:
            body = getattr(self.bodies, name)
            self.tools[name] = self.governor.govern(body, **_OPTIONS.get(name, {}))

    def run(self, calls: int) -> None:
        """Make at least so many calls, each kind about as often as the others."""
        kinds = self._kinds()
        number = 0
        while self.made.total() < calls:
            kind = list(kinds)[number % len(kinds)]
            with agent_context(actor="agent:mixed", session_id=f"session-{number // 100}"):
                self.made[kind] += kinds[kind](number)
            number += 1

    def _kinds(self) -> Mapping[str, Callable[[int], int]]:
        """What makes calls of a kind and returns how many it made."""
        return {
            **{name: self._plain(name) for name in self._plain_names()},
            "invalid": self._invalid,
            "unknown": self._unknown,
            "approved": lambda number: self._asked(number, approved=True),
            "edited": lambda number: self._asked(number, approved=True, edited=True),
            "rejected": lambda number: self._asked(number, approved=False),
            "pending": self._pending,
            "batch": self._batch,
            "canceled": self._canceled,
            "deferred": self._deferred,
            "stream": self._stream,
            "completed": self._completed,
            "interrupted": self._interrupted,
            "left": self._left,
        }

    def _plain_names(self) -> list[str]:
        others = {"ask", "wait", "count", "forecast", "pick"}
        return [name for name in self.tools if name not in others]

    def _plain(self, name: str) -> Callable[[int], int]:
        def call(number: int) -> int:
            self.tools[name].tool.invoke(number=number)
            return 1

        return call

    def _invalid(self, number: int) -> int:
        self.tools["add"].tool.invoke(number=CANARY)
        return 1

    def _unknown(self, number: int) -> int:
        self.governor.batch([BatchCall("nobody", {"number": number}, native_call_id=f"n{number}")])
        return 1

    def _asked(self, number: int, *, approved: bool, edited: bool = False) -> int:
        paused = self.tools["ask"].tool.invoke(number=number)
        store = self.governor.approvals.store
        request = store.by_invocation(paused.invocation_id)
        assert request is not None
        answer = ApprovalAnswer(
            approved=approved,
            answered_by="user:ada",
            edited_input={"number": number, "note": "edited"} if edited else None,
        )
        store.answer(request.request_id, answer)
        self.governor.resume(paused.invocation_id)
        return 1

    def _pending(self, number: int) -> int:
        assert self.tools["ask"].tool.invoke(number=number).status == "pending"
        return 1

    def _batch(self, number: int) -> int:
        calls = [
            BatchCall(self.tools["add"], {"number": number}, native_call_id=f"b{number}"),
            BatchCall(self.tools["break_down"], {"number": number}),
            BatchCall(self.tools["add"], {"number": number}, depends_on=[1]),
            BatchCall(self.tools["refuse"], {"number": number}),
        ]
        policy = SchedulerPolicy(sibling_failure_policy="cancel_dependent", max_parallel=3)
        self.governor.batch(calls, policy=policy)
        return len(calls)

    def _canceled(self, number: int) -> int:
        before = len(self.bodies.ran)
        tool = self.tools["wait"].tool
        thread = threading.Thread(target=tool.invoke, kwargs={"number": number})
        thread.start()
        until = time.monotonic() + _LONG_S
        while len(self.bodies.ran) == before and time.monotonic() < until:
            time.sleep(0.001)
        self.governor.cancel(self.bodies.ran[-1], "enough")
        thread.join(_LONG_S)
        return 1

    def _deferred(self, number: int) -> int:
        with agent_context(session_id=f"deferred-{number}"):
            surface = self.governor.surface()
            call = BatchCall(self.tools["forecast"], {"number": number})
            with agent_context(surface=surface):
                [refused] = self.governor.batch([call])
                assert refused.error is not None, refused
                found = self.governor.search("forecast")
                self.governor.load([match["tool_id"] for match in found.matches])
                [loaded] = self.governor.batch([call])
                assert loaded.error is None, loaded
        return 2

    def _stream(self, number: int) -> int:
        list(self.tools["count"](number))
        return 1

    def _wait_for_result(self, number: int) -> str:
        pending = self.tools["pick"].tool.invoke(number=number)
        assert pending.status == "pending"
        return str(pending.invocation_id)

    def _completed(self, number: int) -> int:
        self.governor.complete(self._wait_for_result(number), "picked")
        return 1

    def _interrupted(self, number: int) -> int:
        self.governor.interrupt(self._wait_for_result(number), "nobody picks")
        return 1

    def _left(self, number: int) -> int:
        self._wait_for_result(number)
        return 1
