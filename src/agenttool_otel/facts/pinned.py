"""Connecting to the address that was checked.

A name that resolved to a public address at the check can resolve to a private one a moment later
(DNS rebinding). With ``resolve_dns`` the addresses are in the fact, and ``connect_pinned`` connects
to nothing else. Proxies resolve names on their own; behind one, this does not hold. A client must
not follow redirects by itself.
"""

from __future__ import annotations

import socket

from agenttool_otel.errors import AgentToolError
from agenttool_otel.names import AddressClass
from agenttool_otel.readers.types import UrlFact


class AddressChanged(AgentToolError, PermissionError):
    """The check saw no address that may be connected to."""


def connect_pinned(
    fact: UrlFact,
    *,
    timeout: float,
    classes: frozenset[str] = frozenset({AddressClass.PUBLIC.value}),
) -> socket.socket:
    """Return a TCP connection to the first of the checked addresses that answers."""
    if not fact["valid"] or not fact["certain"] or not fact["resolved"]:
        raise AddressChanged("the check established no address")
    if any(entry["address_class"] not in classes for entry in fact["resolved"]):
        raise AddressChanged("an address of this host may not be connected to")
    failure: OSError | None = None
    for entry in fact["resolved"]:
        try:
            return socket.create_connection((entry["address"], fact["port"] or 0), timeout=timeout)
        except OSError as error:
            failure = error
    raise failure or OSError("no address")
