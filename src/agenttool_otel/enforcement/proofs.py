"""Which profiles of threads this host has proven, once a process.

Those on a layer are proven for each state directory, by ``rehearsal.proof``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agenttool_otel.enforcement import canaries
from agenttool_otel.enforcement.mechanism import Landlock, Mechanism
from agenttool_otel.enforcement.own import own_profiles, profile_named
from agenttool_otel.enforcement.types import PROFILES, Proof
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import SandboxProfile
from agenttool_otel.values.forks import in_child, new_lock

MECHANISMS: Final[Mapping[str, Mechanism]] = MappingProxyType({SandboxProfile.READ: Landlock()})
"""What holds each stock profile, and those that narrow it."""

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
        for profile in _of_threads():
            if profile not in _proofs:
                _proofs[profile] = prove(_mechanism(profile), profile)
        return dict(_proofs)


def _of_threads() -> list[str]:
    own = own_profiles().items()
    return [*PROFILES, *(name for name, each in own if each.base in MECHANISMS)]


def _mechanism(profile: str) -> Mechanism:
    known = profile_named(profile)
    if known is None or known.base not in MECHANISMS:
        raise SandboxUnavailable("there is no profile of that name for threads", profile=profile)
    return MECHANISMS[known.base]


def require(profile: str) -> Mechanism:
    """Return what holds a profile.

    Raises:
        SandboxUnavailable: there is no such profile, or it is not proven here.
    """
    mechanism = _mechanism(profile)
    proof = available()[profile]
    if not proof.proven:
        raise SandboxUnavailable(proof.reason, profile=profile)
    return mechanism


def _forget() -> None:
    _proofs.clear()


in_child(_forget)
