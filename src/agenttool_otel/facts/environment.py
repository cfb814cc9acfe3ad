"""What facts are established against: the places, hosts and switches of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from agenttool_otel.facts.provenance import ProvenanceLedger

__all__ = ["FactEnvironment", "Resolver"]

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host name; the second argument is the port. It raises OSError when there are none."""


@dataclass(frozen=True, slots=True)
class FactEnvironment:
    """The surroundings that a fact depends on; the same for all arguments of a call.

    Attributes:
        roots: absolute directories that file tools should stay in; none means that no path is inside.
        cwd: absolute directory that relative paths start from; the process's own when ``None``.
        home: absolute directory that ``~`` stands for; the process's own when ``None``.
        protected: pairs of an absolute path (file or directory) and its class, for example the approval store's file
            and ``approval``. Whatever lies below a directory, or is the same file by device and inode, has the class.
        allowed_hosts: host names that the operator allows, lower case. A leading dot means every subdomain. Names that
            imitate one of them are reported as lookalikes.
        resolve_dns: whether host names are resolved, so that their addresses are facts too. This leaves the process.
        touch_file_system: whether paths may be looked up. When not, no path fact is certain.
        ledger: the session's provenance ledger.
        resolver: replaces the system's resolver.
        dns_timeout: seconds that one look-up may take; a slower one counts as failed.
    """

    roots: tuple[str, ...] = ()
    cwd: str | None = None
    home: str | None = None
    protected: tuple[tuple[str, str], ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    resolve_dns: bool = False
    touch_file_system: bool = True
    ledger: ProvenanceLedger | None = None
    resolver: Resolver | None = None
    dns_timeout: float = 2.0
