"""The mask of values that only one call knows to be secret.

A value that a contract, a policy or the name of its argument marks as secret looks like any other
word once a tool quotes it in its result or its exception: no detector can know it there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, ClassVar, Final
from urllib.parse import quote, quote_plus

from agenttool_otel.redaction.placeholders import Placeholders
from agenttool_otel.redaction.types import Redaction

KIND: Final = "argument"
"""Kind of these redactions."""

MIN_CHARS: Final = 6
"""Shorter values are left alone: masking every ``no`` or ``1234`` of a result would destroy it and
hide little.
"""

MAX_CHARS: Final = 65_536
"""Longer values are left alone."""

_MIN_LINE_CHARS: Final = 16
_MAX_VALUES: Final = 64
_MAX_NODES: Final = 200_000


class ArgumentMask:
    """Masks secret values of a call wherever they come back, as they are and in the usual
    encodings.
    """

    __slots__ = ("_forms", "_placeholder")

    redaction: ClassVar[Redaction] = Redaction(KIND, "", "echo", 1)
    """What is stated where something was masked."""

    def __init__(self, values: Iterable[str], placeholders: Placeholders) -> None:
        forms: set[str] = set()
        for value in list(values)[:_MAX_VALUES]:
            forms |= _forms(value)
        self._placeholder = placeholders.make(KIND, b"")
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Mask a text."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, self._placeholder)
        return text

    def value(self, value: Any) -> Any:
        """Mask plain data; what needs no change may be returned as it is."""
        return self._masked(value, [_MAX_NODES])

    def _masked(self, value: Any, left: list[int]) -> Any:
        left[0] -= 1
        if left[0] < 0:
            return (
                value
                if value is None or type(value) in (bool, int, float)
                else "[omitted:too_many]"
            )
        cls = type(value)
        if cls is str:
            return self.text(value)
        if cls is dict:
            return {
                self.text(k) if type(k) is str else k: self._masked(v, left)
                for k, v in value.items()
            }
        if cls is list:
            return [self._masked(item, left) for item in value]
        if cls is tuple:
            return tuple(self._masked(item, left) for item in value)
        if cls in (int, float) and str(value) in self._forms:
            return self._placeholder
        return value


def _forms(value: str) -> set[str]:
    return {form for form in encoded_forms(value) if len(form) >= MIN_CHARS}


def encoded_forms(value: str) -> set[str]:
    """Return a value and its usual encodings.

    Args:
        value: the text.
    """
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
        forms |= {
            line.strip() for line in value.splitlines() if len(line.strip()) >= _MIN_LINE_CHARS
        }
    return forms
