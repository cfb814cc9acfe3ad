"""How to reach an OPA server: address, TLS, credentials. One place for the hot path and for the package's client."""

from __future__ import annotations

import os
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from agenttool_otel.errors import ConfigurationError, PolicyUnavailable
from agenttool_otel.policy.http import Endpoint

__all__ = ["OpaAddress", "TokenSource", "harden"]


class TokenSource:
    """A bearer token, fixed or in a file that may be rotated.

    Args:
        token: the token.
        path: a file that holds it; read again when it changes.
    """

    def __init__(self, token: str | None, path: str | Path | None) -> None:
        if token is not None and path is not None:
            raise ConfigurationError("give a token or a token file, not both")
        self._token = None if token is None else self._checked(token)
        self._path = None if path is None else Path(path)
        self._stamp: tuple[int, int, int] | None = None
        self._lock = threading.Lock()

    @staticmethod
    def _checked(token: str) -> str:
        token = token.strip()
        if not token or not token.isascii() or any(ord(char) <= 32 for char in token):
            raise ConfigurationError("the token for the policy server is empty or has characters no token has")
        return token

    def get(self) -> str | None:
        """Return the token of now.

        Raises:
            PolicyUnavailable: the file can't be read.
        """
        if self._path is None:
            return self._token
        try:
            status = os.stat(self._path)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                with self._lock:
                    self._token = self._checked(self._path.read_text("ascii"))
                    self._stamp = stamp
        except (OSError, UnicodeDecodeError, ConfigurationError):
            raise PolicyUnavailable("the token file for the policy server can't be used") from None
        return self._token


@dataclass(frozen=True, slots=True)
class OpaAddress:
    """Where an OPA is and how to prove who we are.

    Attributes:
        endpoint: host, port and TLS settings.
        prefix: path before ``/v1``.
        tokens: source of the bearer token.
        ca_file: certificates to trust instead of the system's.
        client_cert: client certificate, PEM.
        client_key: its key, if not in the same file.
    """

    endpoint: Endpoint
    prefix: str
    tokens: TokenSource
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = field(default=None, repr=False)

    @classmethod
    def make(
        cls,
        url: str,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca_file: str | Path | None = None,
        client_cert: str | Path | None = None,
        client_key: str | Path | None = None,
    ) -> OpaAddress:
        """Check the settings.

        Args:
            url: ``http(s)://host:port`` and a path, when OPA is not at the top.
            token: bearer token.
            token_file: file with the bearer token.
            ca_file: certificates to trust, PEM.
            client_cert: client certificate, PEM.
            client_key: key of the client certificate, PEM.

        Raises:
            ConfigurationError: a setting can't be used.
        """
        tls: ssl.SSLContext | None = None
        if url.startswith("https://"):
            try:
                tls = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
                if client_cert is not None:
                    tls.load_cert_chain(str(client_cert), None if client_key is None else str(client_key))
            except (OSError, ssl.SSLError) as error:
                raise ConfigurationError(f"the TLS files for the policy server can't be used: {error}") from None
        elif ca_file is not None or client_cert is not None:
            raise ConfigurationError("certificates are given for a policy server that is not reached over https")
        endpoint, target = Endpoint.parse(url, tls=tls)
        if "?" in target:
            raise ConfigurationError("the URL of a policy server has no query")
        return cls(
            endpoint,
            target.rstrip("/"),
            TokenSource(token, token_file),
            None if ca_file is None else str(ca_file),
            None if client_cert is None else str(client_cert),
            None if client_key is None else str(client_key),
        )

    def client_arguments(self, timeout: float) -> dict[str, Any]:
        """Return the arguments of opa-python-client's constructors.

        Args:
            timeout: seconds.
        """
        secure = self.endpoint.scheme == "https"
        cert: Any = self.client_cert
        if self.client_cert is not None and self.client_key is not None:
            cert = (self.client_cert, self.client_key)
        return {
            "host": self.endpoint.host,
            "port": self.endpoint.port,
            "ssl": secure,
            "cert": cert,
            "token": self.tokens.get(),
            "timeout": timeout,
        }


def harden(client: Any, address: OpaAddress) -> Any:
    """Close the holes of opa-python-client's synchronous client (notes/policy.md 3.1).

    A netrc entry would replace the token, proxies would be taken from the environment, redirects would be followed to
    other hosts, and a CA file can't be given.

    Args:
        client: an ``OpaClient``.
        address: where it connects to.
    """
    session = client._session
    session.trust_env = False
    session.max_redirects = 3
    follow = session.get_redirect_target

    def same_host(response: Any) -> str | None:
        # OPA itself redirects to the same path without its last slash
        location: str | None = follow(response)
        if location is not None and not urljoin(response.url, location).startswith(f"{address.endpoint}/"):
            raise PolicyUnavailable("the policy server redirects to another host, which is refused")
        return location

    session.get_redirect_target = same_host
    if address.endpoint.scheme == "https":
        session.verify = address.ca_file or True
    if address.prefix:
        client.root_url = f"{address.endpoint}{address.prefix}/v1"
    return client
