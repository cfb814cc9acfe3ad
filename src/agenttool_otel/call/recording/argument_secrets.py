"""The secrets of one call's own arguments, so that they are also masked where the tool repeats them.

A value that only a contract, a policy or the name of its argument marks as secret looks like any
other word once a tool quotes it in its result or its exception: no detector can recognise it there.
The call holds it, so these very values are looked for, as they are and in the usual encodings.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from agenttool_otel.call.argument_mask import MAX_CHARS, MIN_CHARS, ArgumentMask
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.redaction import Redacted, Redactor
from agenttool_otel.redaction.placeholders import Placeholders
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.inspection import mro_names

_logger = logging.getLogger("agenttool_otel.redaction")


def mask_of(call: Invocation, redactor: Redactor) -> ArgumentMask | None:
    """Return the masks of a call's own secrets; ``None`` when its arguments hold none.

    They are worked out once for as long as nothing that they come from changes, and only for calls
    of which something is shown or kept.
    """
    pointers = secret_pointers(call)
    if call.argument_mask is not None:
        permission_input, bound, earlier_pointers, mask = call.argument_mask
        is_same_input = permission_input is call.inputs.permission_input
        if is_same_input and bound is call.inputs.bound and earlier_pointers == pointers:
            return mask
    mask = None
    try:
        mask = new_mask(call, redactor, redacted_input(call, redactor))
    except Exception as error:
        # What breaks this look breaks the redactor too, and then content is withheld everywhere.
        _logger.debug("the call's own secrets can't be found: %s", type(error).__name__)
    call.argument_mask = (call.inputs.permission_input, call.inputs.bound, pointers, mask)
    return mask


def new_mask(call: Invocation, redactor: Redactor, redacted: Redacted) -> ArgumentMask | None:
    """Return the masks of what a redactor takes out of a call's arguments; nothing is kept of it.

    Args:
        call: the call.
        redactor: what finds the secrets.
        redacted: the permission input as this redactor leaves it.
    """
    values = _secrets(call, redactor, redacted)
    return ArgumentMask(values, Placeholders(redactor.settings)) if values else None


def cleaner_of(
    call: Invocation, redactor: Redactor, clean: Callable[[str], str]
) -> Callable[[str], str]:
    """Return what cleans a text of this call: its own secrets first, then those that
    detectors find.
    """
    if (mask := mask_of(call, redactor)) is None:
        return clean
    return lambda text: clean(mask.text(text))


def secret_pointers(call: Invocation) -> tuple[str, ...]:
    """Return which arguments are secret by contract, or by the decision in force."""
    verdict = call.decision.verdict
    if verdict is None or not verdict.redact_input:
        return call.spec.sensitive
    return (*call.spec.sensitive, *verdict.redact_input)


def redacted_input(call: Invocation, redactor: Redactor) -> Redacted:
    """Return the permission input redacted; once for as long as it and what is secret of it stay
    the same.
    """
    pointers = secret_pointers(call)
    permission_input = call.inputs.permission_input
    if call.redacted_input is not None:
        earlier_input, earlier_pointers, redacted = call.redacted_input
        if earlier_input is permission_input and earlier_pointers == pointers:
            return redacted
    redacted = redactor.redact(permission_input, pointers=pointers)
    call.redacted_input = (permission_input, pointers, redacted)
    return redacted


def _secrets(call: Invocation, redactor: Redactor, permitted: Redacted) -> set[str]:
    pointers = secret_pointers(call)
    placeholder = re.compile(Placeholders(redactor.settings).pattern.pattern.decode("utf-8"))
    found: set[str] = set()
    for arguments in _distinct_inputs(call):
        if arguments is call.inputs.permission_input:
            redacted = permitted
        else:
            redacted = redactor.redact(arguments, pointers=pointers)
        if redacted.redactions:
            _differences(arguments, redacted.value, placeholder, found)
    for name, value in call.inputs.bound.items():
        secret = _bound_secret(call, name, value, redactor)
        if secret is not None:
            found.add(secret)
    secrets = set()
    for value in found:
        # "[redacted:secret]" comes from an input that was redacted before, as on resume
        if MIN_CHARS <= len(value) <= MAX_CHARS and placeholder.fullmatch(value) is None:
            secrets.add(value)
    return secrets


def _distinct_inputs(call: Invocation) -> list[dict[str, Any]]:
    inputs = call.inputs
    distinct: list[dict[str, Any]] = []
    for arguments in (inputs.permission_input, inputs.model_input, inputs.observable_input):
        if arguments and arguments not in distinct:
            distinct.append(arguments)
    return distinct


def _bound_secret(call: Invocation, name: str, value: Any, redactor: Redactor) -> str | None:
    """Return the text of a Python argument that is secret by its name or its type."""
    if type(value) is str:
        if name in call.inputs.permission_input:
            return None  # looked at as part of the input
        # an internal argument, which no model sees: its name alone marks it
        redacted = redactor.redact({name: value})
        return value if redacted.redactions else None
    classes = {word.rpartition(".")[2] for word in mro_names(type(value))}
    if classes.isdisjoint({"SecretStr", "SecretBytes"}):
        return None
    secret = value.get_secret_value()  # of pydantic
    if isinstance(secret, str):
        return secret
    return bytes(secret).decode("utf-8", "replace")


def _differences(before: Any, after: Any, placeholder: re.Pattern[str], found: set[str]) -> None:
    """Find what redaction took out of a value, at all depths."""
    if _are_alike(before, after, dict):
        _members(before, after, placeholder, found)
        return
    if _are_alike(before, after, (list, tuple)):
        for old, new in zip(before, after, strict=True):
            _differences(old, new, placeholder, found)
        return
    if type(before) is type(after) and before == after:
        return
    if isinstance(before, str) and isinstance(after, str):
        _parts(before, after, placeholder, found)
    else:
        _leaves(before, found)  # 123456 became "[redacted:secret]", or a list was cut


def _are_alike(before: Any, after: Any, kind: Any) -> bool:
    if not isinstance(before, kind) or not isinstance(after, kind):
        return False
    return len(before) == len(after)


def _members(
    before: dict[Any, Any],
    after: dict[Any, Any],
    placeholder: re.Pattern[str],
    found: set[str],
) -> None:
    new_items = iter(after.items())
    for key, old in before.items():
        new_key, new = next(new_items)
        # {"AKIA...": 1}: a key may be a secret, too
        if key != new_key and isinstance(key, str):
            _parts(key, str(new_key), placeholder, found)
        _differences(old, new, placeholder, found)


def _parts(before: str, after: str, pattern: re.Pattern[str], found: set[str]) -> None:
    """Find what was taken out of a text by lining it up with what is left."""
    kept = pattern.split(after)
    position = len(kept[0])
    if not before.startswith(kept[0]):
        return
    # "login <placeholder> now" is left of "login p4ss now": what stands between is the secret
    for part in kept[1:-1]:
        end = before.find(part, position) if part else -1
        if end < position:
            return
        found.add(before[position:end].strip("\"' "))
        position = end + len(part)
    if len(kept) == 1 or not before.endswith(kept[-1]):
        return
    end = len(before) - len(kept[-1])
    if end >= position:
        found.add(before[position:end].strip("\"' "))


def _leaves(value: Any, found: set[str]) -> None:
    if type(value) is str:
        found.add(value)
    elif type(value) in (int, float):
        found.add(str(value))
    elif type(value) is dict:
        for item in value.values():
            _leaves(item, found)
    elif type(value) in (list, tuple):
        for item in value:
            _leaves(item, found)


def plain(value: Any) -> Any:
    """Return a value as plain data, a text as it is."""
    return value if type(value) is str else to_json_value(value)
