"""Who answers, as a reverse proxy in front of the page states it: several people, one server.

A header is what any client can send. It is believed only of a request that comes from the proxy:
one with the proxy's secret, or from the proxy's address.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from starlette.requests import Request

from agenttool_otel.approvals.identity import has_unseen
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.addresses import plain_address

SECRET_HEADER: Final = "X-Agenttool-Proxy-Secret"  # noqa: S105 - is a name
"""The header in which the proxy sends its secret."""

MIN_SECRET_CHARS: Final = 20
"""The shortest secret that is taken."""

_MAX_NAME_CHARS: Final = 200
_HEADER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Person(NamedTuple):
    """Who answers."""

    name: str  # as it is recorded
    roles: tuple[str, ...]  # the roles of that person


@dataclass(frozen=True)
class ProxyIdentity:
    """How the proxy states who a request is from.

    Attributes:
        header: the header with the person's name, which the proxy sets and takes off what clients
          send.
        roles_header: the header with that person's roles, separated by commas; empty: everybody has
          the page's own roles.
        secret: what the proxy sends in ``X-Agenttool-Proxy-Secret``; empty: the address decides.
        address: the proxy's address; empty: the secret decides. With both, both have to fit.

    Raises:
        ConfigurationError: neither secret nor address is given, the secret is short, the address is
            none of a client or that of every program on this machine, or a header has no name.
    """

    header: str
    roles_header: str = ""
    secret: str = field(default="", repr=False)
    address: str = ""

    def __post_init__(self) -> None:
        for name in (self.header, self.roles_header or self.header):
            if not _HEADER_NAME.fullmatch(name):
                raise ConfigurationError("an identity header needs a name such as X-Forwarded-User")
        if not self.secret and not self.address:
            raise ConfigurationError(
                "an identity header needs the proxy's secret or address: every client can send a header"
            )
        if self.secret and len(self.secret) < MIN_SECRET_CHARS:
            raise ConfigurationError(
                f"the proxy's secret needs at least {MIN_SECRET_CHARS} characters"
            )
        if self.address:
            self._check_address()

    def _check_address(self) -> None:
        try:
            address = plain_address(self.address)
        except ValueError:
            raise ConfigurationError(f"{self.address[:60]} is no address of a proxy") from None
        # 0.0.0.0 is where a server listens, and no client's address
        if address.is_unspecified:
            raise ConfigurationError(f"{self.address[:60]} is no address of a proxy")
        if address.is_loopback and not self.secret:
            raise ConfigurationError(
                "a loopback address is that of every program on this machine: give the proxy a secret"
            )

    def person(self, request: Request, own_roles: tuple[str, ...]) -> Person | None:
        """Return who a request is from; ``None`` where the proxy did not state it in UTF-8.

        Args:
            request: the request.
            own_roles: the page's roles, which everybody has where no header states any.
        """
        try:
            return self._stated(request, own_roles) if self._is_from_proxy(request) else None
        except UnicodeDecodeError:
            # b"user:zo\xeb" is Latin-1: what it stands for would be a guess
            return None

    def _stated(self, request: Request, own_roles: tuple[str, ...]) -> Person | None:
        """Return who the proxy states.

        Raises:
            UnicodeDecodeError: a header is not UTF-8.
        """
        name = _only(request, self.header).strip()
        # a proxy that appends makes "user:eve, user:ada" of what the client sent
        if not name or "," in name or len(name) > _MAX_NAME_CHARS or has_unseen(name):
            return None
        if not self.roles_header:
            return Person(name, own_roles)
        stated = [role.strip() for role in _only(request, self.roles_header).split(",")]
        if any(has_unseen(role) for role in stated):
            return None
        return Person(name, tuple(role for role in stated if role))

    def _is_from_proxy(self, request: Request) -> bool:
        if self.address and not self._is_proxys(request):
            return False
        if not self.secret:
            return bool(self.address)
        given = _only(request, SECRET_HEADER)
        return hmac.compare_digest(_digest(given), _digest(self.secret))

    def _is_proxys(self, request: Request) -> bool:
        peer = "" if request.client is None else request.client.host
        try:
            return plain_address(peer) == plain_address(self.address)
        except ValueError:
            return False


def _only(request: Request, name: str) -> str:
    """Return a header's value; empty where it is missing or there are two of it.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    values = request.headers.getlist(name)
    # Starlette reads headers as Latin-1, where "user:zoë" is the other name "user:zoÃ«"
    return values[0].encode("latin-1").decode("utf-8") if len(values) == 1 else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
