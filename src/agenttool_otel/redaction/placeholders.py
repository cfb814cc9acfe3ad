"""What stands where a value was: typed, constant, and recognisable, so that redacting twice changes
nothing.
"""

from __future__ import annotations

import hmac
import re

from agenttool_otel.redaction.types import RedactionSettings

_OMITTED = re.compile(rb"\[omitted:[A-Za-z0-9_]{1,64}\]")


def omitted(what: str) -> str:
    """Placeholder of content that isn't passed on for another reason than being secret."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", what)[:64]
    return f"[omitted:{word or 'object'}]"


class Placeholders:
    """Makes and recognises the placeholders of one redactor. Immutable."""

    __slots__ = ("_constant", "_key", "_template", "pattern")

    def __init__(self, settings: RedactionSettings) -> None:
        self._template = settings.placeholder
        self._key = settings.pseudonym_key
        self._constant: dict[str, bytes] = {}
        before, after = settings.placeholder.split("{kind}", 1)
        body = (
            re.escape(before)
            + r"[a-z0-9_]+(?::[0-9a-f]{12})?"
            + re.escape(after.replace("{kind}", ""))
        )
        self.pattern = re.compile(rb"(?:" + body.encode() + rb"|" + _OMITTED.pattern + rb")")
        """Matches any placeholder that this redactor writes."""

    def make(self, kind: str, value: bytes) -> str:
        """The placeholder for a value: constant per kind, or a keyed pseudonym of the value."""
        if self._key is not None:
            mac = hmac.digest(self._key, kind.encode() + b"\0" + value, "sha256").hex()[:12]
            kind = f"{kind}:{mac}"
        return self._template.replace("{kind}", kind)

    def is_done(self, value: bytes) -> bool:
        """Whether nothing but placeholders and white space is there."""
        return not self.pattern.sub(b"", value).strip()

    def without(self, text: str) -> str:
        """A text without the placeholders in it."""
        return self.pattern.sub(b"", text.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )
