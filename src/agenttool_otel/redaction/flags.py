"""Credentials in command lines: ``--password hunter2``, ``-u user:pw``, ``mysql -phunter2``, ``sshpass -p ...``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.keys import KeyClass, classify, kind_of_key
from agenttool_otel.redaction.patterns import compile_pattern
from agenttool_otel.redaction.types import Engine, Span
from agenttool_otel.redaction.words import byte_words

__all__ = ["FlagDetector", "argument_spans"]

# a list of arguments in text is one too: '--password', 'hunter2'
_LONG = (
    r"(?:^|[\s\"'`(\[,])--?([A-Za-z][\w-]{1,40})(?:[ \t]+|\\{0,3}[\"'],[ \t]*)"
    r"(?:(\\{0,3}[\"'`])|([^\s\"'`<>|&;()\-][^\s\"'`<>|;()]*))"
)
_SHORT = r"(?:^|[\s\"'`(\[,])-([pPaw])([ \t]*)(?:(\\{0,3}[\"'`])|([^\s\"'`<>|;()\-][^\s\"'`<>|;()]*))"
_USER = (
    r"(?:^|[\s\"'`(\[,])(?:-u|-U|--user|--proxy-user|--creds|--credentials|--auth|-a)[ \t=]{0,4}"
    r"(?:(\\{0,3}[\"'`])|([^\s\"'`<>|;()]*:[^\s\"'`<>|;()]*))"
)
_CLIENTS = re.compile(
    rb"(?i)(?:^|[\s/;&|\"'`])(mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mariadb|mariadb-dump|mongo|mongosh|mongodump"
    rb"|mongorestore|sshpass|redis-cli|ldapsearch|ldapadd|ldapmodify|ldapwhoami|sqlcmd|bcp|isql|sqlplus|smbclient|rabbitmqadmin"
    rb"|htpasswd|clickhouse-client|cqlsh|influx|impala-shell|beeline|neo4j-admin|cypher-shell|unzip|zip|7z|openssl|mosquitto_pub"
    rb"|mosquitto_sub|kinit|vncviewer|xfreerdp|rdesktop|ipmitool|snmpwalk|expect|login|rclone|lftp|ncftp|kcat|nxc|crackmapexec"
    rb"|evil-winrm|keytool|psexec|winexe)\b"
)
_USER_FLAG = re.compile(rb"(?:^|\s)(?:-u|-U|-l|--user|--username|--login)(?:[ =]|$)")
_ATTACHED = re.compile(rb"(?i)(?:mysql|mariadb|sshpass|7z|rabbitmq|unzip|zip)")
_LETTERS = {
    b"p": None,
    b"P": b"sqlcmd bcp zip ipmitool isql",
    b"a": b"redis-cli",
    b"w": b"ldapsearch ldapadd ldapmodify ldapwhoami",
}
_NUMBERISH = re.compile(rb"[\d.:/,-]+(?:/(?:tcp|udp))?")
_USER_FLAGS = frozenset(("-u", "-U", "--user", "--proxy-user", "--creds", "--credentials", "--auth", "-a"))
_USERS = frozenset((b"user", b"username", b"login", b"name", b"email", b"me", b"myuser", b"your_username"))
_PASSES = frozenset((b"pass", b"password", b"passwd", b"pwd", b"pw", b"mypass", b"mypassword"))
_SENTENCE = re.compile(rb"[A-Za-z]{2,}(?:[ ,][a-z]|\.)")
_PROSE = byte_words("links")
_LIMIT = 1024


class FlagDetector:
    """Finds values of command-line flags that carry credentials."""

    name = "flags"

    def __init__(self, engine: Engine) -> None:
        self._long = compile_pattern(_LONG, engine)
        self._short = compile_pattern(_SHORT, engine)
        self._user = compile_pattern(_USER, engine)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of flag values."""
        if b"-" not in data:
            return
        for match in self._long.finditer(data):
            found = classify(match.group(1).decode())
            if match.start(2) < 0 and data[match.end(1) : match.end(1) + 1] not in (b" ", b"\t"):
                continue  # a list holds its values in quotes
            if found in (KeyClass.PASSWORD, KeyClass.TOKEN, KeyClass.CODE, KeyClass.WEAK):
                start, end = _value(data, match.start(2), match.end(2), match.start(3), match.end(3))
                if match.start(2) < 0:
                    if data[match.start() : match.start() + 1] == b"[" and data[end - 1 : end] == b"]":
                        end -= 1  # [--token TOKEN]
                    if start - match.end(1) > 1 and _SENTENCE.match(data, start):
                        continue  # what a help text says of the flag stands apart from it
                if flag_secret(found, data[start:end]):
                    yield Span(start, end, kind_of_key(found), "flag:" + found.value)
        for match in self._user.finditer(data):
            start, end = _value(data, match.start(1), match.end(1), match.start(2), match.end(2))
            colon = data.find(b":", start, end)
            if b"\n" in data[start:end] or data[match.start() : match.start() + 1] == data[start - 1 : start] != b" ":
                continue  # '-u': the quote closes there
            if colon >= 0 and pair_secret(data[start:colon], data[colon + 1 : end]):
                yield Span(start if colon + 1 == end else colon + 1, end, "password", "flag:user")
        for match in self._short.finditer(data):
            start, end = _value(data, match.start(3), match.end(3), match.start(4), match.end(4))
            line = data[max(data.rfind(b"\n", 0, match.start()) + 1, match.start() - _LIMIT) : match.start() + 1]
            if short_secret(match.group(1), bool(match.group(2)), data[start:end], line):
                yield Span(start, end, "password", "flag:" + match.group(1).decode())


def _value(data: bytes, open_start: int, open_end: int, start: int, end: int) -> tuple[int, int]:
    if open_start < 0:
        return start, end
    opener = data[open_start:open_end]
    closing = data.find(opener, open_end, open_end + _LIMIT)
    if closing < 0:
        newline = data.find(b"\n", open_end, open_end + _LIMIT)
        closing = newline if newline >= 0 else min(len(data), open_end + _LIMIT)
    return open_end, closing


def flag_secret(found: KeyClass, value: bytes) -> bool:
    """Whether the value of a long flag is a secret, by the class of the flag's name."""
    if not value or inert.is_template(value) or inert.is_filler(value):
        return False
    if found is KeyClass.PASSWORD:
        return value not in _PROSE
    if found is KeyClass.WEAK:
        return inert.plausible_token(value, least=16)
    if found is KeyClass.CODE:
        return value.isdigit() and 3 <= len(value) <= 10
    return (
        len(value) >= 6
        and not inert.is_word_like(value)
        and not inert.is_path(value)
        and not value.startswith((b"id=", b"@"))
    )


def pair_secret(user: bytes, password: bytes) -> bool:
    """Whether ``user:password`` of a flag holds a real password: no variables, no uid:gid, no ``test:test``."""
    if not password:
        # "-u key:" is how some services take an API key
        return len(user) >= 8 and user[:1] != b"$" and inert.plausible_token(user.replace(b"!", b""), least=8)
    if inert.is_template(password) or inert.is_filler(password) or inert.is_path(password) or password[:1] == b"$":
        return False
    if password.isdigit() and (user.isdigit() or not user):
        return False
    lower, other = user.lower(), password.lower()
    if lower in _USERS and other in _PASSES:
        return False
    return not (lower == other and len(lower) <= 8) and (lower, other) not in ((b"xxx", b"yyy"), (b"foo", b"bar"))


def short_secret(letter: bytes, spaced: bool, value: bytes, line: bytes) -> bool:
    """Whether ``-p value`` or ``-pvalue`` means a password in this command line, and not a port or a path."""
    if not value or inert.is_template(value) or inert.is_filler(value):
        return False
    clients = _CLIENTS.findall(line)
    if letter in (b"a", b"w", b"P"):
        return spaced and any(client.lower() in (_LETTERS[letter] or b"").split() for client in clients)
    if _NUMBERISH.fullmatch(value) and not clients:
        return False
    if not spaced:
        return any(_ATTACHED.match(client) for client in clients)
    if clients:
        return not (value.isdigit() and len(value) <= 5 and clients[-1].lower() not in (b"sshpass",))
    return _USER_FLAG.search(line) is not None and not value.startswith((b"/", b"./", b"~"))


def argument_spans(items: Sequence[object], replaced: Callable[[str], bool]) -> dict[int, tuple[str, str, int]]:
    """Which items of an argument list are secret because of the flag before them.

    Args:
        items: a list as a program's ``argv``; other types are passed over.
        replaced: whether a placeholder stands in a flag, which then is nobody's flag.

    Returns:
        Index to (kind, rule, characters that stay in front).
    """
    found: dict[int, tuple[str, str, int]] = {}
    for index in range(1, len(items)):
        flag, value = items[index - 1], items[index]
        if type(flag) is not str or type(value) is not str or not flag.startswith("-") or len(flag) > 64:
            continue
        raw = value.encode("utf-8", "surrogatepass")
        name = flag.lstrip("-")
        if len(name) > 1:
            key = classify(name)
            if key in (KeyClass.PASSWORD, KeyClass.TOKEN, KeyClass.CODE) and flag_secret(key, raw):
                if replaced(flag):
                    continue
                found[index] = (kind_of_key(key), "flag:" + key.value, 0)
            elif flag in _USER_FLAGS:
                _pair(value, index, found)
        elif flag in _USER_FLAGS and ":" in value:
            _pair(value, index, found)
        elif name and name in "pPaw" and not value.startswith("-"):
            line = " ".join(item for item in items[:index] if type(item) is str and len(item) < 200)
            if short_secret(name.encode(), True, raw, line.encode("utf-8", "surrogatepass")):
                found[index] = ("password", "flag:" + name, 0)
    _attached(items, found)
    return found


def _pair(value: str, index: int, found: dict[int, tuple[str, str, int]]) -> None:
    user, colon, password = value.partition(":")
    if colon and pair_secret(user.encode("utf-8", "surrogatepass"), password.encode("utf-8", "surrogatepass")):
        found[index] = ("password", "flag:user", len(user) + 1 if password else 0)


def _attached(items: Sequence[object], found: dict[int, tuple[str, str, int]]) -> None:
    """``-phunter2`` after ``mysql``."""
    first = items[0]
    if type(first) is not str or not _ATTACHED.match(first.rpartition("/")[2].encode("utf-8", "surrogatepass")):
        return
    for index, item in enumerate(items[1:], 1):
        if (
            type(item) is str
            and len(item) > 2
            and item[:2] == "-p"
            and not inert.is_template(item[2:].encode("utf-8", "surrogatepass"))
        ):
            found.setdefault(index, ("password", "flag:p", 2))
