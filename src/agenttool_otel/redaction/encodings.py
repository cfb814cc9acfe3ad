"""The usual encodings of a value that is known to be secret, so that it can be looked for."""

from __future__ import annotations

import base64
import json
from typing import Final
from urllib.parse import quote, quote_plus

_MIN_LINE_CHARS: Final = 16
"""A shorter line of a value (``}`` of a JSON key file) stands in other texts, too."""


def encoded_forms(value: str) -> set[str]:
    """Return a value as it is and in its usual encodings.

    These are the inner parts of a Python and of a JSON string literal, percent-encoding, base64
    and its URL-safe form without padding, hexadecimal digits and, of a value of several lines,
    each line that is long enough to stand for the value alone.

    Args:
        value: the text; lone surrogates are encoded as they are.
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
        for line in value.splitlines():
            stripped = line.strip()
            if len(stripped) >= _MIN_LINE_CHARS:
                forms.add(stripped)
    return forms
