"""The first question about a text: can there be anything at all?

One linear search for every literal and shape that any detector needs. Most arguments and messages of tool calls have
none of them and cost nothing more.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agenttool_otel.redaction.assignments import KEYWORDS, NAME_END, service_words
from agenttool_otel.redaction.labelled import LABEL_GATE
from agenttool_otel.redaction.pairs import SHAPES
from agenttool_otel.redaction.patterns import Matcher, compile_pattern
from agenttool_otel.redaction.statements import load_statements
from agenttool_otel.redaction.tables import GATE
from agenttool_otel.redaction.tokens import load_rules
from agenttool_otel.redaction.types import Engine

__all__ = ["gate"]

_SHAPES = (
    r"://", "@", r"\d{3}[ .-]?\d{2,4}[ .-]?\d{2,4}", r"[a-z0-9_+-]{20,}", r"%[0-9a-f]{2}", r"\\u00", "cookie",
    "authorization", r"(?:^|[\s\"'`(\[,])-[pawu]", r"--(?:user|proxy-user|creds|auth)", "seed", "mnemonic", "phrase",
    r"[?&;][a-z][\w.-]*=", r"(?:[a-z]{3,8} ){11}", "-----", r"\(\d{3}\)", r"[sr]k_(?:test|live|prod)",
    r"private[\w \"'-]*[:=]", r"[a-z]{2}\d{2} ?[a-z0-9]{4}", r"[2-9]\d{3} \d{4}", r"[a-z]{2} \d\d \d\d \d\d [a-d]",
    r"\d{6}[-+a]\d{3}", r"[xyz]?\d{7}-?[a-z]", r"\|[\w-]{20}", r"\\n[a-z0-9]", r"[\r\n]",
    r"eyj[\w-]*\.", r"(?:\\x[0-9a-f]{2}){4}", r"&#?\w{2,4};", r"\x00",
)  # fmt: skip
# keywords of statements that are part of everyday words; what stands beside them is named instead
_COMMON = frozenset(("pass", "pw", "secret", "token", "api", "auth", "password", "net\\ "))
_BESIDE = (
    r"\bauth[\"'`]?[ \t]+\S{8}", r"\b\w*(?:pass\w*|pw|pwd|secret|token|api[_-]?key)[ \t]+\S{6}",
    r"password\s*=?\s*\(?\s*N?\\*[\"']", r"password\s+for\s", r"\bnet\s[^\r\n]*%",
)  # fmt: skip
_LITERAL = 4
# shorter keywords of tokens whose parts can all be shorter than the run of letters and digits above
_SHORT = frozenset((b"q~", b"dp.", b"sg.", b"k00"))


@lru_cache(maxsize=32)
def gate(engine: Engine, extra: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> Matcher:
    """A matcher that matches wherever any built-in detector could.

    Args:
        engine: the matcher.
        extra: further regular expressions.
        words: further key names, as they are written.
    """
    words_of_rules = {word for rule in load_rules() for word in rule.keywords}
    literals = {re.escape(word.decode()) for word in words_of_rules if len(word) >= _LITERAL or word in _SHORT}
    names = "|".join((KEYWORDS, *(re.escape(word) for word in words)))
    keyed = (
        rf"(?:{names}){NAME_END}(?:\[\d*\]|[ \t][\w.&]+)?[\"'`\\\]]*\s*[=:>,;|]",
        rf"--?[\w-]*(?:{names})[\w-]*[ \t]",
        rf"(?:{names})(?:[\w@.\- ]|[^\x00-\x7f])*\s(?:is|was|to|lautet|ist|war|est|es|era|je|er|on)\b",
        *SHAPES,
        *_BESIDE,
        *sorted({re.escape(word.decode()) for item in load_statements() for word in item.keywords} - _COMMON),
        GATE,
        rf"(?:{LABEL_GATE})[^\r\n\d]{{0,28}}\d",
        rf"(?:{service_words()})[\w.\- ]*[\"'`\\\]]*\s*[:=,]",
        r"\b(?:bearer|basic|token)\s",
        r"code (?:for [\w@.\- ]*)?(?:is|was)\b",
        r"\b(?:pw|clave)\b[\w@.\- ]*:|(?:ş|s)ifre(?:si|niz|miz)?:?\s",
        r"(?:login|user)\s+\S+\s+password",
        r"value\s?=",
        "jdbc:",
    )
    return compile_pattern("(?i)" + "|".join([*_SHAPES, *keyed, *sorted(literals), *extra]), engine)
