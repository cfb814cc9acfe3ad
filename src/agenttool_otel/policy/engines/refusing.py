"""The engine of a policy that could not be loaded: every question ends in a denial that states this."""

from __future__ import annotations

from typing import NoReturn

from agenttool_otel.errors import PolicyError, PolicyUnavailable
from agenttool_otel.names import EngineName
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput


class RefusingEngine:
    """Stands where a usable engine should be."""

    name = EngineName.NONE.value
    revision = ""
    capabilities = EngineCapabilities()

    def __init__(self, error: PolicyError) -> None:
        self.error = error

    def _refuse(self) -> NoReturn:
        raise PolicyUnavailable(f"no policy is loaded: {self.error}", cause=self.error.cause)

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Refuse."""
        self._refuse()

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Refuse; as ``evaluate``."""
        self._refuse()

    def close(self) -> None:
        """Nothing to close."""
