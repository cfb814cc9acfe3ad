"""What an engine says is believed only when it is exactly a decision document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_inputs import JSON

from agenttool_otel.errors import (
    PolicyError,
    PolicyEvaluationError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import Behavior, DecisionSource, FailClosedCause, ReasonType
from agenttool_otel.policy.normalise import (
    STRICTNESS,
    deny_for,
    no_decision,
    normalise,
    normalise_visible,
)
from agenttool_otel.policy.types import EngineAnswer, Verdict


def said(value: Any) -> Verdict:
    return normalise(EngineAnswer(value, "r1", "d1"), engine="test")


def test_a_full_decision_document_is_read_field_by_field() -> None:
    verdict = said(
        {
            "behavior": "ask",
            "reason": {"type": "rule", "rule_ref": "agenttool.rules.paths", "message": "outside"},
            "rule_refs": ["a", "b"],
            "updated_input": {"path": "x"},
            "suggested_updates": [{"allow": "x"}],
            "blocked_path": "/etc",
            "alternatives": [{"tool": "t", "arguments": {}, "reason": "r"}],
            "obligations": {
                "redact_input": ["/a/b~1c"],
                "redact_result": ["*"],
                "max_inline_chars": 10,
                "persistence": "ref_only",
            },
            "expires_at": "2030-01-01T00:00:00Z",
            "note": 1,
        }
    )
    assert verdict.behavior is Behavior.ASK
    assert verdict.reason_type is ReasonType.RULE
    assert (verdict.rule_ref, verdict.message, verdict.rule_refs) == (
        "agenttool.rules.paths",
        "outside",
        ("a", "b"),
    )
    assert verdict.updated_input == {"path": "x"}
    assert verdict.redact_input == ("/a/b~1c",)
    assert verdict.redact_result == ("*",)
    assert (verdict.max_inline_chars, verdict.persistence) == (10, "ref_only")
    assert verdict.extra == {"note": 1}
    assert (verdict.engine, verdict.revision, verdict.opa_decision_id) == ("test", "r1", "d1")
    assert verdict.fail_closed is None


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (None, FailClosedCause.UNDEFINED),
        ({}, FailClosedCause.MALFORMED),
        ({"behavior": None}, FailClosedCause.MALFORMED),
        ({"behavior": True}, FailClosedCause.MALFORMED),
        ({"behavior": ["allow"]}, FailClosedCause.MALFORMED),
        ({"behavior": "Allow"}, FailClosedCause.UNKNOWN_BEHAVIOR),
        ({"behavior": "allow "}, FailClosedCause.UNKNOWN_BEHAVIOR),
        ({"behavior": "permit"}, FailClosedCause.UNKNOWN_BEHAVIOR),
        ({"behavior": ""}, FailClosedCause.UNKNOWN_BEHAVIOR),
        (True, FailClosedCause.MALFORMED),
        ("allow", FailClosedCause.MALFORMED),
        (["allow"], FailClosedCause.MALFORMED),
        ({"behaviour": "allow"}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "reason": "because"}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "reason": {"type": "whim"}}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "rule_refs": "a"}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "rule_refs": [1]}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "updated_input": []}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "alternatives": ["x"]}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "obligations": []}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "obligations": {"redact": ["/a"]}}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "obligations": {"redact_input": ["a"]}}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "obligations": {"redact_input": ["*"]}}, FailClosedCause.MALFORMED),
        (
            {"behavior": "allow", "obligations": {"max_inline_chars": True}},
            FailClosedCause.MALFORMED,
        ),
        ({"behavior": "allow", "obligations": {"max_inline_chars": -1}}, FailClosedCause.MALFORMED),
        (
            {"behavior": "allow", "obligations": {"persistence": "somewhere"}},
            FailClosedCause.MALFORMED,
        ),
        ({"behavior": "allow", "expires_at": "soon"}, FailClosedCause.MALFORMED),
        ({"behavior": "allow", "expires_at": "2030-01-01T00:00:00"}, FailClosedCause.MALFORMED),
    ],
)
def test_anything_else_is_refused_with_its_cause(value: Any, cause: FailClosedCause) -> None:
    with pytest.raises(PolicyEvaluationError) as caught:
        said(value)
    assert caught.value.cause is cause


WELL_FORMED_KEYS = st.sampled_from(
    [
        "behavior",
        "reason",
        "rule_refs",
        "updated_input",
        "obligations",
        "expires_at",
        "alternatives",
        "x",
    ]
)
NEAR = st.dictionaries(
    WELL_FORMED_KEYS,
    JSON
    | st.sampled_from(
        [
            "allow",
            "Allow",
            "ALLOW",
            "allow\n",
            "deny",
            "ask",
            "passthrough",
            ["allow"],
            {"allow": 1},
        ]
    ),
    max_size=5,
)


@given(JSON | NEAR)
def test_no_json_value_but_a_wellformed_allow_becomes_an_allow(value: Any) -> None:
    try:
        verdict = said(value)
    except PolicyEvaluationError:
        return
    assert type(value) is dict
    assert type(value["behavior"]) is str
    assert value["behavior"] == str(verdict.behavior)
    assert value["behavior"] in {"allow", "ask", "deny", "passthrough"}


@pytest.mark.parametrize("value", [None, 1, "true", [], {}])
def test_visible_takes_booleans_only(value: Any) -> None:
    with pytest.raises(PolicyEvaluationError):
        normalise_visible(EngineAnswer(value, ""))
    assert normalise_visible(EngineAnswer(True, "")) is True
    assert normalise_visible(EngineAnswer(False, "")) is False


class TestFailure:
    """A failure becomes a deny that says which failure it was."""

    @pytest.mark.parametrize(
        ("error", "source", "cause"),
        [
            (PolicyTimeout("late"), DecisionSource.TIMEOUT, FailClosedCause.TIMEOUT),
            (PolicyUnavailable("down"), DecisionSource.ERROR, FailClosedCause.UNAVAILABLE),
            (
                PolicyError("x", cause=FailClosedCause.ENGINE_PANIC),
                DecisionSource.ERROR,
                FailClosedCause.ENGINE_PANIC,
            ),
            (ValueError("secret value"), DecisionSource.ERROR, FailClosedCause.INTERNAL),
        ],
    )
    def test_deny_for(
        self, error: Exception, source: DecisionSource, cause: FailClosedCause
    ) -> None:
        verdict = deny_for(error, engine="e", revision="r")
        assert verdict.behavior is Behavior.DENY
        assert verdict.reason_type is ReasonType.POLICY
        assert (verdict.source, verdict.fail_closed) == (source, cause)
        assert "secret" not in verdict.message


class TestCombination:
    """deny > ask > allow; passthrough is no opinion; nobody decides: deny."""

    def test_deny_is_stricter_than_ask_and_ask_than_allow(self) -> None:
        order = sorted(Behavior, key=STRICTNESS.__getitem__)
        assert order == [Behavior.PASSTHROUGH, Behavior.ALLOW, Behavior.ASK, Behavior.DENY]

    def test_nobody_decided_is_a_deny(self) -> None:
        verdict = no_decision()
        assert (verdict.behavior, verdict.source) == (Behavior.DENY, DecisionSource.DEFAULT)
        assert verdict.fail_closed is FailClosedCause.NO_DECISION


@pytest.mark.parametrize(
    "member",
    [
        "obligation",
        "Obligations",
        "redact_result",
        "redact-result",
        "redactions",
        "max_inline_char",
        "approver_role",
    ],
)
def test_a_member_that_looks_like_one_that_binds_is_malformed(member: str) -> None:
    with pytest.raises(PolicyEvaluationError, match="looks like one that binds"):
        normalise(EngineAnswer({"behavior": "allow", member: []}, "r"), engine="test")


def test_other_members_are_kept() -> None:
    document = {"behavior": "allow", "note": 1, "reason_code": "x", "ticket": None}
    assert normalise(EngineAnswer(document, "r"), engine="test").extra == {
        "note": 1,
        "reason_code": "x",
        "ticket": None,
    }
