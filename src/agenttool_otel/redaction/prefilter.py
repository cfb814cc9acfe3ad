"""The first question about a text: can there be anything at all?

One linear search for every literal and shape that any detector needs. Most arguments and messages
of tool calls have none of them and cost nothing more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.detectors.assignments import KEYWORDS, NAME_END, service_words
from agenttool_otel.redaction.detectors.built_in import built_in
from agenttool_otel.redaction.detectors.id_numbers import LABELS
from agenttool_otel.redaction.detectors.statements import STATEMENTS
from agenttool_otel.redaction.detectors.tables import HEAD
from agenttool_otel.redaction.detectors.token_formats import TOKEN_RULES
from agenttool_otel.redaction.patterns import Matcher, compile_pattern
from agenttool_otel.redaction.types import ALL_DETECTORS

_SHORT_LITERALS: Final = frozenset(("q~", "dp.", "sg.", "k00"))
"""Keywords of tokens whose parts can all be shorter than the run of letters and digits among the
shapes.
"""
_EVERYDAY_WORDS: Final = frozenset(
    ("pass", "pw", "secret", "token", "api", "auth", "password", "net ")
)
"""Keywords that are part of everyday words; what stands beside them is among the shapes instead."""
_LEAST_LITERAL_BYTES: Final = 4

_SHAPES: Final = (
    "://",
    "@",
    # telephone numbers, cards, most national ids
    r"\d{3}[ .-]?\d{2,4}[ .-]?\d{2,4}",
    # tokens, and whatever is encoded in base64 or hexadecimal digits
    "[a-z0-9_+-]{20,}",
    "%[0-9a-f]{2}",
    # {"note": "gh\u0070_..."}
    r"\\u00",
    "cookie",
    "authorization",
    # mysql -phunter2, ["-u", "bob:hunter2"]
    r"(?:^|[\s\"'`(\[,])-[pPaswWkKAXuUlt]",
    "--(?:user|proxy-user|src-creds|dest-creds|creds|auth)",
    "seed",
    "mnemonic",
    "phrase",
    r"[?&;][a-z][\w.-]*=",
    # 1. legal 2. winner 3. thank ...: a recovery phrase of 12 words
    r"(?:[a-z]{3,8}[\s,;|\d.):]{1,8}){11}",
    "-----",
    r"\(\d{3}\)",
    "[sr]k_(?:test|live|prod)",
    r"private[\w \"'-]*[:=]",
    # an IBAN: DE89 3704
    r"[a-z]{2}\d{2} ?[a-z0-9]{4}",
    # Aadhaar, national insurance number, henkilötunnus, DNI
    r"[2-9]\d{3} \d{4}",
    r"[a-z]{2} \d\d \d\d \d\d [a-d]",
    r"\d{6}[-+a]\d{3}",
    r"[xyz]?\d{7}-?[a-z]",
    r"\|[\w-]{20}",
    # a token may go on behind a break, real or escaped
    r"\\n[a-z0-9]",
    r"[\r\n]",
    r"eyj[\w-]*\.",
    # "\x67\x68\x70\x5f", "&#103;hp_", UTF-16 that was read as ASCII
    r"(?:\\x[0-9a-f]{2}){4}",
    r"&#?\w{2,4};",
    r"\x00",
    r"\bauth[\"'`]?[ \t]+\S{8}",
    r"\b\w*(?:pass\w*|pw|pwd|secret|token|api[_-]?key)[ \t]+\S{6}",
    r"password\s*=?\s*\(?\s*N?\\*[\"']",
    r"password\s+for\s",
    r"\bnet\s[^\r\n]*%",
    r"\b(?:bearer|basic|token)\s",
    r"code (?:for [\w@.\- ]*)?(?:is|was)\b",
    r"\b(?:pw|clave)\b[\w@.\- ]*:|(?:ş|s)ifre(?:si|niz|miz)?:?\s",
    r"value\s?=",
    "kind: secret",
)
"""What a text has in it where a detector could find something; the rest is taken from the detectors'
own patterns.
"""


def _literals() -> set[str]:
    """Keywords of token formats and of known places, of which one occurs where those match."""
    found: set[str] = set()
    for rule in TOKEN_RULES:
        for word in rule.keywords:
            if len(word) >= _LEAST_LITERAL_BYTES or word in _SHORT_LITERALS:
                found.add(word)
    for statement in STATEMENTS:
        if not statement.prefilter and not statement.named:
            found.update(statement.keywords)
    return found - _EVERYDAY_WORDS


@lru_cache(maxsize=32)
def prefilter(extra: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> Matcher:
    """A matcher that matches wherever any built-in detector could.

    Args:
        extra: further shapes, those of the user's own patterns.
        words: further names of secrets, those of the user's own keys.
    """
    names = "|".join((KEYWORDS, *(re.escape(word) for word in words)))
    parts = [
        *_SHAPES,
        rf"(?:{names}){NAME_END}(?:\[\d*\]|[ \t][\w.&]+)?[\"'`\\\]]*\s*[=:>,;|]",
        rf"--?[\w-]*(?:{names})[\w-]*[ \t]",
        rf"(?:{names})(?:[\w@.\- ]|[^\x00-\x7f])*\s(?:is|was|to|lautet|ist|war|est|es|era|je|er|on)\b",
        *(statement.prefilter for statement in STATEMENTS if statement.prefilter),
        HEAD,
        rf"(?:{LABELS})[^\r\n\d]{{0,28}}\d",
        rf"(?:{service_words()})[\w.\- ]*[\"'`\\\]]*\s*[:=,]",
        *sorted(re.escape(word) for word in _literals()),
        *extra,
    ]
    for name in ALL_DETECTORS:
        # any base64 is among the shapes
        if name == "encoded":
            continue
        parts.extend(built_in(name).shapes)
    return compile_pattern("(?i)" + "|".join(parts))
