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
from agenttool_otel.redaction.patterns import find_all, spans_of
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

START_OF_WORD: Final = r"""(?:^|[\s"'`(\[,])"""
"""What a word of a command line begins behind; a list of arguments in text is one, too."""
QUOTE_OR_BARE: Final = r"""(?:(\\{0,3}["'`])|([^\s"'`<>|;()\-][^\s"'`<>|;()]*))"""
"""The quote that opens a value, or a bare value, as two groups."""
# --password hunter2, and '--password', 'hunter2'
_LONG = (
    START_OF_WORD
    + r"""--?([A-Za-z][\w-]{1,40})(?:[ \t]+|\\{0,3}["'],[ \t]*)"""
    + r"""(?:(\\{0,3}["'`])|([^\s"'`<>|&;()\-][^\s"'`<>|;()]*))"""
)
USER_OPTIONS: Final = (
    r"(?:-u|-U|--user|--proxy-user|--(?:src-|dest-)?creds|--credentials|--auth|-a)[ \t=]{0,4}"
)
"""Options that take ``user:password``."""
_USER = START_OF_WORD + USER_OPTIONS + r"""(?:(\\{0,3}["'`])|([^\s"'`<>|;()]*:[^\s"'`<>|;()]*))"""
_USER_FLAG = r"(?:^|\s)(?:-u|-U|-l|--user|--username|--login)(?:[ =]|$)"
_NUMBERISH = re.compile(rb"[\d.:/,-]+(?:/(?:tcp|udp))?")
_USERS = frozenset(
    (b"user", b"username", b"login", b"name", b"email", b"me", b"myuser", b"your_username")
)
_PASSES = frozenset((b"pass", b"password", b"passwd", b"pwd", b"pw", b"mypass", b"mypassword"))
_SENTENCE = re.compile(rb"[A-Za-z]{2,}(?:[ ,][a-z]|\.)")
_PROSE = byte_words("links")
_SECRET_OPTIONS = frozenset((KeyClass.PASSWORD, KeyClass.TOKEN, KeyClass.CODE, KeyClass.WEAK))
_EXAMPLE_PAIRS = frozenset(((b"xxx", b"yyy"), (b"foo", b"bar")))
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
    apart = _programs_by_letter(table["apart"])
    attached = _programs_by_letter(table["attached"])
    names = sorted(frozenset[bytes]().union(*apart.values(), *attached.values()))
    letters = b"".join(sorted(apart.keys() | attached.keys())).decode()
    program = r"(?i)(?:^|[\s/;&|\"'`(])(" + b"|".join(names).decode() + r")\b"
    option = rf"{START_OF_WORD}-([{letters}])([ \t]*){QUOTE_OR_BARE}"
    return _Commands(apart, attached, program, option)


def _programs_by_letter(rows: dict[str, str]) -> dict[bytes, frozenset[bytes]]:
    """The programs, separated by spaces in the table, of each option's letter."""
    table: dict[bytes, frozenset[bytes]] = {}
    for letter, programs in rows.items():
        names = programs.encode().split()
        table[letter.encode()] = frozenset(names)
    return table


def find_in_flags(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of flag values."""
    if b"-" not in data:
        return
    yield from _find_long_options(data)
    yield from _find_users(data)
    yield from _find_short_options(data)


def _find_long_options(data: bytes) -> Iterable[Span]:
    """Spans of the values of ``--password hunter2`` and ``'--password', 'hunter2'``."""
    for match in find_all(_LONG, data):
        (begin, _), (name, name_end), quote, bare = spans_of(match, 3)
        found = classify(data[name:name_end].decode())
        if found not in _SECRET_OPTIONS:
            continue
        start, end = _value(data, quote, bare)
        if quote[0] < 0:
            if not _is_value(data, name_end, start):
                continue
            # [--token TOKEN]
            before = data[begin : begin + 1]
            last = data[end - 1 : end]
            if before == b"[" and last == b"]":
                end -= 1
        if flag_secret(found, data[start:end]):
            yield Span(start, end, kind_of_key(found), "flag:" + found.value)


def _is_value(data: bytes, name_end: int, start: int) -> bool:
    """Whether what stands bare behind an option is its value."""
    # a list holds its values in quotes: "--password", next
    if data[name_end : name_end + 1] not in (b" ", b"\t"):
        return False
    # what a help text writes about the flag stands apart from it
    return start - name_end <= 1 or _SENTENCE.match(data, start) is None


def _find_users(data: bytes) -> Iterable[Span]:
    """Spans of the passwords of ``-u bob:hunter2``."""
    for match in find_all(_USER, data):
        start, end = _value(data, match.span(1), match.span(2))
        if b"\n" in data[start:end]:
            continue
        # '-u': the quote closes there
        before_option = data[match.start() : match.start() + 1]
        if before_option != b" " and before_option == data[start - 1 : start]:
            continue
        user, colon, password = data[start:end].partition(b":")
        if not colon or not pair_secret(user, password):
            continue
        first = end - len(password)
        # "-u key:" holds the key as the user
        if not password:
            first = start
        yield Span(first, end, "password", "flag:user")


class _Option(NamedTuple):
    """A single-letter option with its value."""

    begin: int  # first byte of the match
    line: int  # first byte of its line
    letter: bytes
    value: bytes
    apart: bool  # whether white space stands before the value


def _find_short_options(data: bytes) -> Iterable[Span]:
    """Spans of the values of single-letter options: ``-p value``, ``-pvalue``."""
    commands = _commands()
    programs: list[tuple[int, bytes]] = []
    for match in find_all(commands.program, data):
        name = match.group(1).lower()
        programs.append((match.start(1), name))
    users = [match.start() for match in find_all(_USER_FLAG, data)]
    if not programs and not users:
        return
    for match in find_all(commands.option, data):
        (begin, _), (letter, letter_end), (space, space_end), quote, bare = spans_of(match, 4)
        start, end = _value(data, quote, bare)
        value = data[start:end]
        if not value or is_template(value) or is_filler(value):
            continue
        option = _Option(
            begin=begin,
            line=_line_start(data, begin),
            letter=data[letter:letter_end],
            value=value,
            apart=space_end > space,
        )
        if _is_password(option, commands, programs, users):
            yield Span(start, end, "password", "flag:" + option.letter.decode())


def _line_start(data: bytes, at: int) -> int:
    """The first byte of the line around a place, or a bound before it."""
    bound = max(0, at - _LINE_BYTES)
    return max(data.rfind(b"\n", bound, at) + 1, bound)


def _is_password(
    option: _Option,
    commands: _Commands,
    programs: Sequence[tuple[int, bytes]],
    users: Sequence[int],
) -> bool:
    """Whether a single-letter option holds a password, by what stands before it on its line.

    Args:
        option: the option.
        commands: which programs take which option.
        programs: where programs stand in the text, and which.
        users: where options with a user's name stand.
    """
    value = option.value
    before = _programs_before(option, programs)
    takers = commands.apart if option.apart else commands.attached
    if not before.isdisjoint(takers.get(option.letter, frozenset())):
        # -p 5432 is a port, but not of sshpass
        is_port = option.letter == b"p" and option.apart and value.isdigit() and len(value) <= 5
        return not is_port or b"sshpass" in before
    if option.letter != b"p" or not option.apart or _NUMBERISH.fullmatch(value):
        return False
    if not before.isdisjoint(commands.attached[b"p"]):
        # mysql -p asks, and what follows is a database, unless a password was put there
        return has_digit(value) or not reads_like_words(value)
    # login -u bob -p hunter2
    before_line = bisect_left(users, option.line)
    before_option = bisect_left(users, option.begin)
    if before_line == before_option:
        return False
    if value.startswith((b"/", b"./", b"~")):
        return False
    return has_digit(value) or not value.isalpha() or not reads_like_words(value)


def _programs_before(option: _Option, programs: Sequence[tuple[int, bytes]]) -> frozenset[bytes]:
    """The last programs before an option on its line."""
    last = bisect_left(programs, (option.begin,))
    first = max(0, last - _MOST_PROGRAMS)
    before: set[bytes] = set()
    for at, name in programs[first:last]:
        if at >= option.line:
            before.add(name)
    return frozenset(before)


def _value(data: bytes, quote: tuple[int, int], bare: tuple[int, int]) -> tuple[int, int]:
    """Where a value begins and ends: at its quotes, or as the pattern found it."""
    first, last = quote
    if first < 0:
        return bare
    closing = data.find(data[first:last], last, last + _LINE_BYTES)
    if closing < 0:
        newline = data.find(b"\n", last, last + _LINE_BYTES)
        closing = newline
    if closing < 0:
        closing = min(len(data), last + _LINE_BYTES)
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
    # --token @token.txt, --secret id=npm,src=.npmrc
    if len(value) < 6 or value.startswith((b"id=", b"@")):
        return False
    return not is_word_like(value) and not is_path(value)


def pair_secret(user: bytes, password: bytes) -> bool:
    """Whether ``user:password`` of a flag holds a real password: no variables, no uid:gid, no
    ``test:test``.
    """
    if not password:
        # "-u key:" is how some services take an API key
        if len(user) < 8 or user[:1] == b"$":
            return False
        return plausible_token(user.replace(b"!", b""), least=8)
    if password[:1] == b"$" or is_template(password):
        return False
    if is_filler(password) or is_path(password):
        return False
    if password.isdigit() and (user.isdigit() or not user):
        return False
    lower = user.lower()
    other = password.lower()
    if lower in _USERS and other in _PASSES:
        return False
    # test:test
    if lower == other and len(lower) <= 8:
        return False
    return (lower, other) not in _EXAMPLE_PAIRS


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
        item = items[index]
        if type(item) is not str:
            continue
        flag = items[index - 1] if index else ""
        if type(flag) is str and flag[:1] == "-" and replaced(flag):
            continue
        before = span.start - starts[index]
        # _as_word puts all but options into quotes
        if item[:1] != "-":
            before -= 1
        kept = item.encode("utf-8", "surrogatepass")[:before].decode("utf-8", "replace")
        reason = (span.kind, span.rule, len(kept))
        found.setdefault(index, reason)
    return found


def _as_word(item: object) -> bytes:
    """An item, or the beginning of a long one, as one word of a command line: as long as it is, and
    its quotes.
    """
    raw = b""
    if type(item) is str:
        raw = item[:_MOST_WORD_CHARS].encode("utf-8", "surrogatepass")
    word = raw.translate(_IN_QUOTES)
    if raw[:1] == b"-":
        return word
    return b'"' + word + b'"'


_IN_QUOTES = bytes.maketrans(b"\"'`\\\r\n", b"______")


DETECTOR: Final = BuiltIn(find=find_in_flags, between_words=True)
