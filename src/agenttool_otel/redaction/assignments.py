"""Names and values in text: ``password = hunter2``, ``"api_key": "..."``, ``<secret>...</secret>``.

A name's class (``keys.classify``) says how much the value itself has to look like a secret. In source text and prose
the bar is higher than in decoded structure, because ``password: required`` and ``token = get_token()`` are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.keys import SERVICES, KeyClass, classify, is_service, kind_of_key, normal_name
from agenttool_otel.redaction.letters import reads_like_words
from agenttool_otel.redaction.patterns import MatchLike, compile_pattern, spans_of
from agenttool_otel.redaction.types import Engine, Span

__all__ = ["KEYWORDS", "AssignmentDetector", "service_words"]

KEYWORDS = (
    "passw|passphrase|passcode|passwort|pass|pwd|psw|pw|secret|token|key|credential|creds?|auth|bearer|jwt|pin|otp|cvv|cvc"
    "|ssn|mnemonic|seed|recovery|kennwort|contrase|senha|mdp|sas|security_?number|national_?id|card_?(?:no|num)|iban|pat"
)
_PATTERN = (
    r"(?i)(?:" + KEYWORDS + r")[\w.\-]*"
    r"((?:\\{0,7}[\"'`])?\]?)[ \t]{0,8}(:{1,3}=|=>|===?|\?=|=|:|>|,)[ \t]{0,8}(?:[\r\n]+[ \t]{2,20}|\\[nrt])?"
    r"(?:(\\{0,7}[\"'`])|([^\s\"'`<>(){}\[\],;&\\][^\s\"'`<>(){}\[\],;&]*))"
)
_SERVICE_PATTERN = (
    r"(?i)(?:^|[^A-Za-z])(?:%s)[\w.\- ]*((?:\\{0,7}[\"'`])?\]?)[ \t]{0,8}(:{1,3}=|=>|==?|=|:|,)[ \t]{0,8}"
    r"(?:(\\{0,7}[\"'`])|([^\s\"'`<>(){}\[\],;&\\][^\s\"'`<>(){}\[\],;&]*))"
)
_ATTRIBUTES = r"(?i)\b(?:key|name)\s?=\s?[\"']([\w.:\-]{2,64})[\"']\s+value\s?=\s?[\"']([^\"'<>\r\n]+)[\"']"
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_LEFT_WORDS = re.compile(rb"(?:[A-Za-z]{2,14} ){1,2}\Z")
_REST = re.compile(rb"[^\s\"'`<>]*")
_NEXT_NAME = re.compile(rb"[&;,](?=\s*[A-Za-z_][\w.\- ]{0,40}[=:])")
_WHOLE = frozenset((KeyClass.PASSWORD, KeyClass.HEADER, KeyClass.CODE, KeyClass.PERSONAL))
_TAIL = b",;)]}&\\"
_LIMIT = 4096
_WORDS_AFTER = re.compile(rb"[ \t]+[A-Za-z]{2,}")
_PLAIN_WORD = re.compile(rb"[A-Za-z]{1,24}[.!?,:]?")
_EXPRESSION = re.compile(rb"[A-Za-z_][\w.]*(?:[(\[]|[ \t]+(?:[-+*/%|&=]+|if|and|or|is|in|not|else|for)(?=[ \t]))")
_CALL = re.compile(rb"[A-Za-z_][\w.]*[(\[][^\s]*[)\]]")
_PHRASE = re.compile(rb"[a-z]{2,10}(?:[ -][a-z]{2,10}){2,9}")
_CODE_VALUE = re.compile(rb"\d{3,10}")
_PERSONAL_VALUE = re.compile(rb"(?=(?:[^0-9]*\d){4})[A-Za-z0-9][A-Za-z0-9 .\-/]{4,36}")


class AssignmentDetector:
    """Finds values whose name says that they are secret."""

    name = "assignments"

    def __init__(self, engine: Engine, *, extra_keys: frozenset[str] = frozenset(), pii: bool = True) -> None:
        """Compile the patterns.

        Args:
            engine: the matcher.
            extra_keys: further key names, normalised by ``keys.normal_name``.
            pii: whether names of personal numbers count.
        """
        self._pii = pii
        self._extra = extra_keys
        extra = "|".join(re.escape(key) for key in sorted(extra_keys) if key.isascii())
        pattern = _PATTERN.replace("(?:passw", f"(?:{extra}|passw", 1) if extra else _PATTERN
        self._matcher = compile_pattern(pattern, engine)
        self._attributes = compile_pattern(_ATTRIBUTES, engine)
        self._services = compile_pattern(_SERVICE_PATTERN % service_words(), engine)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of values, without their quotes."""
        for match in self._matcher.finditer(data):
            span = self._judge(data, match, service_only=False)
            if span is not None:
                yield span
        if b"value" in lowered:
            for match in self._attributes.finditer(data):
                found = classify(match.group(1).decode("ascii", "replace"))
                start, end = match.span(2)
                value = data[start:end]
                if found is KeyClass.PASSWORD and not inert.is_template(value):
                    yield Span(start, end, "password", "attribute")
                elif found is KeyClass.TOKEN and inert.plausible_token(value):
                    yield Span(start, end, "credential", "attribute")
        for match in self._services.finditer(data):
            span = self._judge(data, match, service_only=True)
            if span is not None:
                yield span

    def _judge(self, data: bytes, match: MatchLike, *, service_only: bool) -> Span | None:
        (start, _), (name_end, quote_end), (mark, mark_end), (opening, opened), bare = spans_of(match, 4)
        name_start = _name_start(data, start)
        delimiter = data[mark:mark_end]
        quoted = opening >= 0
        if delimiter == b"," and not (quote_end > name_end and quoted):
            return None
        if delimiter == b">" and (quoted or name_start == 0 or data[name_start - 1] != 60):
            return None
        if (
            quoted
            and quote_end == name_end
            and name_start
            and data[name_start - 1 : name_start] == data[opened - 1 : opened]
        ):
            return None  # prompt='Password: ' : that quote closes
        name = data[name_start:name_end].decode("utf-8", "replace").strip(".- ")
        found = self._class_of(name, data, name_start, service_only=service_only)
        if found is KeyClass.NONE:
            return None
        if quoted:
            first = opened
            last = _closing(data, first, data[opening:first])
        else:
            first, last = bare
            if data[first : first + 2] == b"//":
                return None
            if _EXPRESSION.match(data, first, first + _LIMIT) and (
                first > mark_end or _CALL.match(data, first, first + _LIMIT)
            ):
                return None
            if found in _WHOLE:
                last = _whole(data, first, last)
            if found is KeyClass.PASSWORD and delimiter == b":" and "phrase" in name.lower():
                last = _sentence(data, first, last)
        value = data[first:last]
        if not quoted and (delimiter.startswith(b"==") or value[:1] == b"="):
            # a comparison of names in source text, unless what is behind it can only be a credential
            return Span(first, last, kind_of_key(found), "key:" + found.value) if inert.plausible_token(value) else None
        if delimiter == b"," and value.isalpha() and len(value) <= 16:
            return None  # a list of words
        if not value or not self._secret(found, value, data, last, quoted=quoted, name=name, prose=delimiter == b":"):
            return None
        return Span(first, last, kind_of_key(found), "key:" + found.value)

    def _class_of(self, name: str, data: bytes, name_start: int, *, service_only: bool) -> KeyClass:
        if self._extra and any(_ends_with_name(name, key) for key in self._extra):
            return KeyClass.PASSWORD
        found = classify(name)
        if service_only:
            return found if found is KeyClass.SERVICE else KeyClass.NONE
        if found is KeyClass.NONE and name_start and data[name_start - 1] == 32:
            words = _LEFT_WORDS.search(data, max(0, name_start - 32), name_start)
            if words is not None:
                found = classify((words.group() + name.encode()).decode("ascii", "replace"))
                if found in (KeyClass.SERVICE, KeyClass.WEAK):
                    found = KeyClass.NONE
        if found is KeyClass.PERSONAL and not self._pii:
            return KeyClass.NONE
        return found

    def _secret(
        self, found: KeyClass, value: bytes, data: bytes, end: int, *, quoted: bool, name: str, prose: bool
    ) -> bool:
        if inert.is_template(value):
            return False
        if found is KeyClass.PASSWORD:
            if name.lower() == "pass" and not quoted and value.isdigit() and len(value) < 6:
                return False  # "pass: 12, fail: 0"
            return _is_password(value, data, end, quoted=quoted, prose=prose)
        if found is KeyClass.CODE:
            return _CODE_VALUE.fullmatch(value.strip()) is not None
        if found is KeyClass.PERSONAL:
            return _PERSONAL_VALUE.fullmatch(value.strip()) is not None
        if found is KeyClass.PHRASE:
            return quoted and value.count(b" ") >= 11
        if found is KeyClass.HEADER and "authorization" not in name.lower():
            return (
                len(value) >= 6
                and not inert.is_filler(value)
                and (inert.has_digit(value) or len(value) >= 16 or not reads_like_words(value))
            )
        if found in (KeyClass.HEADER, KeyClass.COOKIE):
            return False  # headers.py knows schemes and pairs
        if not quoted and ((inert.is_code(value) and not inert.has_digit(value)) or _called(data, end)):
            return False
        return inert.plausible_token(value, named=found is KeyClass.SERVICE or is_service(name))


def service_words() -> str:
    """The services as an alternation, without the ones whose names are everyday words."""
    return "|".join(sorted(word for word in SERVICES if len(word) > 3 or word == "lob"))


def _name_start(data: bytes, start: int) -> int:
    """Where the whole name around a keyword starts."""
    window = data[max(0, start - 64) : start]
    name_start = start - len(window) + len(window.rstrip(_NAME_BYTES))
    if 0 < name_start < start and data[name_start - 1] == 92 and data[name_start] in b"nrt":
        name_start += 1  # the n of an escaped line break is not part of the name
    return name_start


def _ends_with_name(name: str, key: str) -> bool:
    return normal_name(name) == key


def _closing(data: bytes, first: int, opener: bytes) -> int:
    """Where a quoted value ends: at its closing quote, at the end of the line, or at a bound."""
    limit = min(len(data), first + _LIMIT)
    newline = data.find(b"\n", first, limit)
    if newline >= 0:
        limit = newline
    at = first
    while True:
        at = data.find(opener, at, limit)
        if at < 0:
            return limit
        if len(opener) > 1 or not _escaped(data, at, first):
            return at
        at += 1


def _escaped(data: bytes, at: int, first: int) -> bool:
    back = at
    while back > first and data[back - 1] == 92:
        back -= 1
    return (at - back) % 2 == 1


def _whole(data: bytes, first: int, last: int) -> int:
    """End of an unquoted password: up to white space or the next name, without closing punctuation."""
    rest = _REST.match(data, last, min(len(data), first + _LIMIT))
    end = rest.end() if rest is not None else last
    following = _NEXT_NAME.search(data, first, end + 64)
    if following is not None and following.start() < end:
        end = following.start()
    escape = data.find(b"\\n", first, end)
    if escape > first:
        end = escape
    while end > last and data[end - 1] in _TAIL:
        end -= 1
    while end > first and data[end - 1] in b",;\\":
        end -= 1
    return end


def _sentence(data: bytes, first: int, last: int) -> int:
    """End of an unquoted passphrase: the whole line, where that is nothing but words."""
    newline = data.find(b"\n", first, first + 256)
    line = data[first : newline if newline >= 0 else first + 256].rstrip()
    return first + len(line) if _PHRASE.fullmatch(line) else last


def _is_password(value: bytes, data: bytes, end: int, *, quoted: bool, prose: bool) -> bool:
    if quoted:
        return True
    if inert.is_code(value) and not inert.has_digit(value):
        return False
    if _called(data, end):
        return False
    # "The password: use the form below" is prose; "password: hunter2" at the end of a line isn't
    return not (prose and _PLAIN_WORD.fullmatch(value) and _WORDS_AFTER.match(data, end, end + 32))


def _called(data: bytes, end: int) -> bool:
    """Whether an unquoted value goes on as a call, an index or a template."""
    return data[end : end + 1] in (b"(", b"[", b"{", b")")
