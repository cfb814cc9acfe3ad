"""What a host name is known to mean before any resolver is asked."""

from __future__ import annotations

import ipaddress
import re
import socket
from functools import cache, lru_cache
from typing import Final
from urllib.parse import unquote

from agenttool_otel.readers.urls.addresses import address_class, hosts_data, worst_class
from agenttool_otel.readers.vocabulary import AddressClass

_QUAD: Final = re.compile(
    r"(?<![0-9a-z])(\d{1,3})([.-])(\d{1,3})\2(\d{1,3})\2(\d{1,3})(?![0-9a-z])"
)
_HEX: Final = re.compile(r"(?<![0-9a-z])(?:0x)?([0-9a-f]{8})(?![0-9a-z])")


@cache
def _suffixes(key: str) -> frozenset[str]:
    return frozenset(hosts_data()[key])


@cache
def _own_name() -> str:
    return socket.gethostname().lower()


@cache
def _pattern(key: str) -> re.Pattern[str]:
    return re.compile("|".join(hosts_data()[key]))


@lru_cache(maxsize=64)
def _tails(host: str) -> frozenset[str]:
    labels = host.split(".")
    return frozenset(".".join(labels[index:]) for index in range(len(labels)))


def _under(host: str, key: str) -> bool:
    return not _suffixes(key).isdisjoint(_tails(host))


def is_relay(host: str, path: str) -> bool:
    """Return whether a public address leads on to another, or keeps what it is asked: a
    shortener, a tunnel, a collector of requests.
    """
    plain = re.sub("/+", "/", unquote(path).lower())
    if _pattern("relay_paths").match(host + plain) is not None:
        return True
    if host.partition(".")[0] in _suffixes("guides"):
        return False  # its documentation
    return _under(host, "relays")


@lru_cache(maxsize=1024)
def name_class(host: str) -> AddressClass:
    """Return what a host name means by itself: ``name`` where only a resolver can tell.

    A name of one label, or one below ``.local``, ``.internal`` and the like, is answered by a
    private name service and counts as ``private``. A name that spells an address that is not public
    (``10.0.0.1.nip.io``, ``ip-10-0-0-1.example.com``) counts as that address.
    """
    if host in _suffixes("loopback_names") or _under(host, "loopback_suffixes"):
        return AddressClass.LOOPBACK
    if host == _own_name():
        return AddressClass.LOOPBACK
    if host in _suffixes("metadata_names") or _under(host, "metadata_suffixes"):
        return AddressClass.METADATA
    if "." not in host or _under(host, "private_suffixes"):
        return AddressClass.PRIVATE
    if _pattern("private_names").fullmatch(host):
        return AddressClass.PRIVATE
    rebinding = _under(host, "rebinding")
    service = rebinding or _under(host, "address_in_name")
    spelled = worst_class(_spelled(host, service))
    if spelled not in (AddressClass.PUBLIC, AddressClass.UNKNOWN):
        return spelled
    # A name that changes its address between two look-ups, or spells it in a way that is not known
    # here (base 36 at xip.io), is as good as private.
    if rebinding or (service and spelled is AddressClass.UNKNOWN):
        return AddressClass.PRIVATE
    return AddressClass.NAME


def _spelled(host: str, service: bool) -> list[AddressClass]:
    """Return the classes of the addresses that a name spells."""
    found: list[AddressClass] = []
    for match in _QUAD.finditer(host):
        numbers = match.group(1, 3, 4, 5)
        if all(map(_is_octet, numbers)):
            found.append(address_class(ipaddress.IPv4Address(".".join(numbers))))
    if not service:
        return found
    for match in _HEX.finditer(host):
        found.append(address_class(ipaddress.IPv4Address(int(match[1], 16))))
    for label in host.split("."):
        for piece in (label, label.partition("-")[2]):
            if "-" not in piece:
                continue
            try:  # fe80--1.sslip.io
                address = ipaddress.IPv6Address(piece.replace("-", ":"))
            except ValueError:
                continue
            found.append(address_class(address))
    return found


def _is_octet(number: str) -> bool:
    return int(number) <= 255 and str(int(number)) == number
