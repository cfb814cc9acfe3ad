"""Renews the leases of claims while their runs last, so that another machine does not take a long
run for a lost one.

One daemon thread for each approvals service, and only while it holds a claim. A thread does not
survive a fork, and the parent's claims are not the child's to renew: the child begins without any.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

from agenttool_otel.approvals.store.owner import HELD
from agenttool_otel.approvals.types import Claim
from agenttool_otel.errors import ApprovalConflict, ApprovalError
from agenttool_otel.values.forks import in_child, new_condition

if TYPE_CHECKING:  # SQLAlchemy is imported when a store is opened
    from agenttool_otel.approvals.store.store import ApprovalStore

_logger = logging.getLogger("agenttool_otel.approvals")
_KEEPERS: weakref.WeakSet[LeaseKeeper] = weakref.WeakSet()
_RENEWALS_PER_LEASE: Final = 3  # two of them may fail before it ends
_MIN_PAUSE_SECONDS: Final = 0.02


class LeaseKeeper:
    """Renews the claims that are added until they end."""

    def __init__(self) -> None:
        self._begin()
        _KEEPERS.add(self)

    def _begin(self) -> None:
        self._changed = new_condition()
        self._claims: dict[str, tuple[ApprovalStore, Claim]] = {}
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether there is a thread that renews."""
        return self._thread is not None

    def hold(self, store: ApprovalStore, claim: Claim) -> None:
        """Renew a claim from now on; one in memory has no lease that another machine could see."""
        if not store.lasting:
            return
        with self._changed:
            self._claims[claim.claim_id] = (store, claim)
            if self._thread is None:
                every = max(_MIN_PAUSE_SECONDS, store.lease.total_seconds() / _RENEWALS_PER_LEASE)
                self._thread = threading.Thread(
                    target=self._renew, args=(every,), name="agenttool-leases", daemon=True
                )
                try:
                    self._thread.start()
                except RuntimeError:
                    # no more threads, or the interpreter ends: the lease lasts as long as it does
                    self._thread = None

    def drop(self, claim: Claim) -> None:
        """Renew a claim no longer."""
        with self._changed:
            if self._claims.pop(claim.claim_id, None) is not None:
                self._changed.notify_all()

    def _renew(self, every: float) -> None:
        due = time.monotonic() + every
        while (held := self._wait_for(due)) is not None:
            for store, claim in held:
                self._extend(store, claim)
            due = time.monotonic() + every

    def _wait_for(self, due: float) -> list[tuple[ApprovalStore, Claim]] | None:
        """Wait until the claims are due, and return them; ``None`` once there is none.

        Args:
            due: a time of the monotonic clock, in seconds.
        """
        with self._changed:
            while True:
                # a claim that was given back, or that waits with a custom tool's call, is held by no
                # process
                for claim_id in self._claims.keys() - HELD:
                    del self._claims[claim_id]
                if not self._claims:
                    self._thread = None
                    return None
                left = due - time.monotonic()
                if left <= 0:
                    return list(self._claims.values())
                self._changed.wait(left)

    def _extend(self, store: ApprovalStore, claim: Claim) -> None:
        try:
            store.extend(claim)
        except ApprovalConflict:
            self.drop(claim)
        except ApprovalError as error:
            _logger.warning(
                "the lease of a running call could not be renewed: %s", type(error).__name__
            )


def _in_child() -> None:
    for keeper in list(_KEEPERS):
        keeper._begin()


in_child(_in_child)
