"""How to reach an OPA server: address, TLS and credentials, for decisions and for
opa-python-client.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from agenttool_otel.errors import ConfigurationError, PolicyUnavailable
from agenttool_otel.policy.http import Endpoint
from agenttool_otel.values.forks import new_lock


class TokenSource:
    """A bearer token, fixed or in a file that may be rotated."""

    def __init__(self, token: str | None, path: str | Path | None) -> None:
        if token is not None and path is not None:
            raise ConfigurationError("give a token or a token file, not both")
        self._token = None if token is None else self._checked(token)
        self._path = None if path is None else Path(path)
        self._stamp: tuple[int, int, int] | None = None
        self._lock = new_lock()

    @staticmethod
    def _checked(token: str) -> str:
        token = token.strip()
        if not token or not token.isascii() or any(ord(char) <= 32 for char in token):
            raise ConfigurationError(
                "the token for the policy server is empty or has characters no token has"
            )
        return token

    def get(self) -> str | None:
        """Return the token of now."""
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
    """Where an OPA is and how to prove who we are."""

    endpoint: Endpoint  # host, port and TLS settings
    prefix: str  # path before ``/v1``
    tokens: TokenSource  # source of the bearer token
    ca_file: str | None = None  # certificates to trust instead of the system's
    client_cert: str | None = None  # client certificate, PEM
    client_key: str | None = field(default=None, repr=False)  # its key, if not in the same file

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
        """Check the settings."""
        ca = None if ca_file is None else str(ca_file)
        certificate = None if client_cert is None else str(client_cert)
        key = None if client_key is None else str(client_key)
        tls: ssl.SSLContext | None = None
        if url.startswith("https://"):
            tls = _tls_context(ca, certificate, key)
        elif ca is not None or certificate is not None:
            raise ConfigurationError(
                "certificates are given for a policy server that is not reached over https"
            )
        endpoint, target = Endpoint.parse(url, tls=tls)
        if "?" in target:
            raise ConfigurationError("the URL of a policy server has no query")
        return cls(
            endpoint=endpoint,
            prefix=target.rstrip("/"),
            tokens=TokenSource(token, token_file),
            ca_file=ca,
            client_cert=certificate,
            client_key=key,
        )


def _tls_context(ca_file: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the TLS files for the policy server can't be used: {error}"
        ) from None
    return context


def open_client(address: OpaAddress, *, timeout: float = 5.0) -> Any:
    """Return an ``opa_client.OpaClient`` without its holes.

    On its own it would take a token from netrc and proxies from the environment, and follow
    redirects to other hosts.
    """
    try:
        from opa_client.opa import OpaClient
    except ImportError:
        raise ConfigurationError(
            "policies and data of an OPA server need the extra opa-server (pip install 'agenttool-otel[opa-server]')"
        ) from None
    endpoint = address.endpoint
    cert: Any = address.client_cert
    if cert is not None and address.client_key is not None:
        cert = (cert, address.client_key)
    client = OpaClient(
        host=endpoint.host,
        port=endpoint.port,
        ssl=endpoint.scheme == "https",
        cert=cert,
        token=address.tokens.get(),
        timeout=timeout,
    )
    session = client._session
    session.trust_env = False
    session.max_redirects = 3
    redirect_target = session.get_redirect_target

    def same_host(response: Any) -> str | None:
        # OPA itself redirects to the same path without its last slash
        location: str | None = redirect_target(response)
        if location is not None and not urljoin(response.url, location).startswith(f"{endpoint}/"):
            raise PolicyUnavailable("the policy server redirects to another host, which is refused")
        return location

    session.get_redirect_target = same_host
    if endpoint.scheme == "https":
        session.verify = address.ca_file or True
    if address.prefix:
        client.root_url = f"{endpoint}{address.prefix}/v1"
    return client
