"""Credentials in HTTP headers, wherever they are written: raw requests, curl commands, logs, quoted
pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.detectors.encoded import decode_bytes
from agenttool_otel.redaction.patterns import find_all, spans_of
from agenttool_otel.redaction.plausibility import (
    has_digit,
    is_filler,
    is_stand_in,
    is_template,
    plausible_token,
)
from agenttool_otel.redaction.types import Span

COMMON_SCHEMES: Final = (
    r"basic|bearer|token|apikey|api-key|digest|negotiate|ntlm|aws4-hmac-sha256|aws|hawk|oauth|key"
)
"""``Bearer``, ``AWS4-HMAC-SHA256``"""
RARE_SCHEMES: Final = r"jwt|dpop|gnap|mutual|hmac"
"""``DPoP`` (RFC 9449), ``GNAP`` (RFC 9635)"""
SCHEMES_OF_SERVICES: Final = (
    r"sharedkey(?:lite)?|sharedaccesssignature|splunk|bot|genie-?key"
    r"|sso-key|snowflake token|discogs|fxapiauth"
)
"""``SharedKey`` of Azure, ``GenieKey`` of Opsgenie, ``sso-key`` of GoDaddy"""
SCHEMES: Final = f"{COMMON_SCHEMES}|{RARE_SCHEMES}|{SCHEMES_OF_SERVICES}"
"""What stands before the credential in an Authorization header: registered schemes and vendors'."""
_ESCAPED_QUOTES = r"""[\\"'`]{0,8}"""
_OPENING = r"""[\\"'`\[]{0,8}"""
AUTHORIZATION_NAME: Final = (
    rf"\b(?:proxy-|x-|http_)?authorization{_ESCAPED_QUOTES}\s{{0,4}}(?:=>|:|=|,)\s{{0,4}}{_OPENING}"
)
"""A header's name and what leads to its value, in source text, too: ``"Authorization" => "``."""
_AUTHORIZATION = (
    rf"(?i){AUTHORIZATION_NAME}"
    # a scheme that nobody has listed is a word, too
    rf"[ \t]{{0,4}}(?:({SCHEMES}|[A-Za-z][A-Za-z-]{{1,24}})[ \t]+)?"
    r"""([^\s"'`<>\\,]+)"""
)
_KNOWN = re.compile(b"(?i)(?:" + SCHEMES.encode() + b")")
_BARE = r"(?i)(?:^|[^A-Za-z0-9_-])(bearer|basic|token)[ \t]+([A-Za-z0-9._~+/=|%-]{12,})"
_PAIR = r"[A-Za-z0-9!#$%&*+.^_|~-]{1,80}=[^\s;\"'`\\,]*"
COOKIE_NAME: Final = rf"\b(set-)?cookie2?{_ESCAPED_QUOTES}\s{{0,4}}(?::|=>|,|=)\s{{0,4}}{_OPENING}"
"""``Cookie:`` or ``Set-Cookie:``, with ``set-`` as group 1."""
_COOKIE = rf"(?i){COOKIE_NAME}({_PAIR}(?:;[ \t]{{0,4}}{_PAIR})*)"
_CURL = r"(?:^|\s)(?:-b|--cookie)[ =]\\{0,3}[\"']?(" + _PAIR + r"(?:;[ \t]{0,4}" + _PAIR + ")*)"
_TASTE = re.compile(
    rb"[\w.-]+=(?:[A-Za-z_.%/+-]{0,15}\d?|v?\d{1,4}(?:[x.%-]\d{1,4}){0,3}|\d{1,4}[a-z]{1,3})"
)
_SESSION = re.compile(
    rb"(?i)ses|(?:^|[._-])sid|sid$|auth|token|jwt|csrf|key|secret|remember|user|id$"
)
_VALUE = re.compile(rb"[\w=~@.+/:|%-]{6,}")
_SCHEME = re.compile(rb"(?i)\s*(?:(" + SCHEMES.encode() + rb")[ \t]+)?(.*)", re.DOTALL)
_LINE_REST = re.compile(rb"[^\r\n\"'`\\]*")
_WHOLE_LINE = frozenset((b"digest", b"aws4-hmac-sha256", b"hawk", b"oauth", b"hmac", b"mutual"))


def header_secret(value: bytes) -> tuple[int, int] | None:
    """Which part of an Authorization header's value is the credential."""
    if (match := _SCHEME.match(value)) is None:
        return None
    start, end = match.span(2)
    secret = value[start:end].strip()
    if len(secret) < 3 or _only_shows(secret):
        return None
    return start, end


def find_in_headers(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of credentials; header names and schemes stay."""
    if b"authorization" in lowered:
        yield from _find_authorization(data)
    if b"bearer" in lowered or b"basic" in lowered or b"token" in lowered:
        yield from _find_schemes(data)
    if b"curl" in lowered or b"--cookie" in lowered:
        yield from _find_cookie_options(data)
    if b"cookie" in lowered:
        yield from _find_cookies(data)


def _find_authorization(data: bytes) -> Iterable[Span]:
    """``Authorization: Bearer ...``, in headers and in mappings of source text."""
    for match in find_all(_AUTHORIZATION, data):
        _, (scheme_start, scheme_end), (start, end) = spans_of(match, 2)
        scheme = None
        if scheme_start >= 0:
            scheme = data[scheme_start:scheme_end]
        end = start + len(data[start:end].rstrip(b"}])"))
        value = data[start:end]
        if scheme is not None and scheme.lower() in _WHOLE_LINE:
            # Digest username="bob", response="..."
            rest = _LINE_REST.match(data, start)
            if rest is not None:
                end = rest.end()
            if b"=" in data[start:end]:
                yield Span(start, end, "authorization", "header:authorization")
        elif _credible(value, scheme):
            yield Span(start, end, "authorization", "header:authorization")
        elif scheme is not None and not _KNOWN.fullmatch(scheme) and _credible(scheme, None):
            # the value itself was taken for a scheme: Authorization: a1b2c3d4 and more
            yield Span(scheme_start, scheme_end, "authorization", "header:authorization")


def _find_schemes(data: bytes) -> Iterable[Span]:
    """``Bearer ...`` and ``Basic ...`` without the header's name."""
    for match in find_all(_BARE, data):
        scheme = match.group(1).lower()
        value = match.group(2)
        start, end = match.span(2)
        if scheme == b"basic":
            if _is_basic(value):
                yield Span(start, end, "authorization", "header:basic")
        elif _is_bearer(scheme, value):
            yield Span(start, end, "authorization", "header:bearer")


def _is_bearer(scheme: bytes, value: bytes) -> bool:
    if plausible_token(value, least=16):
        return True
    # "token" is an everyday word, "bearer" is not
    if scheme != b"bearer" or len(value) < 16:
        return False
    return has_digit(value) and plausible_token(value)


def _find_cookie_options(data: bytes) -> Iterable[Span]:
    """``curl -b session=...``"""
    for match in find_all(_CURL, data):
        start, end = match.span(1)
        value = data[start:end].partition(b"=")[2]
        if not is_template(value):
            yield Span(start, end, "cookie", "flag:cookie")


def _find_cookies(data: bytes) -> Iterable[Span]:
    """The pairs of ``Cookie:``, the value of ``Set-Cookie:``."""
    for match in find_all(_COOKIE, data):
        first, end = match.span(2)
        start = first
        if match.group(1):
            # Set-Cookie: session=...; Path=/ holds one pair, and attributes
            pair_end = data.find(b";", first, end)
            if pair_end >= 0:
                end = pair_end
            start = data.find(b"=", first, end) + 1
        if _is_taste(data[first:end]):
            continue
        value = data[start:end]
        if len(value) < 3 or is_template(value.partition(b"=")[2] or value):
            continue
        yield Span(start, end, "cookie", "header:cookie")


def _is_taste(value: bytes) -> bool:
    """Whether cookies hold words only, under names that are no session's: ``theme=dark;
    lang=pl``.
    """
    for pair in value.split(b";"):
        name, _, taste = pair.partition(b"=")
        if is_template(taste.strip()):
            continue
        if not _TASTE.fullmatch(pair.strip()) or _SESSION.search(name):
            return False
    return True


def _credible(value: bytes, scheme: bytes | None) -> bool:
    if _VALUE.fullmatch(value) is None:
        return False
    if scheme is not None and _KNOWN.fullmatch(scheme):
        return not _only_shows(value)
    # the word before may be a scheme that nobody has listed, or any word
    return plausible_token(
        value.replace(b":", b"").replace(b"@", b""), least=8 if scheme is None else 16
    )


def _only_shows(value: bytes) -> bool:
    """Whether it shows where a credential goes (``Bearer YOUR_API_KEY``)."""
    return is_template(value) or is_filler(value) or (is_stand_in(value) and not has_digit(value))


def _is_basic(value: bytes) -> bool:
    """Whether it decodes to ``user:password``."""
    text = decode_bytes(value)
    return text is not None and b":" in text and all(32 <= byte < 127 for byte in text[:64])


DETECTOR: Final = BuiltIn(find=find_in_headers, between_words=True)
