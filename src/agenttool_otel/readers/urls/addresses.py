"""Which kind of place an IP address is.

The standard library's ``is_private`` and ``is_global`` are not enough: they call NAT64 and 6to4
addresses that carry a private one global, and have no list of metadata services. Here every IPv4 address
that an IPv6 address carries is unwrapped and classed too, and IPv6 is public only inside the space
that is handed out for it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

from agenttool_otel.readers.vocabulary import AddressClass
from agenttool_otel.values.tables import load_table

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_ORDER: Final = (
    AddressClass.METADATA,
    AddressClass.UNSPECIFIED,
    AddressClass.LOOPBACK,
    AddressClass.LINK_LOCAL,
    AddressClass.PRIVATE,
    AddressClass.MULTICAST,
    AddressClass.RESERVED,
    AddressClass.UNKNOWN,
    AddressClass.NAME,
    AddressClass.PUBLIC,
)
"""From the most dangerous; also the order in which networks are tried."""

_RANK: Final = {kind: rank for rank, kind in enumerate(_ORDER)}

# Mapped (RFC 4291), translated (RFC 2765) and NAT64 (RFC 6052).
_TRANSPARENT: Final = tuple(
    map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
)
"""Prefixes whose addresses are nothing but the IPv4 address in their last 32 bits."""

_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")  # RFC 4291 2.5.5.1, deprecated
_NAT64_LOCAL: Final = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215
_ISATAP: Final = (0x00005EFE, 0x02005EFE)  # RFC 5214
_LOW_32: Final = 0xFFFF_FFFF


@cache
def hosts_data() -> dict[str, Any]:
    """Return ``data/hosts.json``."""
    data: dict[str, Any] = load_table(__package__, "data/hosts.json")
    return data


@cache
def _networks(version: int) -> tuple[tuple[AddressClass, _Network], ...]:
    data = hosts_data()["networks"]
    found: list[tuple[AddressClass, _Network]] = []
    for kind in _ORDER:
        for text in data.get(kind.value, ()):
            network = ipaddress.ip_network(text)
            if network.version == version:
                found.append((kind, network))
    return tuple(found)


@cache
def _handed_out() -> tuple[_Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in hosts_data()["networks"]["public_v6"])


def canonical_address(text: str) -> Address | None:
    """Return an address written in the standard way, with or without brackets and zone, or
    ``None``.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" not in bare and not bare[-1:].isdecimal():
        return None
    try:
        return ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def address_class(address: Address) -> AddressClass:
    """Return the class of an address; of an IPv6 address that carries IPv4 ones, the most dangerous
    of all.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return _own_class(address)
    if any(address in network for network in _TRANSPARENT):
        return _own_class(ipaddress.IPv4Address(int(address) & _LOW_32))
    carried = [_own_class(inner) for inner in _carried(address)]
    return worst_class([_own_class(address), *carried])


def worst_class(kinds: Iterable[AddressClass]) -> AddressClass:
    """Return the most dangerous of some classes; ``unknown`` when there are none."""
    return min(kinds, key=_RANK.__getitem__, default=AddressClass.UNKNOWN)


def _own_class(address: Address) -> AddressClass:
    for kind, network in _networks(address.version):
        if address in network:
            return kind
    if address.version == 6 and not any(address in network for network in _handed_out()):
        return AddressClass.RESERVED
    return AddressClass.PUBLIC


def _carried(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses inside a tunnel's address."""
    number = int(address)
    found: list[ipaddress.IPv4Address] = []
    if address in _COMPATIBLE and number > 0xFFFF:
        found.append(ipaddress.IPv4Address(number & _LOW_32))
    if address in _NAT64_LOCAL:
        found.append(ipaddress.IPv4Address(number & _LOW_32))
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.extend(address.teredo)
    if (number >> 32) & _LOW_32 in _ISATAP:
        found.append(ipaddress.IPv4Address(number & _LOW_32))
    return found
