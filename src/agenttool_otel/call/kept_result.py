"""The result of a rehearsed body beside its layer, for the process in which the answer is used."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any, Final

from agenttool_otel.enforcement import CommandResult, Violation

_PLAIN: Final = (str, int, float, bool, type(None))
_BYTES: Final = ("stdout", "stderr")
_FORMAT: Final = 1


def result_document(value: Any) -> dict[str, Any] | None:
    """Return a result as JSON data, or ``None`` for one that is no JSON data and no CommandResult.

    Args:
        value: what the body returned.
    """
    if type(value) is CommandResult:
        members = asdict(value)
        # JSON has no bytes
        for name in _BYTES:
            encoded = base64.b64encode(members[name])
            members[name] = encoded.decode("ascii")
        return _document("command", members)
    if _is_json(value):
        return _document("json", value)
    return None


def _document(kind: str, value: Any) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "kind": kind,
        "value": value,
    }


def result_value(document: Any) -> Any:
    """Return the result that a document holds.

    Args:
        document: what ``result_document`` returned.

    Raises:
        ValueError: it is no such document.
    """
    try:
        if document["format"] != _FORMAT:
            raise ValueError("the kept result has another format")
        value = document["value"]
        return _command_result(value) if document["kind"] == "command" else value
    except (TypeError, KeyError) as error:
        raise ValueError("no result was kept that another process can read") from error


def _command_result(members: dict[str, Any]) -> CommandResult:
    read = dict(members)
    for name in _BYTES:
        read[name] = base64.b64decode(read[name])
    violations = read.pop("violations")
    found = [Violation(**violation) for violation in violations]
    return CommandResult(**read, violations=tuple(found))


def _is_json(value: Any) -> bool:
    """Return whether a value reads back as itself: an enumeration or a tuple would not."""
    kind = type(value)
    if kind is dict:
        # {1: 2} would come back as {"1": 2}
        has_texts = all(type(name) is str for name in value)
        return has_texts and _is_json(list(value.values()))
    if kind is list:
        return all(map(_is_json, value))
    if kind is float:
        return bool(value - value == 0)  # nan and inf are no JSON
    return kind in _PLAIN
