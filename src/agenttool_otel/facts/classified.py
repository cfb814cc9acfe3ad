"""A classifier of the host's as a fact: do the user's words want this call?

It is asked where the user's words do not call for a call by the table of ``facts/intent``, and before
a person is. What it answers is a fact of the policy's next decision, which decides what the fact is
worth; an answer that is late, missing or no number leaves the question. No model is shipped.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import ClassifierState
from agenttool_otel.values.forks import new_slots

_MAX_RUNNING: Final = 8
"""Checks that may run at once, those included whose time is over: one that hangs takes its place."""


@dataclass(frozen=True, slots=True)
class IntentQuestion:
    """What a classifier is asked about, without secrets and personal data.

    Attributes:
        tool: the tool's name.
        description: what the tool does, as it declares.
        arguments: the call's arguments, redacted as for telemetry.
        user_words: what the user wrote in the context, redacted in the same way, the latest last.
    """

    tool: str
    description: str
    arguments: Mapping[str, Any]
    user_words: tuple[str, ...]


@runtime_checkable
class IntentClassifier(Protocol):
    """Answers whether a user's words want a call."""

    @property
    def name(self) -> str:
        """Its name, for the record of the decision."""

    @property
    def version(self) -> str:
        """Its version, for the record of the decision."""

    def score(self, question: IntentQuestion) -> float:
        """Return how sure it is that the user wants this, from 0 to 1; called in a thread of its own."""


class Classified(NamedTuple):
    """What one check came to."""

    ref: str  # the classifier, as name@version
    state: ClassifierState  # how the check ended
    score: float | None  # its answer; None without one
    threshold: float  # from which score on the fact is true
    seconds: float  # how long it took

    @property
    def wanted(self) -> bool:
        """Whether the classifier is sure enough that the user wants the call."""
        return self.score is not None and self.score >= self.threshold

    @property
    def record(self) -> dict[str, Any]:
        """The check as the record of the decision has it (``pending_classifier_check``)."""
        return {
            "state": self.state.value,
            "classifier_ref": self.ref,
            "confidence": self.score,
            "threshold": self.threshold,
            "seconds": round(self.seconds, 6),
            "may": "approve",
        }


class IntentCheck:
    """Asks a classifier within a time.

    Args:
        classifier: what answers.
        threshold: from which score on the user's words count as wanting the call, above 0 and at
          most 1.
        timeout: seconds that an answer may take; without one by then, a person is asked.

    Raises:
        ConfigurationError: ``classifier`` is none, or a number is out of its range.
    """

    def __init__(
        self, classifier: IntentClassifier, *, threshold: float = 0.9, timeout: float = 1.0
    ) -> None:
        if not isinstance(classifier, IntentClassifier):
            raise ConfigurationError("a classifier has a name, a version and a method score")
        if not 0 < threshold <= 1:
            raise ConfigurationError("a classifier's threshold lies above 0 and is at most 1")
        if not 0 < timeout <= 60:
            raise ConfigurationError(
                "a classifier's timeout lies above 0 and is at most 60 seconds"
            )
        self._classifier = classifier
        self._threshold = threshold
        self._timeout = timeout
        self._room = new_slots(_MAX_RUNNING)
        self._ref = f"{classifier.name}@{classifier.version}"

    def ask(self, question: IntentQuestion) -> Classified:
        """Ask, and wait no longer than the timeout; never raises.

        Args:
            question: what it is asked about.
        """
        started = time.perf_counter()
        if not self._room.acquire(blocking=False):
            return self._ended(ClassifierState.BUSY, None, started)
        answers: list[Any] = []
        thread = threading.Thread(
            target=self._answer, args=(question, answers), name="agenttool-classifier", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no further thread can be started
            self._room.release()
            return self._ended(ClassifierState.FAILED, None, started)
        thread.join(self._timeout)
        if not answers:
            late = thread.is_alive()
            state = ClassifierState.TIMED_OUT if late else ClassifierState.FAILED
            return self._ended(state, None, started)
        score = _score_of(answers[0])
        state = ClassifierState.FAILED if score is None else ClassifierState.COMPLETED
        return self._ended(state, score, started)

    def _answer(self, question: IntentQuestion, answers: list[Any]) -> None:
        try:
            answers.append(self._classifier.score(question))
        except BaseException:  # noqa: S110 - its own; without an answer a person is asked
            pass
        finally:
            self._room.release()

    def _ended(self, state: ClassifierState, score: float | None, started: float) -> Classified:
        seconds = time.perf_counter() - started
        return Classified(self._ref, state, score, self._threshold, seconds)


def _score_of(answer: Any) -> float | None:
    """Return an answer that is a number from 0 to 1; ``True`` is none, nor is a NaN."""
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return None
    return float(answer) if math.isfinite(answer) and 0 <= answer <= 1 else None
