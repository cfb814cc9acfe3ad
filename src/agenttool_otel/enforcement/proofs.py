"""Which profiles this host has proven, once a process."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agenttool_otel.enforcement import canaries
from agenttool_otel.enforcement.mechanism import Landlock, Mechanism
from agenttool_otel.enforcement.types import PROFILES, Proof
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import SandboxProfile
from agenttool_otel.values.forks import in_child, new_lock

MECHANISMS: Final[Mapping[str, Mechanism]] = MappingProxyType({SandboxProfile.READ: Landlock()})
"""What holds each profile."""

_proofs: dict[str, Proof] = {}
_lock: Final = new_lock()


def prove(mechanism: Mechanism, profile: str) -> Proof:
    """Try a mechanism on this host.

    Args:
        mechanism: what would hold the profile.
        profile: the profile's name.
    """
    reason = canaries.failure(mechanism, profile)
    return Proof(not reason, mechanism.name, reason)


def available() -> Mapping[str, Proof]:
    """Return what this host has proven, by profile; the canaries run when it is first asked.

    A forked child proves anew.
    """
    with _lock:
        if not _proofs:
            for profile in PROFILES:
                _proofs[profile] = prove(MECHANISMS[profile], profile)
        return dict(_proofs)


def require(profile: str) -> Mechanism:
    """Return what holds a profile.

    Raises:
        SandboxUnavailable: there is no such profile, or it is not proven here.
    """
    if profile not in MECHANISMS:
        raise SandboxUnavailable("there is no profile of that name", profile=profile)
    proof = available()[profile]
    if not proof.proven:
        raise SandboxUnavailable(proof.reason, profile=profile)
    return MECHANISMS[profile]


def _forget() -> None:
    _proofs.clear()


in_child(_forget)
