"""What the tools of a scenario do: the body of this package's tools, from a list of actions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agenttool_otel import current_call, report_progress
from agenttool_otel.records.base import JsonObject

_TOGETHER_S: Final = 10.0  # for calls that wait for each other
_LOOK_S: Final = 0.01  # between two looks for a request to cancel


class Bodies:
    """The bodies of one scenario, and what they did."""

    def __init__(self) -> None:
        self.ran: list[JsonObject] = []  # bodies that began and notes, oldest first
        self._barriers: dict[str, threading.Barrier] = {}
        self._lock = threading.Lock()

    def run(self, tool: str, actions: Sequence[JsonObject], arguments: Mapping[str, Any]) -> Any:
        """Run a tool's body.

        Args:
            tool: the tool's name.
            actions: the tool's ``behavior``.
            arguments: what the call got.

        Raises:
            RuntimeError: the behavior is to fail.
            ConnectionError: the behavior is to fail because a dependency is not there.
        """
        self.ran.append(_began(tool, arguments))
        for action in actions:
            [(kind, value)] = action.items()
            if kind == "return":
                return _filled(value, arguments)
            if kind == "return_repeated":
                return value["text"] * value["times"]
            if kind == "return_content":
                return value
            self._do(tool, kind, value, arguments)
        return None

    def _do(self, tool: str, kind: str, value: Any, arguments: Mapping[str, Any]) -> None:
        match kind:
            case "note":
                self.ran.append({"tool": tool, "note": _filled(value, arguments)})
            case "sleep_ms":
                time.sleep(value / 1000)
            case "wait_for_cancel_ms":
                _wait_for_cancel(value / 1000)
            case "report":
                report_progress(value.get("percent"), value.get("message", ""))
            case "wait_for":
                self._barrier(tool, value).wait(_TOGETHER_S)
            case "fail":
                raise _failure(value)
            case _:
                raise NotImplementedError(f"the action {kind}")

    def _barrier(self, tool: str, calls: int) -> threading.Barrier:
        with self._lock:
            if tool not in self._barriers:
                self._barriers[tool] = threading.Barrier(calls)
            return self._barriers[tool]


def _began(tool: str, arguments: Mapping[str, Any]) -> JsonObject:
    entry = {"tool": tool, "arguments": dict(arguments)}
    call = current_call()
    if call is not None:
        entry["invocation_id"] = call.invocation_id
    return entry


def _filled(value: Any, arguments: Mapping[str, Any]) -> Any:
    """Put arguments in the place of their names: "{path} is gone"."""
    if not isinstance(value, str):
        return value
    for name, argument in arguments.items():
        text = argument
        if not isinstance(text, str):
            text = json.dumps(argument)
        value = value.replace(f"{{{name}}}", text)
    return value


def _wait_for_cancel(seconds: float) -> None:
    call = current_call()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if call is not None:
            call.raise_if_canceled()
        time.sleep(_LOOK_S)


def _failure(stated: JsonObject) -> Exception:
    message = stated["message"]
    if stated.get("error_class") == "dependency_unavailable":
        return ConnectionError(message)
    return RuntimeError(message)
