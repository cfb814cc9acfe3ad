"""What a native exception holds: HTTP status, Retry-After, exit code, gRPC code; read by
duck typing.

Attributes of foreign exceptions may be properties that raise; every look at one is guarded.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isnan
from typing import Any, Final

from agenttool_otel.values.inspection import mro_names

_LONGEST_WAIT: Final = 86_400.0
_GRPC_PACKAGES: Final = frozenset({"grpc", "grpclib"})


def peek(value: object, name: str) -> Any:
    """Return an attribute, or ``None`` where there is none or reading it raises."""
    try:
        return getattr(value, name, None)
    except BaseException:
        # a property may raise anything, and it must not be what the tool's caller gets
        return None


def http_status(exception: BaseException) -> int | None:
    """Return the HTTP error status that an exception carries, of requests, httpx, aiohttp, urllib
    or an SDK.
    """
    for candidate in _statuses(exception):
        # IntEnum members are ints, and True is too
        if not issubclass(type(candidate), int) or type(candidate) is bool:
            continue
        status = int.__int__(candidate)  # a subclass may compare as it likes
        if 400 <= status <= 599:
            return status
    return None


def _statuses(exception: BaseException) -> Iterator[Any]:
    response = peek(exception, "response")
    yield peek(response, "status_code")  # requests, httpx
    yield peek(response, "status")
    yield peek(exception, "status_code")  # openai, anthropic
    if type(response) is dict:
        # botocore: {"ResponseMetadata": {"HTTPStatusCode": 503}}
        meta = response.get("ResponseMetadata")
        if type(meta) is dict:
            yield meta.get("HTTPStatusCode")
    yield peek(exception, "status")  # aiohttp
    # urllib.error.HTTPError; elsewhere "code" is something else: SystemExit.code is an exit code
    if any("HTTP" in name.rpartition(".")[2] for name in mro_names(type(exception))):
        yield peek(exception, "code")


def retry_after(exception: BaseException) -> float | None:
    """Return the seconds that a server asks to wait (Retry-After in seconds or as a date, RFC 9110
    section 10.2.3).
    """
    direct = peek(exception, "retry_after")
    if type(direct) in (int, float):
        return _bounded(float(direct))
    for source in (peek(exception, "response"), exception):
        headers = peek(source, "headers")
        if headers is None:
            continue
        millis = _number(_header(headers, "retry-after-ms"))
        if millis is not None:
            return _bounded(millis / 1000)
        text = _header(headers, "Retry-After")
        if text is None:
            continue
        seconds = _number(text)
        if seconds is not None:
            return _bounded(seconds)
        # "Wed, 21 Oct 2026 07:28:00 GMT"
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            continue
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return _bounded((when - datetime.now(UTC)).total_seconds())
    return None


def _header(headers: Any, name: str) -> str | None:
    for spelling in (name, name.lower()):
        try:
            value = headers.get(spelling)
        except BaseException:
            return None
        if type(value) is str:
            return value[:100]
    return None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _bounded(seconds: float) -> float | None:
    if isnan(seconds):  # float("nan") parses
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def exit_reference(exception: BaseException) -> tuple[str, int] | None:
    """Return ``("exit", code)`` or ``("signal", number)`` of a failed subprocess."""
    code = peek(exception, "returncode")
    if type(code) is not int or code == 0:
        return None
    if code < 0:
        return "signal", -code
    # a shell reports a program that SIGKILL ended as 137
    if code > 128 and code - 128 in {number.value for number in signal.Signals}:
        return "signal", code - 128
    return "exit", code


def grpc_code(exception: BaseException) -> str | None:
    """Return the name of a gRPC status code."""
    packages = {name.partition(".")[0] for name in mro_names(type(exception))}
    if packages.isdisjoint(_GRPC_PACKAGES):
        return None
    code = peek(exception, "code")  # a method in grpc, an attribute in grpclib
    if callable(code):
        try:
            code = code()
        except BaseException:
            return None
    name = peek(code, "name")
    return name if type(name) is str else None
