"""Names and values that have a name each, or stand in a line or an element of their own.

``- name: DB_PASSWORD`` with ``value: ...`` on the next line, ``<property name="password">...</property>``, Dockerfile's
``ENV NAME value``, and all values of a Kubernetes Secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Final

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.keys import KeyClass, classify, is_service, kind_of_key
from agenttool_otel.redaction.patterns import MatchLike, compile_pattern
from agenttool_otel.redaction.types import Engine, Span

__all__ = ["SHAPES", "PairDetector"]

_NAME: Final = r"([A-Za-z_][\w.:\-]{1,63})"
_QUOTE: Final = r"\\{0,3}[\"']"
_PAIRS: Final = (
    # name: X, value: Y in JSON, YAML and attributes, on one line or two, with other attributes between
    r"(?i)\b(?:\w{1,16}?key|\w{1,16}?name|name|key|id|field|header|variable|parameter)(?:" + _QUOTE + r")?\s?[:=]\s?"
    r"(?:" + _QUOTE + r")?" + _NAME + r"(?:" + _QUOTE + r")?[ \t]*(?:,\s{0,40}|\s{1,40})"
    r"(?:[\w-]{1,20}=\"[^\"<>]{0,80}\"\s{1,40}){0,4}"
    r"(?:" + _QUOTE + r")?(?:\w{1,16}?value|value|val|content)(?:" + _QUOTE + r")?\s?[:=]\s?"
    r"(?:" + _QUOTE + r"([^\"'\r\n\\]{1,512})" + _QUOTE + r"|([^\s\"'{}\[\],<>]{1,512}))",
    # <name>X</name><value>Y</value>
    r"(?i)<(?:name|key|id)>\s{0,8}" + _NAME + r"\s{0,8}</(?:name|key|id)>\s{0,64}"
    r"<(?:value|string)>([^<>\r\n]{1,512})()</",
    # <property name="X">Y</property>
    r"(?i)\b(?:name|key|id)\s?=\s?[\"']" + _NAME + r"[\"'][^<>\r\n]{0,80}>([^<>\r\n]{1,512})()</",
)
_LINES: Final = (
    # password: >-, with the value on the next line
    r"(?m)" + _NAME + r"[\"']?:[ \t]*[|>][-+]?\d?[ \t]*\r?\n[ \t]+([^\r\n]{1,512})()",
    # variable "consumer_secret" { default = "..." }
    r"variable\s+\"" + _NAME + r"\"\s*\{[^{}]*?default\s*=\s*\"([^\"\r\n]{1,512})\"()",
    # #define API_KEY "...", @api_key "...", {:client-secret "..."}
    r"(?i)(?:^|[^\w.-])([A-Za-z_][\w-]{0,40}(?:secret|token|key|credential)[\w-]{0,24})[ \t]+\"([^\"\r\n]{10,512})\"()",
    r"(?i)\bsetx[ \t]+" + _NAME + r"[ \t]+\"?([^\s\"]{1,512})()",
    # aws configure set aws_secret_access_key ...
    r"\b(?:config|configure)[ \t]+set[ \t]+(?:--\w+[ \t]+)?" + _NAME + r"[ \t]+[\"']?([^\s\"']{1,512})()",
)
_ELEMENT: Final = (
    r"<(?:\w{1,16}:)?" + _NAME + r"(?:\s[^<>\r\n]{0,300})?>\s{0,64}(?:<[Vv]alue>)?([^<>\s][^<>\r\n]{0,512})()</"
)
_ENV: Final = (
    r"(?mi)^[ \t]*(?:ENV|ARG)[ \t]+" + _NAME + r"[ \t]+(?:\"([^\"\r\n]{1,255})\"|([^\s=\"'][^\s\"']{0,255}))[ \t\r]*$"
)
_MANIFEST: Final = r"(?m)^(?:data|stringData):[ \t]*\r?\n((?:[ \t]+[^\r\n]*(?:\r?\n|\z))+)"
_SECRET: Final = re.compile(rb"(?m)^kind:[ \t]*[\"']?Secret[\"']?[ \t]*(?:#.*)?\r?$")
_DOCUMENT: Final = re.compile(rb"(?m)^(?=---)")
_LINE: Final = re.compile(rb"(?m)^[ \t]+[\w.\-]+:[ \t]+[\"']?([^\s\"'|>][^\r\n\"']*)")

_LINE_WORDS: Final = (b": |", b": >", b"variable ", b" set ", b"setx ", b'key "', b'secret "', b'token "')

SHAPES: Final = (
    r":[ \t]*[|>][-+]?\d?[ \t]*\r?\n",
    r"variable\s+\"",
    r"config(?:ure)?[ \t]+set",
    r"\bsetx\s",
    r"(?:secret|token|key|credential)[\w-]*[ \t]+\"[^\"]{10}",
    r"<[\w:]*(?:passw|pwd|secret|token)\w*[\s>]",
    r"</?value>",
    r"value[\\\"']*\s?[:=]",
    r"=[\"'][\w.:-]+[\"'][^<>]*>[^<>\s]",
    r"\b(?:env|arg)[ \t]+\w+[ \t]+\S",
    r"kind: secret",
)
"""What a text has in it where a pair could stand, as regular expressions."""


class PairDetector:
    """Finds values by a name that stands apart from them."""

    name = "pairs"

    def __init__(self, engine: Engine, *, pii: bool = True) -> None:
        """Compile the patterns.

        Args:
            engine: the matcher.
            pii: whether names of personal numbers count.
        """
        self._pii = pii
        self._pairs = tuple(compile_pattern(pattern, engine) for pattern in _PAIRS)
        self._lines = tuple(compile_pattern(pattern, engine) for pattern in _LINES)
        self._element = compile_pattern(_ELEMENT, engine)
        self._env = compile_pattern(_ENV, engine)
        self._manifest = compile_pattern(_MANIFEST, engine)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of values, without their quotes."""
        marked = b"</" in data
        for wanted, matchers in (
            (marked or b"value" in lowered, self._pairs),
            (marked, (self._element,)),
            (any(word in lowered for word in _LINE_WORDS), self._lines),
            (b"env " in lowered or b"arg " in lowered, (self._env,)),
        ):
            if wanted:
                for match in chain.from_iterable(matcher.finditer(data) for matcher in matchers):
                    yield from self._pair(data, match)
        if b"kind: secret" in lowered:
            yield from self._manifests(data)

    def _pair(self, data: bytes, match: MatchLike) -> Iterable[Span]:
        start, end = match.span(2)
        if start < 0:
            start, end = match.span(3)
        found = self._class_of(match.group(1).decode(), data[start:end])
        if found is not None:
            yield Span(start, end, kind_of_key(found), "pair:" + found.value)

    def _manifests(self, data: bytes) -> Iterable[Span]:
        """All values of a Kubernetes Secret in YAML."""
        first = 0
        for document in _DOCUMENT.split(data):
            if _SECRET.search(document) is not None:
                for block in self._manifest.finditer(document):
                    start = first + block.start(1)
                    for line in _LINE.finditer(block.group(1)):
                        if not inert.is_template(line.group(1)):
                            yield Span(start + line.start(1), start + line.end(1), "credential", "kubernetes:secret")
            first += len(document)

    def _class_of(self, name: str, value: bytes) -> KeyClass | None:
        """The class of a name, when the value fits it."""
        found = classify(name)
        if inert.is_template(value):
            return None
        digits = sum(48 <= byte <= 57 for byte in value)
        match found:
            case KeyClass.PASSWORD | KeyClass.COOKIE:
                fits = True
            case KeyClass.TOKEN | KeyClass.WEAK | KeyClass.SERVICE | KeyClass.HEADER:
                named = found is KeyClass.SERVICE or is_service(name)
                fits = inert.plausible_token(value.rpartition(b" ")[2], named=named, quoted=True)
            case KeyClass.CODE:
                fits = digits == len(value)
            case KeyClass.PERSONAL:
                fits = self._pii and digits >= 4
            case _:
                fits = False
        return found if fits else None
