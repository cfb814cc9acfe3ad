"""The secrets of one call's own arguments, so that they are also masked where the tool repeats them.

A value that only a contract, a policy or the name of its argument marks as secret looks like any other word once a tool
quotes it in its result or its exception: no detector can know it there. The call knows it, so it looks for these very
values, as they are and in the usual encodings.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, quote_plus

from agenttool_otel.invocation import Invocation
from agenttool_otel.records.inspection import mro_names
from agenttool_otel.records.values import to_json_value
from agenttool_otel.redaction import Redactor
from agenttool_otel.redaction.placeholders import Placeholders
from agenttool_otel.redaction.types import Redaction

__all__ = ["KIND", "MIN_CHARS", "Echoes", "cleaner_of", "echoes_of", "plain", "quotes"]

_logger = logging.getLogger("agenttool_otel.redaction")

KIND: Final = "argument"
"""Kind of these redactions."""

MIN_CHARS: Final = 6
"""Shorter values are left alone: masking every ``no`` or ``1234`` of a result would destroy it and hide little."""

_MIN_LINE: Final = 16
_MAX_LOOKED: Final = 64
_WORDS: Final = re.compile(rf"\w{{{MIN_CHARS},}}")
_MAX_VALUES: Final = 64
_MAX_CHARS: Final = 65_536
_MAX_NODES: Final = 200_000


class Echoes:
    """Masks certain values wherever they occur.

    Args:
        values: the values.
        placeholder: what takes their place.
    """

    __slots__ = ("_forms", "_placeholder")

    found: ClassVar[Redaction] = Redaction(KIND, "", "echo", 1)
    """What is told of masks: that there were some."""

    def __init__(self, values: Iterable[str], placeholder: str) -> None:
        forms: set[str] = set()
        for value in list(values)[:_MAX_VALUES]:
            forms |= _forms(value)
        self._placeholder = placeholder
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Mask a text.

        Args:
            text: any text.
        """
        for form in self._forms:
            if form in text:
                text = text.replace(form, self._placeholder)
        return text

    def value(self, value: Any) -> Any:
        """Mask plain data; what needs no change may be returned as it is.

        Args:
            value: JSON-like data, or a text.
        """
        return self._value(value, [_MAX_NODES])

    def _value(self, value: Any, left: list[int]) -> Any:
        left[0] -= 1
        if left[0] < 0:
            return value if value is None or type(value) in (bool, int, float) else "[omitted:too_many]"
        cls = type(value)
        if cls is str:
            return self.text(value)
        if cls is dict:
            return {self.text(k) if type(k) is str else k: self._value(v, left) for k, v in value.items()}
        if cls is list:
            return [self._value(item, left) for item in value]
        if cls is tuple:
            return tuple(self._value(item, left) for item in value)
        if cls in (int, float) and str(value) in self._forms:
            return self._placeholder
        return value


def echoes_of(call: Invocation, redactor: Redactor) -> Echoes | None:
    """Return the masks of a call's own secrets; ``None`` when its arguments hold none.

    They are worked out at most once for each decision, and only for calls of which something is shown or kept.

    Args:
        call: the call.
        redactor: says what of the arguments is secret.
    """
    known = call.echoes
    if known is not None and known[0] is call.verdict:
        found: Echoes | None = known[1]
        return found
    echoes = None
    try:
        values = _secrets(call, redactor)
        if values:
            echoes = Echoes(values, Placeholders(redactor.settings).make(KIND, b""))
    except Exception as error:
        # What breaks this look breaks the redactor too, and then content is withheld everywhere.
        _logger.debug("the call's own secrets can't be told: %s", type(error).__name__)
    call.echoes = (call.verdict, echoes)
    return echoes


def cleaner_of(call: Invocation, redactor: Redactor, clean: Callable[[str], str]) -> Callable[[str], str]:
    """Return what cleans a text of this call: its own secrets first, then those that detectors know.

    Args:
        call: the call.
        redactor: says what of the arguments is secret.
        clean: redacts a text.
    """
    echoes = echoes_of(call, redactor)
    if echoes is None:
        return clean
    return lambda text: clean(echoes.text(text))


def quotes(message: str, arguments: Mapping[str, Any]) -> bool:
    """Tell at little cost whether a text may repeat something of the arguments.

    Args:
        message: the text.
        arguments: JSON arguments.
    """
    stack: list[Any] = list(arguments.values())
    for _ in range(_MAX_LOOKED):
        if not stack:
            return False
        value = stack.pop()
        cls = type(value)
        if cls is str:
            if len(value) >= MIN_CHARS and (value in message or any(word in message for word in _WORDS.findall(value))):
                return True
        elif cls is dict:
            stack += value.values()
        elif cls is list:
            stack += value
        elif cls in (int, float) and len(str(value)) >= MIN_CHARS and str(value) in message:
            return True
    return True


def _secrets(call: Invocation, redactor: Redactor) -> set[str]:
    pointers = call.spec.sensitive
    if call.verdict is not None and call.verdict.redact_input:
        pointers = (*pointers, *call.verdict.redact_input)
    holders = Placeholders(redactor.settings)
    pattern = re.compile(holders.pattern.pattern.decode("utf-8"))
    found: set[str] = set()
    looked: list[Any] = []
    for arguments in (call.permission_input, call.model_input, call.observable_input):
        if not arguments or any(arguments is other or arguments == other for other in looked):
            continue
        looked.append(arguments)
        redacted = redactor.redact(arguments, pointers=pointers)
        if redacted.redactions:
            _differences(arguments, redacted.value, pattern, found)
    for name, value in call.bound.items():
        if any(word.rpartition(".")[2] in ("SecretStr", "SecretBytes") for word in mro_names(type(value))):
            secret = value.get_secret_value()
            found.add(secret if isinstance(secret, str) else bytes(secret).decode("utf-8", "replace"))
        elif type(value) is str and name not in call.permission_input and redactor.redact({name: value}).redactions:
            found.add(value)  # an internal argument, which no model sees: its name alone says what it is
    return {value for value in found if MIN_CHARS <= len(value) <= _MAX_CHARS and pattern.fullmatch(value) is None}


def _differences(before: Any, after: Any, pattern: re.Pattern[str], found: set[str]) -> None:
    if type(before) is dict and type(after) is dict and len(before) == len(after):
        for (key, old), (new_key, new) in zip(before.items(), after.items(), strict=True):
            if type(key) is str and type(new_key) is str and key != new_key:
                _parts(key, new_key, pattern, found)
            _differences(old, new, pattern, found)
    elif type(before) in (list, tuple) and type(after) in (list, tuple) and len(before) == len(after):
        for old, new in zip(before, after, strict=True):
            _differences(old, new, pattern, found)
    elif type(before) is str and type(after) is str:
        if before != after:
            _parts(before, after, pattern, found)
    elif type(before) is not type(after) or before != after:
        _leaves(before, found)


def _parts(before: str, after: str, pattern: re.Pattern[str], found: set[str]) -> None:
    """Find what was taken out of a text by lining it up with what is left."""
    kept = pattern.split(after)
    position = len(kept[0])
    if not before.startswith(kept[0]):
        return
    for index, part in enumerate(kept[1:], 2):
        last = index == len(kept)
        end = len(before) - len(part) if last else before.find(part, position) if part else -1
        if end < position or (last and not before.endswith(part)):
            return
        found.add(before[position:end].strip("\"' "))
        position = end + len(part)


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


def _forms(value: str) -> set[str]:
    """Return a value and its usual encodings."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = {
        value,
        repr(value)[1:-1],
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        raw.hex(),
    }
    if "\n" in value:
        forms |= {line.strip() for line in value.splitlines() if len(line.strip()) >= _MIN_LINE}
    return {form for form in forms if len(form) >= MIN_CHARS}


def plain(value: Any) -> Any:
    """Return a value as plain data, a text as it is.

    Args:
        value: what a tool returned.
    """
    return value if type(value) is str else to_json_value(value)
