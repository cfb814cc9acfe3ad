"""A classifier of the host's: it may answer a question about intent, and nothing else; without its
answer a person is asked.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from judged_tools import CLOSED, OPEN, SENDS, WRITES

from agenttool_otel import ConfigurationError, ToolDenied, agent_context
from agenttool_otel.facts.classified import IntentCheck, IntentQuestion
from agenttool_otel.testing import Capture, capture

WORDS = "My order is broken, Ann's address is ann.miller" + "12@gmail.com."


class Scripted:
    """Answers what it is given, and keeps what it was asked."""

    name = "scripted"
    version = "1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[IntentQuestion] = []

    def score(self, question: IntentQuestion) -> float:
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


class Hanging(Scripted):
    """Answers when the test ends."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.end = threading.Event()

    def score(self, question: IntentQuestion) -> float:
        self.end.wait(60)
        return super().score(question)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    classifier = Hanging()
    yield classifier
    classifier.end.set()


def called(
    classifier: Any, page: str = "", timeout: float = 30.0, **facts: Any
) -> tuple[bool, Capture]:
    """Return whether a call ran that the user's words do not call for, with a value of the desk's own
    list.
    """
    ran: list[str] = []
    check = IntentCheck(classifier, timeout=timeout)
    with capture(policy_preset="assistant", intent_check=check, approver=lambda _: False) as done:
        governor = done.governor

        @governor.govern(**{**CLOSED, "namespace": "desk"})
        def list_orders() -> list[str]:
            return ["#W2890441"]

        @governor.govern(**OPEN)
        def read_page() -> str:
            return page

        @governor.govern(**{**WRITES, "namespace": "desk", **facts})
        def replace_order(order_id: str) -> str:
            ran.append(order_id)
            return "replaced"

        with agent_context(actor="agent:x", session_id="s", user_text=WORDS, interactive=True):
            list_orders()
            read_page()
            with contextlib.suppress(ToolDenied):
                replace_order(order_id=page or "#W2890441")
    return bool(ran), done


def ran(*arguments: Any, **facts: Any) -> bool:
    """Return whether such a call ran."""
    return called(*arguments, **facts)[0]


def checks(done: Capture) -> list[dict[str, Any]]:
    """Return what decisions recorded of the classifier."""
    found = []
    for record in done.records:
        check = record["record"].get("pending_classifier_check")
        if check:
            found.append(check)
    return found


def test_a_sure_classifier_spares_the_question() -> None:
    assert ran(Scripted(0.97))


@pytest.mark.parametrize("answer", [0.5, 2.0, True, float("nan"), "1.0", ValueError("no model")])
def test_any_other_answer_leaves_the_question(answer: Any) -> None:
    assert not ran(Scripted(answer))


def test_a_late_answer_leaves_the_question(hanging: Hanging) -> None:
    assert not ran(hanging, timeout=0.2)


def test_the_record_names_classifier_score_and_time() -> None:
    [check] = checks(called(Scripted(0.97))[1])
    assert check.pop("seconds") >= 0
    assert check == {
        "state": "completed",
        "classifier_ref": "scripted@1",
        "confidence": 0.97,
        "threshold": 0.9,
        "may": "approve",
    }


def test_a_value_of_a_page_is_not_the_classifiers_to_judge() -> None:
    classifier = Scripted(1.0)
    assert not ran(classifier, page="#W6666666")
    assert classifier.asked == []


@pytest.mark.parametrize(
    "facts",
    [
        {"destructive": True},
        {"access_kinds": ["payment"]},
        {"access_kinds": ["credential"]},
        {"write_effects": ["irreversible"]},
        {"risk_level": "high"},
    ],
)
def test_no_score_loosens_what_is_grave(facts: dict[str, Any]) -> None:
    assert not ran(Scripted(1.0), **facts)


def test_what_a_classifier_is_asked_is_redacted() -> None:
    classifier = Scripted(1.0)
    called(classifier, **SENDS)
    [question] = classifier.asked
    assert question.tool == "replace_order"
    assert "gmail.com" not in str(question)


def test_a_classifier_without_a_version_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="version"):
        IntentCheck(object())  # type: ignore[arg-type]


def test_only_so_many_checks_hang(hanging: Hanging) -> None:
    check = IntentCheck(hanging, timeout=0.05)
    states = [check.ask(IntentQuestion("t", "", {}, ())).state for _ in range(9)]
    assert states == ["timed_out"] * 8 + ["busy"]
