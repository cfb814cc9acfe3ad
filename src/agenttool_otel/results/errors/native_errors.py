"""What a native exception says of itself: HTTP status, Retry-After, exit code, gRPC code; read by
duck typing.

Attributes of foreign exceptions may be properties that raise; every look at one is guarded.
"""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from agenttool_otel.values.inspection import mro_names

_LONGEST_WAIT: Final = 86_400.0


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
    response = peek(exception, "response")
    candidates = [
        peek(response, "status_code"),
        peek(response, "status"),
        peek(exception, "status_code"),
    ]
    if type(response) is dict:  # botocore
        meta = response.get("ResponseMetadata")
        candidates.append(meta.get("HTTPStatusCode") if type(meta) is dict else None)
    candidates.append(peek(exception, "status"))
    if any("HTTP" in name.rpartition(".")[2] for name in mro_names(type(exception))):
        candidates.append(peek(exception, "code"))  # urllib; elsewhere "code" means something else
    for candidate in candidates:
        if issubclass(type(candidate), int) and type(candidate) is not bool:
            status = int.__int__(candidate)  # a subclass may compare as it likes
            if 400 <= status <= 599:
                return status
    return None


def retry_after(exception: BaseException) -> float | None:
    """Return the seconds that a server asks to wait (Retry-After in seconds or as a date, RFC 9110
    section 10.2.3).
    """
    direct = peek(exception, "retry_after")
    if type(direct) in (int, float):
        return _bounded(float(direct))
    for source in (peek(exception, "response"), exception):
        if (headers := peek(source, "headers")) is None:
            continue
        if (millis := _number(_header(headers, "retry-after-ms"))) is not None:
            return _bounded(millis / 1000)
        if (text := _header(headers, "Retry-After")) is None:
            continue
        if (seconds := _number(text)) is not None:
            return _bounded(seconds)
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            continue
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
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
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _bounded(seconds: float) -> float | None:
    return None if seconds != seconds else min(max(seconds, 0.0), _LONGEST_WAIT)


def exit_reference(exception: BaseException) -> tuple[str, int] | None:
    """Return ``("exit", code)`` or ``("signal", number)`` of a failed subprocess."""
    code = peek(exception, "returncode")
    if type(code) is not int or code == 0:
        return None
    if code < 0:
        return "signal", -code
    if code > 128 and code - 128 in {s.value for s in signal.Signals}:
        return "signal", code - 128
    return "exit", code


def grpc_code(exception: BaseException) -> str | None:
    """Return the name of a gRPC status code."""
    if not any(
        name.partition(".")[0] in ("grpc", "grpclib") for name in mro_names(type(exception))
    ):
        return None
    code = peek(exception, "code")
    if callable(code):
        try:
            code = code()
        except BaseException:
            return None
    name = peek(code, "name")
    return name if type(name) is str else None
