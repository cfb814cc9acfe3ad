"""Credentials in command lines: ``--password hunter2``, ``-u user:pw``, ``mysql -phunter2``,
``sshpass -p ...``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.keys import KeyClass, classify, kind_of_key
from agenttool_otel.redaction.patterns import LONG_PATTERNS, find_all, spans_of
from agenttool_otel.redaction.plausibility import (
    has_digit,
    is_filler,
    is_path,
    is_template,
    is_word_like,
    plausible_token,
)
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import byte_words, reads_like_words
from agenttool_otel.values.tables import load_table

# a list of arguments in text is one too: '--password', 'hunter2'
_LONG_PATTERNS: Final = LONG_PATTERNS["flags"]
_LONG = _LONG_PATTERNS["long"]
_USER = _LONG_PATTERNS["user"]
_USER_FLAG = r"(?:^|\s)(?:-u|-U|-l|--user|--username|--login)(?:[ =]|$)"
_NUMBERISH = re.compile(rb"[\d.:/,-]+(?:/(?:tcp|udp))?")
_USERS = frozenset(
    (b"user", b"username", b"login", b"name", b"email", b"me", b"myuser", b"your_username")
)
_PASSES = frozenset((b"pass", b"password", b"passwd", b"pwd", b"pw", b"mypass", b"mypassword"))
_SENTENCE = re.compile(rb"[A-Za-z]{2,}(?:[ ,][a-z]|\.)")
_PROSE = byte_words("links")
_LINE_BYTES = 1024
_MOST_PROGRAMS = 8
_MOST_WORD_CHARS = 4096


class _Commands(NamedTuple):
    """The programs of ``commands.toml``."""

    # letter of an option to the programs whose secret stands behind white space
    apart: dict[bytes, frozenset[bytes]]
    attached: dict[bytes, frozenset[bytes]]  # the same where it is attached
    program: str
    option: str


@lru_cache(maxsize=1)
def _commands() -> _Commands:
    table = load_table(__package__, "commands.toml")
    apart, attached = (
        {
            letter.encode(): frozenset(programs.encode().split())
            for letter, programs in table[form].items()
        }
        for form in ("apart", "attached")
    )
    names = sorted(frozenset[bytes]().union(*apart.values(), *attached.values()))
    letters = b"".join(sorted(apart.keys() | attached.keys())).decode()
    program = r"(?i)(?:^|[\s/;&|\"'`(])(" + b"|".join(names).decode() + r")\b"
    option = rf"(?:^|[\s\"'`(\[,])-([{letters}])([ \t]*)(?:(\\{{0,3}}[\"'`])|([^\s\"'`<>|;()\-][^\s\"'`<>|;()]*))"
    return _Commands(apart, attached, program, option)


def find_in_flags(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of flag values."""
    if b"-" not in data:
        return
    for match in find_all(_LONG, data):
        (begin, _), (name, name_end), quote, bare = spans_of(match, 3)
        found = classify(data[name:name_end].decode())
        if found not in (KeyClass.PASSWORD, KeyClass.TOKEN, KeyClass.CODE, KeyClass.WEAK):
            continue
        start, end = _value(data, quote, bare)
        if quote[0] < 0:
            if data[name_end : name_end + 1] not in (b" ", b"\t"):
                continue  # a list holds its values in quotes
            if data[begin : begin + 1] == b"[" and data[end - 1 : end] == b"]":
                end -= 1  # [--token TOKEN]
            if start - name_end > 1 and _SENTENCE.match(data, start):
                continue  # what a help text says of the flag stands apart from it
        if flag_secret(found, data[start:end]):
            yield Span(start, end, kind_of_key(found), "flag:" + found.value)
    for match in find_all(_USER, data):
        start, end = _value(data, match.span(1), match.span(2))
        colon = data.find(b":", start, end)
        if (
            b"\n" in data[start:end]
            or data[match.start() : match.start() + 1] == data[start - 1 : start] != b" "
        ):
            continue  # '-u': the quote closes there
        if colon >= 0 and pair_secret(data[start:colon], data[colon + 1 : end]):
            yield Span(start if colon + 1 == end else colon + 1, end, "password", "flag:user")
    yield from _short_options(data)


def _short_options(data: bytes) -> Iterable[Span]:
    """Spans of the values of single-letter options: ``-p value``, ``-pvalue``."""
    commands = _commands()
    programs = [
        (match.start(1), match.group(1).lower()) for match in find_all(commands.program, data)
    ]
    users = [match.start() for match in find_all(_USER_FLAG, data)]
    if not programs and not users:
        return
    for match in find_all(commands.option, data):
        (begin, _), (at, at_end), (space, space_end), quote, bare = spans_of(match, 4)
        start, end = _value(data, quote, bare)
        value, letter = data[start:end], data[at:at_end]
        if not value or is_template(value) or is_filler(value):
            continue
        line = max(0, begin - _LINE_BYTES)
        line = max(data.rfind(b"\n", line, begin) + 1, line)
        last = bisect_left(programs, (begin,))
        its_programs = {
            name for at, name in programs[max(0, last - _MOST_PROGRAMS) : last] if at >= line
        }
        apart = space_end > space
        if its_programs & (commands.apart if apart else commands.attached).get(letter, frozenset()):
            port = letter == b"p" and apart and value.isdigit() and len(value) <= 5
            secret = not port or b"sshpass" in its_programs
        elif letter != b"p" or not apart or _NUMBERISH.fullmatch(value):
            secret = False
        elif its_programs & commands.attached[b"p"]:
            # mysql -p asks, and what follows is a database, unless somebody has put a password
            # there
            secret = has_digit(value) or not reads_like_words(value)
        else:
            secret = bisect_left(users, line) < bisect_left(users, begin) and not value.startswith(
                (b"/", b"./", b"~")
            )
            secret = secret and (
                has_digit(value) or not value.isalpha() or not reads_like_words(value)
            )
        if secret:
            yield Span(start, end, "password", "flag:" + letter.decode())


def _value(data: bytes, quote: tuple[int, int], bare: tuple[int, int]) -> tuple[int, int]:
    """Where a value begins and ends: at its quotes, or as the pattern found it."""
    first, last = quote
    if first < 0:
        return bare
    closing = data.find(data[first:last], last, last + _LINE_BYTES)
    if closing < 0:
        newline = data.find(b"\n", last, last + _LINE_BYTES)
        closing = newline if newline >= 0 else min(len(data), last + _LINE_BYTES)
    return last, closing


def flag_secret(found: KeyClass, value: bytes) -> bool:
    """Whether the value of a long flag is a secret, by the class of the flag's name."""
    if not value or is_template(value) or is_filler(value):
        return False
    if found is KeyClass.PASSWORD:
        return value not in _PROSE
    if found is KeyClass.WEAK:
        return plausible_token(value, least=16)
    if found is KeyClass.CODE:
        return value.isdigit() and 3 <= len(value) <= 10
    if value.isalpha() and value.isupper() and len(value) < 20:
        return False  # --api-key ENVVAR
    return (
        len(value) >= 6
        and not is_word_like(value)
        and not is_path(value)
        and not value.startswith((b"id=", b"@"))
    )


def pair_secret(user: bytes, password: bytes) -> bool:
    """Whether ``user:password`` of a flag holds a real password: no variables, no uid:gid, no
    ``test:test``.
    """
    if not password:
        # "-u key:" is how some services take an API key
        return (
            len(user) >= 8
            and user[:1] != b"$"
            and plausible_token(user.replace(b"!", b""), least=8)
        )
    if is_template(password) or is_filler(password) or is_path(password) or password[:1] == b"$":
        return False
    if password.isdigit() and (user.isdigit() or not user):
        return False
    lower, other = user.lower(), password.lower()
    if lower in _USERS and other in _PASSES:
        return False
    return not (lower == other and len(lower) <= 8) and (lower, other) not in (
        (b"xxx", b"yyy"),
        (b"foo", b"bar"),
    )


def argument_spans(
    items: Sequence[object], replaced: Callable[[str], bool]
) -> dict[int, tuple[str, str, int]]:
    """Which items of an argument list are secret because of the option before them, and from which
    character on.
    """
    if not any(type(item) is str and item[:1] == "-" for item in items):
        return {}
    parts = [_as_word(item) for item in items]
    starts = list(accumulate((len(part) + 1 for part in parts), initial=0))
    found: dict[int, tuple[str, str, int]] = {}
    line = b" ".join(parts)
    for span in find_in_flags(line, line.lower()):
        index = bisect_right(starts, span.start) - 1
        item, flag = items[index], items[index - 1] if index else ""
        if type(item) is str and not (type(flag) is str and flag[:1] == "-" and replaced(flag)):
            quote = 0 if item[:1] == "-" else 1
            before = item.encode("utf-8", "surrogatepass")[: span.start - starts[index] - quote]
            found.setdefault(index, (span.kind, span.rule, len(before.decode("utf-8", "replace"))))
    return found


def _as_word(item: object) -> bytes:
    """An item, or the beginning of a long one, as one word of a command line: as long as it is, and
    its quotes.
    """
    raw = item[:_MOST_WORD_CHARS].encode("utf-8", "surrogatepass") if type(item) is str else b""
    word = raw.translate(_IN_QUOTES)
    return word if raw[:1] == b"-" else b'"' + word + b'"'


_IN_QUOTES = bytes.maketrans(b"\"'`\\\r\n", b"______")


DETECTOR: Final = BuiltIn(find=find_in_flags, between_words=True)
