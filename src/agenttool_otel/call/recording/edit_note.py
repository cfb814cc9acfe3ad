"""The note to a model about a person's edit: its own message still holds the arguments that it asked
for.
"""

from __future__ import annotations

import json
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.argument_secrets import redacted_input
from agenttool_otel.names import MutationSource
from agenttool_otel.redaction import Redactor
from agenttool_otel.values.pointers import unescape_token

_MAX_FIELDS: Final = 10
_MAX_VALUE_CHARS: Final = 200
_GONE: Final = object()


def edit_note(call: Invocation, redactor: Redactor) -> str | None:
    """Describe which arguments of a call a person changed, and to what, without a secret.

    Args:
        call: the call, decided.
        redactor: redacts the arguments.

    Returns:
        The sentence, ``None`` where nobody changed anything.
    """
    fields = _edited_fields(call)
    if not fields:
        return None
    try:
        shown: Any = redacted_input(call, redactor).value
    except Exception:
        shown = None  # what can't be redacted is not shown
    changes = [_field(pointer, shown) for pointer in fields[:_MAX_FIELDS]]
    if len(fields) > _MAX_FIELDS:
        changes.append(f"{len(fields) - _MAX_FIELDS} more changed")
    return f"A person changed the arguments of this call: {'; '.join(changes)}. Do not repeat the call as you made it."


def _edited_fields(call: Invocation) -> list[str]:
    edits = [
        change
        for change in call.inputs.mutations
        if change.source_type is MutationSource.PERMISSION_PROMPT
    ]
    return list(dict.fromkeys(pointer for change in edits for pointer in change.changed_fields))


def _field(pointer: str, arguments: Any) -> str:
    name = unescape_token(pointer.removeprefix("/")) or "all of them"
    if arguments is None or not pointer:
        return f"{name} changed"
    value = _value_at(pointer, arguments)
    if value is _GONE:
        return f"{name} was removed"
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _MAX_VALUE_CHARS:
        return f"{name} changed to a value of {len(text)} characters"
    return f"{name} is now {text}"


def _value_at(pointer: str, value: Any) -> Any:
    for token in pointer.split("/")[1:]:
        key = unescape_token(token)
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _GONE
    return value
