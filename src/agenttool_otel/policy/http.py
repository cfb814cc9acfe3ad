"""One kept-alive HTTP/1.1 connection with one wall-clock deadline for each exchange.

``http.client`` reads with a timeout for each ``recv``, so a server that drips its answer byte by
byte holds a caller for as long as it likes. Here every wait, for connecting, sending, headers and
body, gets what is left until the deadline. Nothing comes from the environment: no proxy, no netrc,
no cookies; redirects are not followed. A circuit breaker reports at once that a server is down,
instead of waiting for it again.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from agenttool_otel.errors import (
    ConfigurationError,
    PolicyEvaluationError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import FailClosedCause
from agenttool_otel.values.forks import new_lock

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect to."""

    scheme: str  # http or https
    host: str  # name or address
    port: int  # port
    tls: ssl.SSLContext | None = None  # TLS settings for https

    @classmethod
    def parse(cls, url: str, *, tls: ssl.SSLContext | None = None) -> tuple[Endpoint, str]:
        """Split a URL."""
        try:
            parts = urlsplit(url)
            port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        except ValueError:
            raise ConfigurationError("not a usable URL of a policy server") from None
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise ConfigurationError(
                "the URL of a policy server starts with http:// or https:// and names a host"
            )
        if parts.username or parts.password:
            raise ConfigurationError(
                "credentials do not belong into the URL of a policy server; give a token"
            )
        if parts.scheme == "https" and tls is None:
            tls = ssl.create_default_context()
        target = parts.path or "/"
        if parts.query:
            target = f"{target}?{parts.query}"
        if any(ord(char) <= 32 or ord(char) >= 127 for char in target):
            raise ConfigurationError("the URL of a policy server has characters that need escaping")
        return cls(
            parts.scheme, parts.hostname, port, tls if parts.scheme == "https" else None
        ), target

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class HttpAnswer(NamedTuple):
    """An answer, read completely."""

    status: int  # status code
    headers: dict[str, str]  # header fields by lower-case name; of repeated ones the last
    body: bytes  # the body


class _DeadlineSocket:
    """What ``http.client`` needs of a socket, each wait cut to what is left until the deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.deadline = 0.0
        self._readers = 0
        self._closing = False

    def arm(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)

    def sendall(self, data: Any) -> None:
        self.arm()
        self.sock.sendall(data)

    def makefile(self, mode: str = "rb", *_: Any, **__: Any) -> io.BufferedReader:
        self._readers += 1
        return io.BufferedReader(_DeadlineReader(self), 16384)

    def close(self) -> None:
        # as with a real socket, what was made by makefile can still be read: http.client closes the
        # connection before the body is read when the server will close it
        self._closing = True
        if not self._readers:
            self.sock.close()

    def reader_closed(self) -> None:
        self._readers -= 1
        if self._closing and not self._readers:
            self.sock.close()


class _DeadlineReader(io.RawIOBase):
    def __init__(self, owner: _DeadlineSocket) -> None:
        self._owner = owner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._owner.arm()
        return self._owner.sock.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._owner.reader_closed()


class HttpConnection:
    """A connection that is opened when first needed and again after a failure. For one thread at a
    time.
    """

    def __init__(self, endpoint: Endpoint, *, limit: int) -> None:
        self.endpoint = endpoint
        self._limit = limit
        self._http = http.client.HTTPConnection(endpoint.host, endpoint.port)
        self._http.auto_open = 0
        self._sock: _DeadlineSocket | None = None

    @property
    def is_open(self) -> bool:
        """Whether a kept-alive connection would be used again."""
        return self._sock is not None

    def _open(self, deadline: float) -> _DeadlineSocket:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        raw = socket.create_connection((self.endpoint.host, self.endpoint.port), timeout=left)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.endpoint.tls is not None:
                raw.settimeout(max(0.001, deadline - time.monotonic()))
                raw = self.endpoint.tls.wrap_socket(raw, server_hostname=self.endpoint.host)
        except BaseException:
            raw.close()
            raise
        return _DeadlineSocket(raw)

    def request(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: dict[str, str],
        *,
        deadline: float,
    ) -> HttpAnswer:
        """Exchange one request and its whole answer."""
        done = False
        try:
            if (sock := self._sock) is None:
                sock = self._sock = self._open(deadline)
                self._http.sock = sock
            sock.deadline = deadline
            self._http.request(method, target, body, headers)
            response = self._http.getresponse()
            content = response.read(self._limit + 1)
            if len(content) > self._limit:
                raise PolicyEvaluationError(
                    f"the answer is larger than {self._limit} bytes",
                    cause=FailClosedCause.MALFORMED,
                )
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            done = not response.will_close and response.isclosed()
            fields = {name.lower(): value for name, value in response.headers.items()}
            return HttpAnswer(response.status, fields, content)
        except TimeoutError:
            raise PolicyTimeout("the policy server did not answer in time") from None
        except ssl.SSLCertVerificationError as error:
            raise PolicyUnavailable(
                f"the policy server's certificate is refused: {error.verify_message}"
            ) from None
        except http.client.IncompleteRead:
            raise PolicyUnavailable(
                "the policy server closed the connection within its answer"
            ) from None
        except http.client.RemoteDisconnected:
            raise PolicyUnavailable(
                "the policy server closed the connection without an answer"
            ) from None
        except http.client.HTTPException as error:
            raise PolicyEvaluationError(
                f"the policy server does not answer in HTTP ({type(error).__name__})",
                cause=FailClosedCause.MALFORMED,
            ) from None
        except OSError as error:
            raise PolicyUnavailable(
                f"no connection to the policy server: {error.strerror or error}"
            ) from None
        finally:
            if not done:
                self.close()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        sock, self._sock = self._sock, None
        self._http.close()
        if sock is not None:
            sock.sock.close()


class CircuitBreaker:
    """Opens after consecutive failures and lets one trial through when its time is over."""

    def __init__(
        self,
        *,
        threshold: int = 5,
        reset_after: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if threshold < 1 or reset_after <= 0:
            raise ValueError("a circuit breaker needs a threshold of at least 1 and a time above 0")
        self._threshold = threshold
        self._reset_after = reset_after
        self._clock = clock
        self._lock = new_lock()
        self._failures = 0
        self._retry_at: float | None = None

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half_open``."""
        with self._lock:
            if self._retry_at is None:
                return "closed"
            return "open" if self._clock() < self._retry_at else "half_open"

    def enter(self) -> None:
        """Ask for leave to call the server."""
        # an unlocked look first: closed is the common case, and a stale look only lets one more
        # call try
        if self._retry_at is None:
            return
        with self._lock:
            if self._retry_at is None:
                return
            now = self._clock()
            if now < self._retry_at:
                raise PolicyUnavailable(
                    "the policy server is known to be unreachable; not asked again yet",
                    cause=FailClosedCause.CIRCUIT_OPEN,
                )
            # this caller is the trial; everybody else waits for its outcome, or for its time to run
            # out
            self._retry_at = now + self._reset_after

    def succeeded(self) -> None:
        """Note that the server answered, whatever the answer is."""
        if self._failures or self._retry_at is not None:
            with self._lock:
                self._failures = 0
                self._retry_at = None

    def failed(self) -> None:
        """Note that the server could not be reached or did not answer in time."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._threshold:
                self._retry_at = self._clock() + self._reset_after
