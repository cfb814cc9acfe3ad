"""The approvals page's server: a socket on loopback, served by uvicorn until it is closed."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from agenttool_otel.approvals.console import local_identity
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ConfigurationError

try:
    import uvicorn

    from agenttool_otel.approvals.web.app import ApprovalsPage
    from agenttool_otel.approvals.web.connections import server_config
    from agenttool_otel.approvals.web.proxied import Person
    from agenttool_otel.approvals.web.proxied import ProxyIdentity as ProxyIdentity
    from agenttool_otel.values.addresses import is_loopback
except ModuleNotFoundError as error:
    raise ConfigurationError(
        f"the approvals page needs the package {error.name}: pip install 'agenttool-otel[web]'"
    ) from error


class ApprovalsServer:
    """Serves the approvals page for everybody who has the token, or whom a proxy states.

    Args:
        store: whose requests are shown.
        host: the address to listen on.
        port: the port; 0: any free one.
        answered_by: who answers; the login name where empty.
        roles: the roles of everybody who answers.
        token: what signs in, at least 20 characters; a random one where not given.
        public_url: the https address of the proxy in front.
        interval: seconds between two looks for changes.
        on_rejected: called with the id of each request that is rejected; its errors are logged.
        proxy: how the proxy states who answers; the token signs nobody in then.

    Raises:
        ConfigurationError: an address beyond this machine without a proxy, or a short token.
        OSError: the address can't be used.
    """

    def __init__(
        self,
        store: ApprovalStore,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        answered_by: str = "",
        roles: tuple[str, ...] = (),
        token: str | None = None,
        public_url: str | None = None,
        interval: float = 1.0,
        on_rejected: Callable[[str], None] | None = None,
        proxy: ProxyIdentity | None = None,
    ) -> None:
        if public_url is not None and not (
            public_url.startswith("https://") and urlsplit(public_url).hostname
        ):
            raise ConfigurationError("the page's public address must start with https://")
        if public_url is None and not is_loopback(host):
            raise ConfigurationError(
                "the page is for this machine only; elsewhere it needs a TLS proxy and public_url"
            )
        if token is not None and len(token) < 20:
            raise ConfigurationError("the page's token needs at least 20 characters")
        self.token = token or secrets.token_urlsafe(32)
        self.answered_by = answered_by or local_identity()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = (public_url or f"http://{shown}:{self.port}").rstrip("/")
        self.page = ApprovalsPage(
            store,
            token=self.token,
            url=self.url,
            port=self.port,
            person=Person(self.answered_by, tuple(roles)),
            proxy=proxy,
            interval=interval,
            on_rejected=on_rejected,
        )
        self._uvicorn = uvicorn.Server(server_config(self.page.application()))
        self._thread: threading.Thread | None = None

    @property
    def sign_in_url(self) -> str:
        """The address with the token behind ``#``, where no server, log or Referer sees it."""
        return f"{self.url}/login#token={quote(self.token)}"

    def serve_forever(self) -> None:
        """Serve until ``close``, or until an interrupt, which is raised when the socket is
        closed.
        """
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self.page.closing = True

    def start(self) -> ApprovalsServer:
        """Serve in a background thread."""
        self._thread = threading.Thread(
            target=self.serve_forever, name="agenttool-approvals-page", daemon=True
        )
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and close the socket."""
        self.page.closing = True
        self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._socket.close()

    def __enter__(self) -> ApprovalsServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
