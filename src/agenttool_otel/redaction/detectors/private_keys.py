"""Private keys in PEM and its relatives, also when the text was cut before the end of the key.

Certificates and public keys are public and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.patterns import find_all
from agenttool_otel.redaction.types import Span

PRIVATE_KEY = "private_key"
"""The kind of what is found here."""
UNTERMINATED = "pem_unterminated"
"""The rule of a key that the text does not close."""

_BEGIN = r"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-{4,5}"
_END = rb"-----END"
_LEAST = 50
_LEAST_OPEN = 24
_KEY = re.compile(rb"[A-Za-z0-9+/=]{16}")  # not the rest of a program or a sentence


def find_private_keys(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans from the opening to the closing line; to the end of the text where the closing line is
    missing.
    """
    if b"private key" not in lowered:
        return
    size = len(data)
    done = 0
    for match in find_all(_BEGIN, data):
        start = match.start()
        body = match.end()
        if start < done:
            continue
        end = data.find(_END, body)
        if end < 0:
            if size - body >= _LEAST_OPEN and _KEY.search(data, body, size):
                yield Span(start, size, PRIVATE_KEY, UNTERMINATED)
            return
        tail = data.find(b"-----", end + len(_END))
        done = size if tail < 0 else tail + 5
        if end - body >= _LEAST and _KEY.search(data, body, end):
            yield Span(start, done, PRIVATE_KEY, "pem")


DETECTOR: Final = BuiltIn(find=find_private_keys, between_words=True)
