"""Sending a message to an address over HTTP, within a time, and nowhere else."""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from agenttool_otel.values.addresses import is_loopback


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> int:
    """Send one message, and return the status of the answer, whose body is not read: it may never end.

    No redirect is followed, and what goes to this machine goes through no proxy of ``http_proxy``.

    Args:
        url: ``http://`` or ``https://`` address.
        body: the message.
        headers: its headers.
        seconds: how long it may take, from the connection to the answer's last header.

    Raises:
        TimeoutError: it took longer.
        OSError: the address was not reached.
        HTTPException: what answers is no HTTP server.
        ValueError: the address is none that a request can have.
    """
    request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310
    deadline = _Deadline()
    handlers: list[urllib.request.BaseHandler] = [
        _NoRedirects(),
        _Http(deadline),
        _Https(deadline),
    ]
    if is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    late = TimeoutError(f"no answer within {seconds:g} s")
    with deadline.after(seconds):
        try:
            status = _status(opener, request, seconds)
        except (OSError, http.client.HTTPException):
            if deadline.is_over:
                raise late from None
            raise
    if deadline.is_over:  # a head that was cut off there reads as one that is complete
        raise late
    return status


def _status(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, seconds: float
) -> int:
    try:
        with opener.open(request, timeout=seconds) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


class _Deadline:
    """Ends a request's connections after a time, whatever its server does: a time-out of a socket is
    one of each read, and a server may send a byte at a time.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._connections: list[http.client.HTTPConnection] = []

    def after(self, seconds: float) -> _Timer:
        """Return a block at whose end the time does not count any more."""
        return _Timer(seconds, self._end)

    def watched(self, make: Callable[..., http.client.HTTPConnection]) -> Callable[..., Any]:
        """Return what makes connections that are ended."""

        def make_watched(*args: Any, **options: Any) -> http.client.HTTPConnection:
            connection = make(*args, **options)
            self._connections.append(connection)
            return connection

        return make_watched

    def _end(self) -> None:
        self.is_over = True
        for connection in self._connections:
            # None before it is connected: that has the time-out of the socket
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)


class _Timer:
    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self._timer = threading.Timer(seconds, end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A message goes where it was sent to, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Watched(urllib.request.AbstractHTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        return super().do_open(self._deadline.watched(http_class), req, **options)


class _Http(_Watched, urllib.request.HTTPHandler):
    """What opens ``http://``."""


class _Https(_Watched, urllib.request.HTTPSHandler):
    """What opens ``https://``."""
