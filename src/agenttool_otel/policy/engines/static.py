"""An engine that answers with stated documents, without Rego: for tests and for the standard's
scenarios.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import Behavior, EntryPoint, FailClosedCause
from agenttool_otel.policy.rego.syntax import Path
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput


def decision(behavior: str | Behavior, **fields: Any) -> dict[str, Any]:
    """Make a decision document.

    Args:
        behavior: allow, ask, deny or passthrough.
        fields: further members of the document, for example ``obligations={"redact_result":
          ["*"]}``.
    """
    reason = {
        "type": "rule",
        "rule_ref": f"test.{behavior}",
        "message": f"the test answers {behavior}",
    }
    return {
        "behavior": str(behavior),
        "reason": reason,
        "rule_refs": [f"test.{behavior}"],
        **fields,
    }


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


class StaticEngine:
    """A policy engine that answers with stated documents.

    Args:
        answers: decision document for every call, or documents by tool name; a tool that is not
            named is undefined, and so denied.
        revision: revision that it reports.

    Attributes:
        documents: the inputs it was asked about, oldest first.
    """

    unread: ClassVar[frozenset[Path]] = frozenset({("execution",)})
    """Parts of the input that are not made for it; what proves them takes a while."""

    def __init__(self, answers: Mapping[str, Any] | str, *, revision: str = "test-1") -> None:
        self._answers: Mapping[str, Any] = (
            decision(answers) if isinstance(answers, str) else answers
        )
        self._revision = revision
        self.documents: list[PolicyInput] = []

    @property
    def fixed_texts(self) -> frozenset[str]:
        """The texts of the stated answers, which hold no argument of a call."""
        return frozenset(_texts(self._answers))

    @property
    def name(self) -> str:
        """``static``."""
        return "static"

    @property
    def revision(self) -> str:
        """The revision it was given."""
        return self._revision

    @property
    def capabilities(self) -> EngineCapabilities:
        """Nothing but answering, and never too late: a busy machine is no reason to deny."""
        return EngineCapabilities(counts_cpu_time=True)

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Answer.

        Args:
            entry_point: the rule that is asked for; only the decision is known.
            document: the input; kept in ``documents``.
            timeout: not used.

        Raises:
            PolicyEvaluationError: nothing is stated for this tool.
        """
        self.documents.append(document)
        answer = (
            self._answers
            if "behavior" in self._answers
            else self._answers.get(document["tool"]["name"])
        )
        if answer is None or entry_point != EntryPoint.DECISION:
            raise PolicyEvaluationError("undefined", cause=FailClosedCause.UNDEFINED)
        return EngineAnswer(answer, self._revision)

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Answer; as ``evaluate``."""
        return self.evaluate(entry_point, document, timeout=timeout)

    def close(self) -> None:
        """Nothing to close."""
