"""The mask of values that are secret in one call only.

A value that a contract, a policy or the name of its argument marks as secret looks like any other
word once a tool quotes it in its result or its exception: no detector can recognise it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from agenttool_otel.redaction import Redaction
from agenttool_otel.redaction.encodings import encoded_forms
from agenttool_otel.redaction.placeholders import Placeholders

KIND: Final = "argument"
"""Kind of these redactions."""

MIN_CHARS: Final = 6
"""Shorter values are left alone: masking every ``no`` or ``1234`` of a result would destroy it and
hide little.
"""

MAX_CHARS: Final = 65_536
"""Longer values are left alone."""

_MAX_VALUES: Final = 64
_MAX_NODES: Final = 200_000
_TOO_MANY: Final = "[omitted:too_many]"


class ArgumentMask:
    """Masks secret values of a call wherever they come back, as they are and in the usual
    encodings.
    """

    __slots__ = ("_forms", "_placeholder")

    redaction: ClassVar[Redaction] = Redaction(KIND, "", "echo", 1)
    """What is stated where something was masked."""

    def __init__(self, values: Iterable[str], placeholders: Placeholders) -> None:
        """Work out the encodings of the values.

        Args:
            values: the secrets; those beyond the 64th are not masked.
            placeholders: make what stands in the place of a secret.
        """
        forms: set[str] = set()
        for value in list(values)[:_MAX_VALUES]:
            forms.update(form for form in encoded_forms(value) if len(form) >= MIN_CHARS)
        self._placeholder = placeholders.make(KIND, b"")
        # the longest first: "hunter2%21" before the "hunter2" in it
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
        """Mask a value and what is in it; ``left`` holds how many more values are looked at."""
        left[0] -= 1
        kind = type(value)
        if left[0] < 0:
            if value is None or kind in (bool, int, float):
                return value
            return _TOO_MANY
        if kind is str:
            return self.text(value)
        if kind is dict:
            masked = {}
            for key, member in value.items():
                plain_key = self.text(key) if type(key) is str else key
                masked[plain_key] = self._masked(member, left)
            return masked
        if kind is list:
            return [self._masked(item, left) for item in value]
        if kind is tuple:
            return tuple(self._masked(item, left) for item in value)
        if kind in (int, float) and str(value) in self._forms:
            return self._placeholder
        return value
