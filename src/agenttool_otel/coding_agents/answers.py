"""The answers of a hook, in the form that an agent takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.coding_agents.dialects import AnswerForm, Dialect
from agenttool_otel.coding_agents.payloads import HookCall

_MAX_REASON_CHARS: Final = 2_000


class HookOutput(NamedTuple):
    """What the client prints, and how it ends."""

    exit: int = 0
    stdout: str = ""
    stderr: str = ""


SILENCE: Final = HookOutput()
"""The call may run, as far as the hook is concerned."""


def denied(dialect: Dialect, call: HookCall, reason: str) -> HookOutput:
    """Return the answer to a call that may not run.

    Args:
        dialect: the agent's dialect.
        call: the call.
        reason: why, for the model.
    """
    return _filled(dialect.answers.deny, call, reason=reason)


def asked(dialect: Dialect, call: HookCall, reason: str) -> HookOutput | None:
    """Return the answer by which the agent asks a person; ``None`` where it is not known to ask.

    Args:
        dialect: the agent's dialect.
        call: the call.
        reason: what the person is shown.
    """
    form = dialect.answers.ask
    if form is None or (form.modes and call.mode not in form.modes):
        return None
    return _filled(form, call, reason=reason)


def changed(dialect: Dialect, call: HookCall, arguments: Mapping[str, Any]) -> HookOutput | None:
    """Return the answer by which a call runs with other arguments; ``None`` where that is not
    certain: the agent may run those that it sent.

    Args:
        dialect: the agent's dialect.
        call: the call.
        arguments: those that were permitted.
    """
    form, sent = dialect.answers.change, call.arguments or {}
    if form is None or call.decided != sent:
        return None
    # {"command": "ls"} merged into {"command": "ls", "is_background": true}
    if form.merges and not sent.keys() <= arguments.keys():
        return None
    return _filled(form, call, arguments=arguments)


def _filled(
    form: AnswerForm,
    call: HookCall,
    *,
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> HookOutput:
    # an empty reason lets the call run in three agents
    shown = " ".join(reason.split())[:_MAX_REASON_CHARS] or "not permitted"
    values = {"{event}": call.event, "{reason}": shown, "{arguments}": arguments}
    if form.stdout is None:
        return HookOutput(form.exit, "", shown)
    return HookOutput(form.exit, json.dumps(_replaced(form.stdout, values)), "")


def _replaced(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _replaced(item, values) for name, item in value.items()}
    return values.get(value, value) if isinstance(value, str) else value
