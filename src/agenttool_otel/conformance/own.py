"""This package behind the four functions that the scenarios use."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

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
from agenttool_otel.conformance.subject import Data
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.policy.types import EngineAnswer
from agenttool_otel.records import ExternalMapping
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, decision

_FLUSH_S: Final = 10.0
_CONTEXT: Final[dict[str, Any]] = {
    "actor": "agent:conformance",
    "session_id": "conformance",
}


class _Policy(StaticEngine):
    """Decides as the scenario states, and lets every tool be seen."""

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        if entry_point == EntryPoint.DECISION:
            return super().evaluate(entry_point, document, timeout=timeout)
        return EngineAnswer(True, self.revision)


class Call:
    """The object that a tool's body gets as its argument ``call``."""

    def progress(self, percent: float, message: str) -> None:
        """Report progress.

        Args:
            percent: How much of the work is done.
            message: What is done, in words.
        """
        report_progress(percent, message)

    @property
    def canceled(self) -> bool:
        """Whether the body has to stop."""
        call = current_call()
        return call is not None and call.canceled


@dataclass
class _World:
    lines: list[JsonObject] = field(default_factory=list)
    stop: float | None = None  # seconds after which a body that began is stopped
    tools: dict[str, Any] = field(default_factory=dict)

    def begin(self, setup: Data) -> None:
        """Make a Governor with the tools of a scenario."""
        answers: dict[str, Any] = {}
        for tool in setup["tools"]:
            answers[tool["name"]] = decision(Behavior.ALLOW)
        for name, stated in setup.get("decisions", {}).items():
            answers[name] = _decision(stated)
        hooks = Hooks()
        for name, change in setup.get("input_hooks", {}).items():
            hooks.add(_updater(change), "pre_tool_use", tool=name, hook_id=f"{name}_hook")
        self.sink = CallbackSink(self.lines.append)
        self.governor = Governor(
            policy=_Policy(answers),
            hooks=hooks,
            approvals="sqlite://",
            # verbose: the standard's events of hooks and phases, too
            telemetry=TelemetrySettings(sinks=(self.sink,), verbose=True),
        )
        for tool in setup["tools"]:
            options = dict(tool)
            body = self._body(options.pop("run"))
            self.tools[tool["name"]] = self.governor.govern(body, **options)

    def _body(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function without the parameter ``call``, which no model fills."""
        signature = inspect.signature(run, eval_str=True)
        parameters = dict(signature.parameters)
        takes_call = parameters.pop("call", None) is not None
        visible = signature.replace(parameters=list(parameters.values()))

        def body(*args: Any, **kwargs: Any) -> Any:
            arguments = visible.bind(*args, **kwargs).arguments
            self._stop_later()
            if takes_call:
                arguments["call"] = Call()
            return run(**arguments)

        body.__signature__ = visible  # type: ignore[attr-defined]
        body.__annotations__ = {
            name: parameter.annotation for name, parameter in parameters.items()
        }
        return body

    def _stop_later(self) -> None:
        call = current_call()
        if call is None or self.stop is None:
            return
        # from here on: on a busy machine a body may begin long after the call was made
        timer = threading.Timer(
            self.stop,
            self.governor.cancel,
            (call.invocation_id, "the scenario stops it"),
        )
        timer.start()


def _decision(stated: Data) -> Any:
    rule = stated["rule_ref"]
    reason = {
        "type": "rule",
        "rule_ref": rule,
        "message": stated["message"],
    }
    return decision(stated["behavior"], reason=reason, rule_refs=[rule])


def _updater(change: Callable[[Mapping[str, Any]], Any]) -> Callable[[Any], Any]:
    def update(context: Any) -> UpdatedInput | None:
        changed = change(context.arguments)
        if changed is None:
            return None
        return UpdatedInput(changed, "the scenario's hook")

    return update


_world = _World()


def declare(setup: Data) -> Sequence[JsonObject]:
    """Begin anew with the tools of a scenario."""
    global _world
    # the first scenario has nothing before it to close
    if _world.tools:
        _world.governor.close()
        _world.sink.close(_FLUSH_S)
    _world = _World()
    _world.begin(setup)
    return [tool.tool.declaration.to_json_object() for tool in _world.tools.values()]


def surface(request: Data) -> JsonObject:
    """Return the surface, or search it and load what is found."""
    world = _world
    with agent_context(**_CONTEXT):
        if "query" in request:
            found = world.governor.search(request["query"])
            world.governor.load([match["tool_id"] for match in found.matches])
            return found.to_json_object()
        scope = request.get("scope", "session")
        return world.governor.surface(scope).record().to_json_object()


def invoke(request: Data) -> Sequence[JsonObject]:
    """Run calls, answer the questions about them, and stop them after ``cancel_after`` seconds."""
    world = _world
    governor = world.governor
    world.stop = request.get("cancel_after")
    policy = None
    if "scheduler_policy" in request:
        stated = {"scheduler_policy_id": "conformance", **request["scheduler_policy"]}
        policy = SchedulerPolicy.from_json_object(stated)
    calls = [_batch_call(world, call) for call in request["calls"]]
    with agent_context(**_CONTEXT), agent_context(surface=governor.surface()):
        results = governor.batch(calls, policy=policy)
        world.stop = None
        if "answer" in request:
            results = [_answered(governor, result, request["answer"]) for result in results]
    return [result.to_json_object() for result in results]


def _batch_call(world: _World, call: Data) -> BatchCall:
    mappings = []
    for mapping in call.get("external_mappings", ()):
        mappings.append(ExternalMapping(**mapping))
    return BatchCall(
        world.tools[call["tool"]],
        call["arguments"],
        native_call_id=call.get("native_call_id"),
        depends_on=call.get("depends_on", ()),
        mappings=mappings,
    )


def _answered(governor: Governor, result: Any, answer: Data) -> Any:
    """Answer the question about a call, and return the result of its second run."""
    store = governor.approvals.store
    request = store.by_invocation(result.invocation_id)
    # a call that was allowed or denied has no question
    if request is None:
        return result
    store.answer(
        request.request_id,
        ApprovalAnswer(
            approved=answer["approved"],
            answered_by="user:conformance",
            reason=answer.get("reason", ""),
            edited_input=answer.get("arguments"),
        ),
    )
    return governor.resume(result.invocation_id)


def records() -> list[JsonObject]:
    """Return all records since the tools were declared."""
    if _world.tools:
        _world.sink.flush(_FLUSH_S)
    return list(_world.lines)
