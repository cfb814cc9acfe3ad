"""Who decides about a call and who asks for it, as the pipeline sees them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Claim,
    ClaimBinding,
    Grant,
    GrantQuery,
)
from agenttool_otel.names import ResultStatus
from agenttool_otel.policy.types import PolicyInput, Verdict


class Decides(Protocol):
    """Makes decisions; never raises."""

    def decide(self, document: PolicyInput) -> Verdict:
        """Decide now."""

    async def adecide(self, document: PolicyInput) -> Verdict:
        """Decide without blocking the event loop."""

    def visible(self, document: PolicyInput) -> bool:
        """Return whether a tool may be shown."""

    def wants(self, path: tuple[str, ...], mode: str, kind: str) -> bool:
        """Return whether a decision may depend on a part of the input."""


class Asks(Protocol):
    """Brings a question to the people who may answer it."""

    def ask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """Store the request and ask; ``None`` leaves it pending."""

    async def aask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """The same without blocking the event loop."""

    def find_grant(self, wanted: GrantQuery) -> Grant | None:
        """Find a remembered approval; ``None`` also where that fails."""

    def use_grant(
        self, grant: Grant, wanted: GrantQuery, *, invocation_id: str, policy_revision: str
    ) -> bool:
        """Record that it is used; return whether it may be."""

    def claim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the one right to run an approved call."""

    async def aclaim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """The same without blocking the event loop; given back when that is canceled."""

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how the claimed run ended."""


class LayerPlace(NamedTuple):
    """Where the layers of rehearsed calls are, and how long."""

    directory: str  # the state directory; the user's own where empty
    keep_seconds: float  # how long a layer waits for an answer


class Services(Protocol):
    """Who decides and asks for a call; a Runtime is one."""

    @property
    def decider(self) -> Decides:
        """Makes decisions."""

    @property
    def approvals(self) -> Asks:
        """Asks."""

    @property
    def layers(self) -> LayerPlace:
        """Where the layers of rehearsed calls are."""
