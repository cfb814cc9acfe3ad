"""Connecting to the address that was checked, and checking every redirect.

A name that resolved to a public address at the check can resolve to a private one a moment later (DNS rebinding). With
``resolve_dns`` the addresses are in the fact; a fetch tool then has three ways to use nothing else:

- ``connect_pinned`` makes the connection itself and hands back the socket;
- ``pinned_addresses`` gives the addresses to a client that can be told where to connect (a transport or resolver of
  httpx, aiohttp or urllib3), with the host name still used for TLS and the ``Host`` header;
- ``verify_pinned`` checks the peer of a connection that a client has made, before a request is sent on it.

Clients must not follow redirects by themselves: each ``Location`` goes through ``redirect_fact`` and the policy first.
Proxies resolve names on their own; behind one, none of this holds.
"""

from __future__ import annotations

import socket

from agenttool_otel.errors import AgentToolError
from agenttool_otel.facts.types import FactEnvironment, UrlFact
from agenttool_otel.facts.urls.addresses import address_class, canonical_address
from agenttool_otel.facts.urls.fact import url_fact
from agenttool_otel.facts.urls.readings import joined
from agenttool_otel.names import AddressClass


class AddressChanged(AgentToolError, PermissionError):
    """A connection leads to an address that the check did not see, or the check saw none that may be used."""


def pinned_addresses(fact: UrlFact, *, classes: frozenset[str] = frozenset({AddressClass.PUBLIC.value})) -> list[str]:
    """Return the addresses that a client may connect to."""
    if not fact["valid"] or not fact["certain"] or not fact["resolved"]:
        raise AddressChanged("the check established no address")
    if any(entry["address_class"] not in classes for entry in fact["resolved"]):
        raise AddressChanged("an address of this host may not be connected to")
    return [entry["address"] for entry in fact["resolved"]]


def verify_pinned(
    fact: UrlFact, peer: str, *, classes: frozenset[str] = frozenset({AddressClass.PUBLIC.value})
) -> None:
    """Check the peer of a connection against the fact."""
    address = canonical_address(peer)
    if address is None or address_class(address).value not in classes:
        raise AddressChanged("the peer's address may not be connected to")
    mapped = getattr(address, "ipv4_mapped", None)
    spellings = {str(address), str(mapped)} if mapped is not None else {str(address)}
    if spellings.isdisjoint(pinned_addresses(fact, classes=classes)):
        raise AddressChanged("the connection leads to an address that was not checked")


def connect_pinned(
    fact: UrlFact, *, timeout: float, classes: frozenset[str] = frozenset({AddressClass.PUBLIC.value})
) -> socket.socket:
    """Return a TCP connection to the first of the checked addresses that answers."""
    failure: OSError | None = None
    for address in pinned_addresses(fact, classes=classes):
        try:
            return socket.create_connection((address, fact["port"] or 0), timeout=timeout)
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


def redirect_fact(
    base: str, location: str, *, argument: str, env: FactEnvironment, inferred: bool = False
) -> tuple[str, UrlFact]:
    """Return the URL that a redirect leads to, and its fact; decide on the fact before following."""
    # A reference that can't be joined is described as it stands, and so is no usable URL. Control characters and
    # blanks are judged before joining, which would remove them.
    as_given = url_fact(location, argument=argument, env=FactEnvironment(), inferred=inferred)
    target = joined(base, location) if isinstance(location, str) else None
    if target is None or as_given["rejected"] in ("control", "space", "surrogate", "too_long", "empty", "not_text"):
        return "", {**as_given, "valid": False, "certain": False, "rejected": as_given["rejected"] or "malformed"}
    fact = url_fact(target, argument=argument, env=env, inferred=inferred)
    if as_given["disagreement"] or "\\" in location:
        fact["disagreement"] = True
        fact["certain"] = False
    return target, fact
