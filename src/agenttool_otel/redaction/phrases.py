"""Secrets in sentences: recovery phrases of wallets, and "the password is ..."."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.letters import reads_like_words
from agenttool_otel.redaction.patterns import Matcher, compile_pattern
from agenttool_otel.redaction.types import Engine, Span
from agenttool_otel.redaction.words import byte_words

__all__ = ["PhraseDetector", "is_word_list"]

_SAID = (
    r"(?i)\b(?:password|passwd|passcode|passphrase|pass ?phrase|pwd|pin|pin[ -]?code|otp|cvv|cvc|secret|api key|token"
    r"|pw|pass|verification code|security code|one[ -]time (?:code|password)|login code)"
    r"(?: (?:for|of|to|on) [\w@.\- ]{1,40}?)?"
    r"(?: (?:is|was)(?: (?:now|set to|still|currently))?:?|\s+(?:set|changed|reset) to:?) +"
    r"(?:(\\{0,3}[\"'`])|(?:(?:«|„|“|‹)\s?)?([^\s\"'`<>]+))"
)
_SAID_ELSEWHERE = (
    r"(?i)(?:passwor[dt]|kennwort|mot de passe|contrase(?:n|ñ)a|clave|senha|wachtwoord|has(?:l|ł)o|heslo|geslo|parola"
    r"|пароль|l(?:o|ö)senord(?:et)?|adgangskoden?|passord(?:et)?|salasana|jelsz(?:o|ó)|(?:s|ş)ifre|密码|密碼|パスワード|비밀번호)"
    r"(?: (?:für|pour|para|per|voor|do|för|для|de|von|von der|vom|des|du|della|del|von dem|für den|für die|für das)"
    r" [^\s\"'`<>]{1,40}(?: [^\s\"'`<>]{1,20})?)?"
    r"(?: (?:lautet|ist|war|wurde|est|es|era|é|è|is|to|je|är|er|on|это|—|–):? +|(?:是|为|為):? ?|は *)"
    r"(?:(\\{0,3}[\"'`])|(?:(?:«|„|“|‹)\s?)?([^\s\"'`<>]+))"
)
# words that say it less clearly: only what has letters and digits counts behind them
_SAID_VAGUELY = (
    r"(?i)(?:\b(?:pw|pass|clave|(?:wpa[23]?|wi-?fi|wlan|network)[ -]?(?:key|schl(?:ü|ue)ssel|code))"
    r"(?: (?:for|of|to|on|de|del|für) [\w@.\-]{1,40})?\s?:|(?:ş|s)ifre(?:si|niz|miz)?:?)[ \t]+(?:(\z)|([^\s\"'`<>]+))"
)
_SEED = (
    r"(?i)\b(?:mnemonic|seed ?(?:phrase|words)|recovery[ _-]?(?:phrase|words)|"
    r"seed|backup phrase|secret phrase|wallet phrase)\b"
    r"[\w ]{0,20}[\"'\\]{0,6}\s{0,3}(?:is|was|:|=|=>|,)\s{0,4}[\"'`\\\[]{0,6}((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})"
)
_LINE_OF_WORDS = r"(?m)(?:^|[\"'`:=]\s?)((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?:$|[\"'`\r\n])"
_VAGUE: Final = re.compile(rb"(?i)(?:pass|pw)\b")
_MIXED: Final = re.compile(rb"(?=.*[A-Za-z].*\d|.*\d.*[A-Za-z]).{6,}")
_COMMON: Final = byte_words("common_words")
_COUNTS = (12, 15, 18, 21, 24)


def is_word_list(words: list[bytes]) -> bool:
    """Whether lower-case words could be a wallet's recovery phrase: a fitting count, no grammar, few repetitions."""
    return (
        len(words) in _COUNTS
        and all(3 <= len(word) <= 8 and word.isalpha() and word.islower() for word in words)
        and len(set(words)) * 3 >= len(words) * 2
        and sum(word in _COMMON for word in words) <= 1
    )


_NETRC = r"(?i)\b(?:machine\s+\S+|default)\s+(?:login|user)\s+\S+\s+(?:account\s+\S+\s+)?password\s+([^\s\"'<]+)"


class PhraseDetector:
    """Finds secrets that people write down in words."""

    name = "phrases"

    def __init__(self, engine: Engine) -> None:
        self._said = compile_pattern(_SAID, engine)
        self._said_elsewhere = compile_pattern(_SAID_ELSEWHERE, engine)
        self._said_vaguely = compile_pattern(_SAID_VAGUELY, engine)
        self._seed = compile_pattern(_SEED, engine)
        said = "|".join(f"(?:{pattern.removeprefix('(?i)')})" for pattern in (_SAID, _SAID_ELSEWHERE, _SAID_VAGUELY))
        self._any = compile_pattern(f"(?i){said}", engine)
        self._netrc = compile_pattern(_NETRC, engine)
        self._line = compile_pattern(_LINE_OF_WORDS, engine)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of phrases and of what a sentence calls a password."""
        if self._any.search(data) is not None:
            yield from self._spoken(data, self._said)
            yield from self._spoken(data, self._said_elsewhere)
            yield from self._spoken(data, self._said_vaguely, vague=True)
        if b"login" in lowered and b"password" in lowered:
            for match in self._netrc.finditer(data):
                if not inert.is_template(match.group(1)):
                    yield Span(match.start(1), match.end(1), "password", "netrc")
        if b"seed" in lowered or b"mnemonic" in lowered or b"phrase" in lowered or b"recovery" in lowered:
            for match in self._seed.finditer(data):
                yield Span(match.start(1), match.end(1), "seed_phrase", "phrase:named")
        if data.count(b" ") >= 11:
            for match in self._line.finditer(data):
                if is_word_list(match.group(1).split(b" ")):
                    yield Span(match.start(1), match.end(1), "seed_phrase", "phrase:words")

    def _spoken(self, data: bytes, matcher: Matcher, *, vague: bool = False) -> Iterable[Span]:
        for match in matcher.finditer(data):
            if match.start(1) >= 0:
                start = match.end(1)
                end = data.find(match.group(1), start, start + 256)
                if end < 0 or b"\n" in data[start:end]:
                    continue
                value = data[start:end]
            else:
                start, end = match.start(2), match.end(2)
                value = data[start:end].rstrip(b".,;:!?)")
                end = start + len(value)
                if (vague or _VAGUE.match(data, match.start())) and not _MIXED.fullmatch(value):
                    continue
                if not inert.has_digit(value) and reads_like_words(value):
                    continue
            if len(value) >= 3 and not inert.is_template(value) and not inert.is_code(value):
                yield Span(start, end, "password", "phrase:said")
