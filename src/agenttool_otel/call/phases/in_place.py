"""Arguments that a tool changes in place.

A tool runs with copies, so that what runs is what was decided, and what it changes in them its
caller never sees. The first calls of a tool are watched for that, and a change is logged once for each
argument. An argument that the tool declares ``by_reference`` is the caller's object, if it still is
what was decided when the body begins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.conversion import to_json_value

WATCHED_CALLS: Final = 20
"""How many calls of a tool with arguments that can change are compared."""
_MAX_NODES: Final = 2000
_MAX_CHARS: Final = 50_000
_logger = logging.getLogger("agenttool_otel.call")


class Original(NamedTuple):
    """An argument of a Python call as its caller holds it."""

    value: Any  # the caller's object
    digest: str  # of the copy that was made of it; only of what is handed over by reference


def keep_originals(call: Invocation, given: Mapping[str, Any]) -> None:
    """Keep the caller's objects beside the copies that were made of them.

    Args:
        call: the call; its ``bound`` holds the copies.
        given: the arguments by name, as the caller gave them.
    """
    by_reference = call.spec.by_reference
    for name, value in given.items():
        copied = call.inputs.bound.get(name)
        if copied is not value:
            call.originals[name] = Original(value, digest(copied) if name in by_reference else "")


def hand_over(call: Invocation) -> str | None:
    """Put the caller's own objects into a call that is about to run, where its tool takes them by
    reference.

    What a hook or a person changed since is what was decided, and stays.

    Returns:
        The argument that the caller changed after it was read, so that it is not what was decided;
        else ``None``.
    """
    parameters, bound = call.spec.parameters, dict(call.inputs.bound)
    for name in call.spec.by_reference & call.originals.keys() & bound.keys():
        original = call.originals[name]
        decided = digest(bound[name])
        if digest(original.value) == decided:
            bound[name] = original.value
        # no hook and no person changed the copy since, so it is the caller's object that did
        elif decided == original.digest:
            return name
    if parameters is not None:
        call.inputs.bound = bound
        call.call_args, call.call_kwargs = parameters.unbind(bound)
    return None


def watch(call: Invocation) -> dict[str, Any] | None:
    """Return what the copied arguments of a call hold before its body, if this call of its tool is
    one to watch.
    """
    spec = call.spec
    if spec.watched_calls >= WATCHED_CALLS:
        return None
    spec.watched_calls += 1
    names = [
        name
        for name, original in call.originals.items()
        if call.inputs.bound.get(name) is not original.value
    ]
    return {
        name: _content(call.inputs.bound[name])
        for name in names
        if name in call.inputs.bound and name not in spec.warned_of
    }


def warn_of_changes(call: Invocation, before: Mapping[str, Any]) -> None:
    """Log which arguments the body changed in place: it changed copies, and nobody would see."""
    for name, content in before.items():
        if name in call.spec.warned_of or _content(call.inputs.bound.get(name)) == content:
            continue
        call.spec.warned_of.add(name)
        _logger.warning(
            "%s changed its argument %r; the caller's is unchanged; state by_reference=[%r]",
            call.spec.tool_id,
            name,
            name,
        )


def _content(value: Any) -> Any:
    return to_json_value(value, max_nodes=_MAX_NODES, max_chars=_MAX_CHARS)
