"""Which names a server on this machine answers to: what keeps a web site of the same browser out
(DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_OWN_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of ``Host`` with which a request on this machine asks for a port."""
    return frozenset(f"{name}:{port}" for name in _OWN_NAMES)


def asks_for(hosts: Sequence[str], own: frozenset[str]) -> bool:
    """Return whether a request's ``Host`` headers are one, and one of these."""
    return len(hosts) == 1 and hosts[0].strip().lower() in own
