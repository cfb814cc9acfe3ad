"""Host names to addresses, within a deadline."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from typing import Final

from agenttool_otel.readers.types import ResolvedAddress, Resolver, Surroundings
from agenttool_otel.readers.urls.addresses import address_class, canonical_address
from agenttool_otel.readers.vocabulary import AddressClass
from agenttool_otel.values.forks import new_slots

_MAX_ADDRESSES: Final = 64
_MAX_LOOKUPS: Final = 16
_slots = new_slots(_MAX_LOOKUPS)


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the system's resolver, as a client would."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def resolved_addresses(
    host: str,
    port: int,
    env: Surroundings,
) -> list[ResolvedAddress]:
    """Return the addresses of a name; none when they can't be had before the deadline.

    ``getaddrinfo`` takes no timeout, so it runs in a thread of its own; one that hangs is left
    behind, and only so many may hang before further look-ups fail at once.
    """
    if not _slots.acquire(blocking=False):
        return []
    answer: list[Sequence[str]] = []
    done = threading.Event()
    resolver: Resolver = env.resolver or system_resolver

    def look_up() -> None:
        try:
            answer.append(resolver(host, port))
        except Exception:  # whatever a resolver raises: there is no answer
            answer.clear()
        finally:
            _slots.release()
            done.set()

    try:
        threading.Thread(target=look_up, name="agenttool-dns", daemon=True).start()
    except RuntimeError:  # no thread to be had
        _slots.release()
        return []
    if not done.wait(env.dns_timeout) or not answer:
        return []
    return [_described(text) for text in list(answer[0])[:_MAX_ADDRESSES]]


def _described(text: str) -> ResolvedAddress:
    if not isinstance(text, str):
        return {"address": "", "address_class": AddressClass.UNKNOWN.value}
    address = canonical_address(text)
    if address is None:
        return {"address": text[:64], "address_class": AddressClass.UNKNOWN.value}
    return {"address": str(address), "address_class": address_class(address).value}
