"""Addresses of this machine."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's alone.

    Args:
        host: the address, or a name.
    """
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
