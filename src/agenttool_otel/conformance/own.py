"""This package as a subject: the methods of the protocol, on a Governor of its own."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    Governor,
    SchedulerPolicy,
    TelemetrySettings,
    agent_context,
    current_call,
)
from agenttool_otel.conformance.behavior import Bodies
from agenttool_otel.hooks import Hooks, Stop, UpdatedInput
from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.policy.engines.static import StaticEngine, decision
from agenttool_otel.policy.types import EngineAnswer
from agenttool_otel.records import ExternalMapping, ToolResult
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.telemetry.telemetry import package_version

_FLUSH_S: Final = 10.0
_QUEUE: Final = 100_000  # entries that may wait for the sink
_CONTEXT: Final[dict[str, Any]] = {
    "actor": "agent:conformance",
    "session_id": "conformance",
}
# the standard's fields that `govern` takes under another name; it has the standard's for the others
_OPTIONS: Final = {
    "is_read_only": "read_only",
    "is_destructive": "destructive",
    "is_open_world": "open_world",
    "is_concurrency_safe": "concurrency_safe",
    "should_defer": "defer",
    "requires_setup": "requires",
    "required_credentials": "credentials",
}


class ScenarioPolicy(StaticEngine):
    """Decides as a scenario states, and shows every tool.

    Args:
        answers: decision documents by tool name.
        conditions: by tool name, the arguments of the calls that a document is about; a call with
            others is allowed.
    """

    def __init__(
        self,
        answers: Mapping[str, Any],
        conditions: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(answers)
        self._conditions = conditions or {}

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        """Answer.

        Args:
            entry_point: the rule that is asked for.
            document: the input.
            timeout: not used.
        """
        if entry_point != EntryPoint.DECISION:
            return EngineAnswer(True, self.revision)
        condition = self._conditions.get(document["tool"]["name"], {})
        if not _fits(condition, document["input"]):
            return EngineAnswer(decision(Behavior.ALLOW), self.revision)
        return super().evaluate(entry_point, document, timeout=timeout)


class OwnSubject:
    """This package behind the protocol."""

    def __init__(self) -> None:
        self._world: _World | None = None

    def request(self, method: str, params: JsonObject) -> Any:
        """Return the result of a request.

        Args:
            method: a method of the protocol.
            params: its content.

        Raises:
            NotImplementedError: there is no such method.
        """
        match method:
            case "initialize":
                return {"name": "agenttool-otel", "version": package_version()}
            case "declare":
                self.close()
                self._world = _World(params)
                return {"declarations": self._world.declarations()}
            case "surface" | "search" | "load" | "invoke" | "answer" | "records":
                return getattr(self._world, method)(params)
        raise NotImplementedError(f"the method {method}")

    def close(self) -> None:
        """End what the last ``declare`` began."""
        if self._world is not None:
            self._world.close()
            self._world = None


class _World:
    """The tools, the policy and the records of one scenario."""

    def __init__(self, setup: JsonObject) -> None:
        self._lines: list[JsonObject] = []
        self._bodies = Bodies()
        self._cancel: JsonObject = {}
        self._spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        # no record may be lost on a slow machine
        self._sink = CallbackSink(self._lines.append, queue=_QUEUE)
        self._governor = Governor(
            policy=ScenarioPolicy(_answers(setup), _conditions(setup)),
            hooks=_hooks(setup),
            approvals="sqlite://",
            # verbose: the standard's events of hooks and phases, too
            telemetry=TelemetrySettings(
                tracer_provider=provider,
                sinks=(self._sink,),
                verbose=True,
            ),
        )
        self._tools: dict[str, Any] = {}
        for tool in setup["tools"]:
            self._tools[tool["name"]] = self._governor.govern(self._body(tool), **_options(tool))
        for name in setup.get("pending_providers", ()):
            self._governor.catalog.pending(name)

    def close(self) -> None:
        self._governor.close()
        self._sink.close(_FLUSH_S)

    def declarations(self) -> list[JsonObject]:
        return [tool.tool.declaration.to_json_object() for tool in self._tools.values()]

    def surface(self, params: JsonObject) -> JsonObject:
        with agent_context(**_CONTEXT):
            surface = self._governor.surface(
                params["scope"],
                model=params.get("model_capabilities"),
                requires=params.get("capability_requirements", ()),
            )
            return {"surface": surface.record().to_json_object()}

    def search(self, params: JsonObject) -> JsonObject:
        with agent_context(**_CONTEXT):
            found = self._governor.search(params["query"])
        return {"search_result": found.to_json_object()}

    def load(self, params: JsonObject) -> JsonObject:
        with agent_context(**_CONTEXT):
            surface = self._governor.load(params["names"])
        wanted = {self._tools[name].tool.spec.tool_id for name in params["names"]}
        return {"loaded": [each for each in surface.record().loaded_tools if each in wanted]}

    def invoke(self, params: JsonObject) -> JsonObject:
        policy = None
        if "scheduler_policy" in params:
            stated = {"scheduler_policy_id": "conformance", **params["scheduler_policy"]}
            policy = SchedulerPolicy.from_json_object(stated)
        self._cancel = params.get("cancel", {})
        calls = [self._call(call) for call in params["calls"]]
        with agent_context(**_CONTEXT), agent_context(surface=self._governor.surface()):
            results = self._governor.batch(calls, policy=policy)
        self._cancel = {}
        return {"calls": [_ended(result) for result in results]}

    def answer(self, params: JsonObject) -> JsonObject:
        store = self._governor.approvals.store
        request = store.by_invocation(params["invocation_id"])
        if request is None:
            raise LookupError("no call of this id waits for an answer")
        answer = ApprovalAnswer(
            approved=params["approved"],
            answered_by="user:conformance",
            reason=params.get("reason", ""),
            edited_input=params.get("arguments"),
        )
        store.answer(request.request_id, answer)
        with agent_context(**_CONTEXT), agent_context(surface=self._governor.surface()):
            return _ended(self._governor.resume(params["invocation_id"]))

    def records(self, params: JsonObject) -> JsonObject:
        self._sink.flush(_FLUSH_S)
        spans = [_span_line(span) for span in self._spans.get_finished_spans()]
        return {"records": [*self._lines, *spans], "ran": self._bodies.ran}

    def _call(self, call: JsonObject) -> BatchCall:
        mappings = []
        for mapping in call.get("external_mappings", ()):
            mappings.append(ExternalMapping(**mapping))
        return BatchCall(
            # the name of a tool that there is not goes as it is
            self._tools.get(call["tool"], call["tool"]),
            call["arguments"],
            native_call_id=call.get("native_call_id"),
            depends_on=call.get("depends_on", ()),
            mappings=mappings,
        )

    def _body(self, tool: JsonObject) -> Callable[..., Any]:
        def body(**arguments: Any) -> Any:
            if self._cancel.get("tool") == tool["name"]:
                self._cancel_later()
            return self._bodies.run(tool["name"], tool["behavior"], arguments)

        body.__signature__ = _signature(tool)  # type: ignore[attr-defined]
        return body

    def _cancel_later(self) -> None:
        call = current_call()
        if call is None:
            return
        # from here on: on a busy machine a body may begin long after the call was made
        timer = threading.Timer(
            self._cancel["after_ms"] / 1000,
            self._governor.cancel,
            (call.invocation_id, "the scenario cancels it"),
        )
        timer.start()


def _signature(tool: JsonObject) -> inspect.Signature:
    """Any arguments, and the internal ones, which are in no schema for models."""
    parameters = []
    for name in tool.get("internal_only_fields", ()):
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None))
    parameters.append(inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _answers(setup: JsonObject) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for tool in setup["tools"]:
        answers[tool["name"]] = decision(Behavior.ALLOW)
    for name, stated in setup.get("decisions", {}).items():
        rules = [stated["reason"]["rule_ref"]]
        answers[name] = decision(stated["behavior"], reason=stated["reason"], rule_refs=rules)
    return answers


def _conditions(setup: JsonObject) -> dict[str, JsonObject]:
    found = {}
    for name, stated in setup.get("decisions", {}).items():
        found[name] = stated.get("when", {})
    return found


def _fits(condition: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments have the values of a ``when``."""
    return all(arguments.get(name) == value for name, value in condition.items())


def _options(tool: JsonObject) -> dict[str, Any]:
    """The keyword arguments of ``govern`` for a tool of a scenario."""
    options: dict[str, Any] = {"namespace": "conformance"}
    for field, value in tool.items():
        if field not in ("behavior", "value_validation"):
            options[_OPTIONS.get(field, field)] = value
    if "value_validation" in tool:
        options["validate"] = partial(_validate, tool["value_validation"])
    return options


def _validate(stated: JsonObject, arguments: Mapping[str, Any]) -> None:
    if re.search(stated["forbidden_pattern"], arguments[stated["argument"]]):
        raise ValueError("the tool refuses this value")


def _hooks(setup: JsonObject) -> Hooks:
    hooks = Hooks()
    for stated in setup.get("hooks", ()):
        hooks.add(
            partial(_hook, stated),
            stated["hook_event"],
            tool=stated["tool"],
            hook_id=stated["hook_id"],
        )
    return hooks


def _hook(stated: JsonObject, context: Any) -> UpdatedInput | Stop | None:
    arguments = dict(context.arguments)
    if not _fits(stated.get("when", {}), arguments):
        return None
    [(kind, value)] = stated["behavior"].items()
    match kind:
        case "set":
            return UpdatedInput({**arguments, **value}, "the scenario's hook")
        case "stop":
            return Stop(value)
        case "fail":
            raise RuntimeError(value)
    return None


def _ended(result: ToolResult) -> JsonObject:
    return {"invocation_id": result.invocation_id, "result": result.to_json_object()}


def _span_line(span: ReadableSpan) -> JsonObject:
    events = []
    for event in span.events:
        events.append({"name": event.name, "attributes": dict(event.attributes or {})})
    record = {
        "name": span.name,
        "attributes": dict(span.attributes or {}),
        "events": events,
        "status": span.status.description or "",
    }
    return {"object": "span", "record": record}
