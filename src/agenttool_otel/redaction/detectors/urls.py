"""Credentials in URLs: user information, signatures and keys among the query parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.keys import KeyClass, classify
from agenttool_otel.redaction.patterns import find_all
from agenttool_otel.redaction.plausibility import is_code, is_filler, is_template, plausible_token
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words, words

_USERINFO = r"://([^\s\"'`<>/?#@:\\]{0,256}):([^\s\"'`<>/]+)@"
# a slash that should have been encoded; a port and a path have one too, so the value must look like
# a credential
_UNENCODED = (
    r"://([^\s\"'`<>/?#@:\\]{0,256}):([^\s\"'`<>/?#@]{0,256}/[^\s\"'`<>@?#]{1,256})@[A-Za-z0-9\[]"
)
_USER_ONLY = r"://([A-Za-z0-9_.~%\-]{14,})@"
_QUERY = r"[?&;#]([A-Za-z][A-Za-z0-9_.\-]{1,60})=([^\s\"'`<>&;#\\]+)"
_SIGNATURES = words("signatures")
_SEMICOLON: Final = 59
_LEAST = {"key": 20, "code": 24}


def is_secret_parameter(name: str, value: bytes) -> bool:
    """Whether a query parameter holds a credential."""
    if is_template(value):
        return False
    plain = name.lower().replace("-", "").replace("_", "")
    if plain in _SIGNATURES:
        return len(value) >= 8
    if plain in _LEAST:
        return plausible_token(value, least=_LEAST[plain])
    found = classify(name)
    if found is KeyClass.PASSWORD:
        return True
    if found in (KeyClass.TOKEN, KeyClass.HEADER):
        return (
            len(value) >= 6
            and not is_filler(value)
            and not (value.isupper() and reads_like_words(value))
        )
    if found is KeyClass.CODE:
        return value.isdigit() and 3 <= len(value) <= 10
    return found in (KeyClass.WEAK, KeyClass.SERVICE) and plausible_token(value)


def find_in_urls(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of passwords, tokens and signatures; host, path and harmless parameters stay."""
    if b"://" in data and b"@" in data:
        yield from _find_in_authorities(data)
    if b"=" in data:
        yield from _find_in_queries(data)


def _find_in_authorities(data: bytes) -> Iterable[Span]:
    """What stands between ``://`` and ``@``."""
    for match in find_all(_USERINFO, data):
        user = match.group(1)
        password = match.group(2)
        if is_template(password):
            continue
        start = match.start(1 if _both_secret(user, password) else 2)
        yield Span(start, match.end(2), "url_password", "url:userinfo")
    for match in find_all(_UNENCODED, data):
        password = match.group(2)
        # http://host:8080/users/bob@example.org
        if password.partition(b"/")[0].isdigit():
            continue
        if plausible_token(password, least=8):
            yield Span(match.start(2), match.end(2), "url_password", "url:userinfo")
    for match in find_all(_USER_ONLY, data):
        if plausible_token(match.group(1), least=14):
            yield Span(match.start(1), match.end(1), "url_password", "url:user")


def _find_in_queries(data: bytes) -> Iterable[Span]:
    """Parameters of queries and fragments."""
    for match in find_all(_QUERY, data):
        value = match.group(2)
        # a program: "; token=get_token()"
        is_statement = data[match.start()] == _SEMICOLON
        if is_statement and (b"(" in value or is_code(value.partition(b"|")[0])):
            continue
        name = match.group(1).decode("ascii", "replace")
        if is_secret_parameter(name, value):
            yield Span(match.start(2), match.end(2), "url_parameter", "url:query")


def _both_secret(user: bytes, password: bytes) -> bool:
    """Whether the user name is one half of a credential too (hexadecimal pairs, as package
    registries give them).
    """
    return (
        len(user) >= 8
        and len(user) == len(password)
        and all(byte in b"0123456789abcdef" for byte in user + password)
    )


DETECTOR: Final = BuiltIn(find=find_in_urls, between_words=True)
