"""What stands where a value was: typed, constant, and recognisable, so that redacting twice changes
nothing.
"""

from __future__ import annotations

import hmac
import re
from typing import Final

from agenttool_otel.redaction.types import RedactionSettings

_OMITTED: Final = r"\[omitted:[A-Za-z0-9_]{1,64}\]"
_PSEUDONYM_DIGITS: Final = 12
# password, password:0123456789ab
_KIND: Final = rf"[a-z0-9_]+(?::[0-9a-f]{{{_PSEUDONYM_DIGITS}}})?"


def omitted(what: str) -> str:
    """Placeholder of content that isn't passed on for another reason than being secret."""
    # the name of a foreign class: module.Outer.<locals>.Inner
    word = re.sub(r"[^A-Za-z0-9_]", "_", what)
    word = word[:64]
    if not word:
        word = "object"
    return f"[omitted:{word}]"


def _pattern_of(template: str) -> str:
    """What matches each placeholder that a template makes: ``[redacted:password]``."""
    before, after = template.split("{kind}", 1)
    start = re.escape(before)
    end = re.escape(after.replace("{kind}", ""))
    return start + _KIND + end


class Placeholders:
    """Makes and recognises the placeholders of one redactor. Immutable."""

    __slots__ = ("_key", "_template", "pattern")

    def __init__(self, settings: RedactionSettings) -> None:
        self._template = settings.placeholder
        self._key = settings.pseudonym_key
        written = _pattern_of(settings.placeholder)
        either = f"(?:{written}|{_OMITTED})"
        self.pattern = re.compile(either.encode())
        """Matches any placeholder that this redactor writes."""

    def make(self, kind: str, value: bytes) -> str:
        """The placeholder for a value: constant per kind, or a keyed pseudonym of the value."""
        if self._key is None:
            return self._template.replace("{kind}", kind)
        # the kind belongs to what is signed: the same text as a password and as a token differs
        message = kind.encode() + b"\0" + value
        mac = hmac.digest(self._key, message, "sha256").hex()
        pseudonym = f"{kind}:{mac[:_PSEUDONYM_DIGITS]}"
        return self._template.replace("{kind}", pseudonym)

    def is_done(self, value: bytes) -> bool:
        """Whether nothing but placeholders and white space is there."""
        rest = self.pattern.sub(b"", value)
        return not rest.strip()

    def without(self, text: str) -> str:
        """A text without the placeholders in it."""
        raw = text.encode("utf-8", "surrogatepass")
        rest = self.pattern.sub(b"", raw)
        return rest.decode("utf-8", "surrogatepass")
