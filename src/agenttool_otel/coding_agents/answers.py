"""The answers of a hook, in the form that an agent takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.coding_agents.dialects import AnswerForm, Dialect
from agenttool_otel.coding_agents.payloads import HookCall
from agenttool_otel.names import HookPart

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
    form = dialect.answers.deny
    request = dialect.answers.request
    if call.part is HookPart.PERMIT and request is not None:
        form = request.deny
    return _filled(form, call, reason=reason)


def allowed(dialect: Dialect, call: HookCall) -> HookOutput:
    """Return the answer by which the agent asks nobody: a person has agreed already.

    Args:
        dialect: the agent's dialect.
        call: the call, about which the agent is going to ask.
    """
    request = dialect.answers.request
    if request is None or request.allow is None:
        return SILENCE
    return _filled(request.allow, call)


def asked(dialect: Dialect, call: HookCall, reason: str) -> HookOutput | None:
    """Return the answer by which the agent asks a person; ``None`` where it is not known to ask.

    Args:
        dialect: the agent's dialect.
        call: the call.
        reason: what the person is shown.
    """
    form = dialect.answers.ask
    if form is None or not _is_known(form, call):
        return None
    if call.part is HookPart.PERMIT:
        return SILENCE  # its dialog is open
    return _filled(form, call, reason=reason)


def changed(dialect: Dialect, call: HookCall, arguments: Mapping[str, Any]) -> HookOutput | None:
    """Return the answer by which a call runs with other arguments; ``None`` where that is not
    certain: the agent may run those that it sent.

    Args:
        dialect: the agent's dialect.
        call: the call.
        arguments: those that were permitted.
    """
    form = dialect.answers.change
    if form is None or not can_change(dialect, call):
        return None
    sent = call.arguments or {}
    # {"command": "ls"} merged into {"command": "ls", "is_background": true}
    taken_away = sent.keys() - arguments.keys()
    if form.merges and taken_away:
        return None
    return _filled(form, call, arguments=arguments)


def can_change(dialect: Dialect, call: HookCall) -> bool:
    """Return whether an agent is known to take other arguments for a call.

    Args:
        dialect: the agent's dialect.
        call: the call.
    """
    form = dialect.answers.change
    if form is None or call.part is HookPart.PERMIT:
        return False
    # what was decided beside them, as the paths of a patch, is no argument
    return call.decided == call.arguments and _is_known(form, call)


def _is_known(form: AnswerForm, call: HookCall) -> bool:
    """Return whether an answer is known to work in the agent's permission mode."""
    return not form.modes or call.mode in form.modes


def _filled(
    form: AnswerForm,
    call: HookCall,
    *,
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> HookOutput:
    # an empty reason lets the call run in three agents
    words = reason.split() or ["not permitted"]
    shown = " ".join(words)[:_MAX_REASON_CHARS]
    if form.stdout is None:
        return HookOutput(form.exit, "", shown)
    values = {
        "{event}": call.event,
        "{reason}": shown,
        "{arguments}": arguments,
    }
    answer = _replaced(form.stdout, values)
    return HookOutput(form.exit, json.dumps(answer), "")


def _replaced(value: Any, values: Mapping[str, Any]) -> Any:
    """Return an answer with the texts that stand for something replaced."""
    if isinstance(value, str):
        return values.get(value, value)
    if not isinstance(value, Mapping):
        return value
    answer = {}
    for name, item in value.items():
        answer[name] = _replaced(item, values)
    return answer
