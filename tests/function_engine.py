"""A policy engine made of a function, for tests of what a policy may do beyond fixed answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput


class FunctionEngine:
    """Asks a function for the decision document; the function may do to its input what it wants."""

    name = "function"
    capabilities = EngineCapabilities()

    def __init__(self, decide: Callable[[Any], Any], revision: str = "test-1") -> None:
        self._decide = decide
        self.revision = revision

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        return EngineAnswer(self._decide(document), self.revision)

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        return self.evaluate(entry_point, document, timeout=timeout)

    def close(self) -> None:
        pass
