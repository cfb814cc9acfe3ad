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
_WHO: Final[dict[str, Any]] = {"actor": "agent:conformance", "session_id": "conformance"}


class _Policy(StaticEngine):
    """Decides as the scenario says, and lets every tool be seen."""

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        if entry_point == EntryPoint.DECISION:
            return super().evaluate(entry_point, document, timeout=timeout)
        return EngineAnswer(True, self.revision)


class Call:
    """What a tool's body may do beside returning."""

    def progress(self, percent: float, message: str) -> None:
        """Tell how far it has come."""
        report_progress(percent, message)

    @property
    def canceled(self) -> bool:
        """Whether it is to stop."""
        call = current_call()
        return call is not None and call.canceled


@dataclass
class _World:
    lines: list[JsonObject] = field(default_factory=list)
    stop: float | None = None  # seconds after which a body that began is stopped
    tools: dict[str, Any] = field(default_factory=dict)

    def begin(self, setup: Data) -> None:
        """Make a Governor with the tools of a scenario."""
        answers: dict[str, Any] = {
            tool["name"]: decision(Behavior.ALLOW) for tool in setup["tools"]
        }
        for name, stated in setup.get("decisions", {}).items():
            reason = {"type": "rule", "rule_ref": stated["rule_ref"], "message": stated["message"]}
            answers[name] = decision(
                stated["behavior"], reason=reason, rule_refs=[stated["rule_ref"]]
            )
        hooks = Hooks()
        for name, change in setup.get("input_hooks", {}).items():
            hooks.add(_updater(change), "pre_tool_use", tool=name, hook_id=f"{name}_hook")
        self.sink = CallbackSink(self.lines.append)
        self.governor = Governor(
            policy=_Policy(answers),
            hooks=hooks,
            approvals="sqlite://",
            telemetry=TelemetrySettings(sinks=(self.sink,), verbose=True),
        )
        for tool in setup["tools"]:
            options = {name: value for name, value in tool.items() if name != "run"}
            self.tools[tool["name"]] = self.governor.govern(self._body(tool["run"]), **options)

    def _body(self, run: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(run, eval_str=True)
        visible = [parameter for name, parameter in signature.parameters.items() if name != "call"]

        def body(*args: Any, **kwargs: Any) -> Any:
            arguments = signature.replace(parameters=visible).bind(*args, **kwargs).arguments
            if (call := current_call()) is not None and self.stop is not None:
                # from here on: on a busy machine a body may begin long after the call was made
                threading.Timer(
                    self.stop, self.governor.cancel, (call.invocation_id, "the scenario stops it")
                ).start()
            return (
                run(call=Call(), **arguments)
                if len(visible) < len(signature.parameters)
                else run(**arguments)
            )

        body.__signature__ = signature.replace(parameters=visible)  # type: ignore[attr-defined]
        body.__annotations__ = {parameter.name: parameter.annotation for parameter in visible}
        return body


def _updater(change: Callable[[Mapping[str, Any]], Any]) -> Callable[[Any], Any]:
    def update(context: Any) -> UpdatedInput | None:
        changed = change(context.arguments)
        return None if changed is None else UpdatedInput(changed, "the scenario's hook")

    return update


_world = _World()


def declare(setup: Data) -> Sequence[JsonObject]:
    """Begin anew with the tools of a scenario."""
    global _world
    if _world.tools:
        _world.governor.close()
        _world.sink.close(_FLUSH_S)
    _world = _World()
    _world.begin(setup)
    return [tool.tool.declaration.to_json_object() for tool in _world.tools.values()]


def surface(request: Data) -> JsonObject:
    """Return the surface, or search it and load what is found."""
    world = _world
    with agent_context(**_WHO):
        if "query" in request:
            found = world.governor.search(request["query"])
            world.governor.load([match["tool_id"] for match in found.matches])
            return found.to_json_object()
        return world.governor.surface(request.get("scope", "session")).record().to_json_object()


def invoke(request: Data) -> Sequence[JsonObject]:
    """Run calls, answer what they ask, and stop them where the scenario says so."""
    world = _world
    governor, world.stop = world.governor, request.get("cancel_after")
    policy = None
    if "scheduler_policy" in request:
        policy = SchedulerPolicy.from_json_object(
            {"scheduler_policy_id": "conformance", **request["scheduler_policy"]}
        )
    calls = [
        BatchCall(
            world.tools[call["tool"]],
            call["arguments"],
            native_call_id=call.get("native_call_id"),
            depends_on=call.get("depends_on", ()),
            mappings=[ExternalMapping(**mapping) for mapping in call.get("external_mappings", ())],
        )
        for call in request["calls"]
    ]
    with agent_context(**_WHO), agent_context(surface=governor.surface()):
        results = governor.batch(calls, policy=policy)
        world.stop = None
        if "answer" in request:
            results = [_answered(governor, result, request["answer"]) for result in results]
    return [result.to_json_object() for result in results]


def _answered(governor: Governor, result: Any, answer: Data) -> Any:
    if (request := governor.approvals.store.by_invocation(result.invocation_id)) is None:
        return result
    said = ApprovalAnswer(
        approved=answer["approved"],
        answered_by="user:conformance",
        reason=answer.get("reason", ""),
        edited_input=answer.get("arguments"),
    )
    governor.approvals.store.answer(request.request_id, said)
    return governor.resume(result.invocation_id)


def records() -> list[JsonObject]:
    """Return all records since the tools were declared."""
    if _world.tools:
        _world.sink.flush(_FLUSH_S)
    return list(_world.lines)
