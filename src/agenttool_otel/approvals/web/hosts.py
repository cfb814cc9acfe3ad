"""Which names a server on this machine answers to: what keeps a web site of the same browser out
(DNS rebinding).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

_OWN_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of ``Host`` with which a request on this machine asks for a port."""
    return frozenset(f"{name}:{port}" for name in _OWN_NAMES)


def asks_for(hosts: Sequence[str], own: frozenset[str]) -> bool:
    """Return whether a request's ``Host`` headers are one, and one of these."""
    return len(hosts) == 1 and hosts[0].strip().lower() in own


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's alone."""
    if host == "localhost":
        return True
    try:
        return plain_address(host).is_loopback
    except ValueError:
        return False


def plain_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; ``::ffff:127.0.0.1`` is ``127.0.0.1``, as a socket for both families
    states it.

    Args:
        text: the address.

    Raises:
        ValueError: it is none.
    """
    address = ipaddress.ip_address(text)
    # up to Python 3.12 ::ffff:127.0.0.1 is no loopback address
    return getattr(address, "ipv4_mapped", None) or address
