"""Several people for one call: different people, each role by a person of its own, all of it in the
evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, a_request, bindings, no, yes
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agenttool_otel import (
    ApprovalAnswer,
    ApprovalRequired,
    ApprovalStore,
    Governor,
    agent_context,
)
from agenttool_otel.approvals.people import Agreement, different_people, still_needed
from agenttool_otel.cli.main import app
from agenttool_otel.errors import ApprovalConflict
from agenttool_otel.names import (
    ApprovalConflictReason,
    ApprovalLogKind,
    ApprovalStatus,
    ResultStatus,
)
from agenttool_otel.testing import FixedApprover

TWO: dict[str, Any] = {
    "agenttool": {"settings": {"approval": {"approvals_needed": {"high": 2, "medium": 2}}}}
}
BOTH: dict[str, Any] = {
    "agenttool": {"settings": {"approval": {"required_roles": {"high": ["finance", "legal"]}}}}
}


def two_people(store: ApprovalStore, **values: Any) -> str:
    return store.create(a_request(approvals_needed=2, **values), ARGS).request_id


# --- the store ------------------------------------------------------------------------------------


def test_the_call_waits_until_both_agreed(store: ApprovalStore) -> None:
    ref = two_people(store)
    first = store.answer(ref, yes(answered_by="user:ada"))
    assert (first.status, first.answered_by) == (ApprovalStatus.PENDING, None)
    assert store.stored_call(ref).answer is None
    assert store.answer(ref, yes(answered_by="user:bob")).status is ApprovalStatus.APPROVED
    answer = store.stored_call(ref).answer
    assert answer is not None
    assert [each.answered_by for each in (*answer.earlier, answer)] == ["user:ada", "user:bob"]


@pytest.mark.parametrize("again", ["user:ada", "User:Ada", "user:ada\u00a0", "user: ada"])
def test_one_person_can_not_agree_twice(store: ApprovalStore, again: str) -> None:
    ref = two_people(store)
    store.answer(ref, yes(answered_by="user:ada"))
    with pytest.raises(ApprovalConflict) as refused:
        store.answer(ref, yes(answered_by=again))
    assert refused.value.reason is ApprovalConflictReason.SAME_PERSON
    assert store.get(ref).status is ApprovalStatus.PENDING


def test_the_claim_needs_all_of_them(store: ApprovalStore) -> None:
    request = store.create(a_request(approvals_needed=2), ARGS)
    store.answer(request.request_id, yes())
    with pytest.raises(ApprovalConflict) as refused:
        store.claim(request.request_id, **bindings(request))
    assert refused.value.reason is ApprovalConflictReason.NOT_ANSWERED
    store.answer(request.request_id, yes(answered_by="user:bob"))
    assert store.claim(request.request_id, **bindings(request)).arguments == ARGS


def test_each_answer_is_in_the_evidence(store: ApprovalStore) -> None:
    ref = two_people(store)
    store.answer(ref, yes())
    store.answer(ref, yes(answered_by="user:bob"))
    entries = [
        (entry.data["by"], entry.data.get("still_needed"))
        for entry in store.log_entries()
        if entry.kind is ApprovalLogKind.ANSWERED
    ]
    assert entries == [("user:ada", 1), ("user:bob", None)]
    assert store.verify_chain().ok


def test_the_first_no_ends_it(store: ApprovalStore) -> None:
    ref = two_people(store)
    store.answer(ref, yes())
    assert store.answer(ref, no(answered_by="user:ada")).status is ApprovalStatus.REJECTED


def test_each_role_is_that_of_another_person(store: ApprovalStore) -> None:
    ref = store.create(
        a_request(approver_roles=[], required_roles=["finance", "legal"]), ARGS
    ).request_id
    waiting = store.answer(ref, yes(answered_by="user:all", roles=("finance", "legal")))
    assert waiting.still_needed.roles == ("finance", "legal")
    waiting = store.get(ref)
    with pytest.raises(ApprovalConflict) as refused:
        store.answer(ref, yes(answered_by="user:eve", roles=("intern",)))
    assert refused.value.reason is ApprovalConflictReason.ROLE
    done = store.answer(ref, yes(answered_by="user:fin", roles=("finance",)))
    assert done.status is ApprovalStatus.APPROVED


@pytest.mark.parametrize("change", [{"edited_input": {"path": "/b"}}, {"remember": 0}])
def test_one_of_several_can_not_change_what_is_agreed(
    store: ApprovalStore, change: dict[str, Any]
) -> None:
    suggestion = {"type": "grant", "scope": "session", "args": "exact", "expires_in": 60}
    ref = two_people(store, suggested_updates=[suggestion])
    with pytest.raises(ApprovalConflict) as refused:
        store.answer(ref, yes(**change))
    assert refused.value.reason is ApprovalConflictReason.INVALID_ANSWER


# --- who is still needed --------------------------------------------------------------------------

_PEOPLE = st.lists(
    st.builds(
        Agreement,
        st.sampled_from(["ann", "bob", "cyd", "dan"]),
        st.frozensets(st.sampled_from(["finance", "legal", "board"])),
    ),
    max_size=6,
)
_ROLES = st.lists(st.sampled_from(["finance", "legal", "board"]), max_size=3, unique=True)


def _enough(needed: int, roles: Sequence[str], people: Sequence[Agreement]) -> bool:
    """Try every way in which people can count as roles."""
    by_roles = any(
        all(role in person.roles for role, person in zip(roles, chosen, strict=True))
        for chosen in itertools.permutations(people, len(roles))
    )
    return by_roles and len(people) >= needed


@given(st.integers(1, 4), _ROLES, _PEOPLE)
def test_nobody_is_needed_exactly_where_all_agreed(
    needed: int, roles: list[str], given: list[Agreement]
) -> None:
    people = different_people(given)
    left = still_needed(needed, roles, given)
    assert (left.people == 0) == _enough(needed, roles, people)


@given(st.integers(1, 4), _ROLES, _PEOPLE)
def test_so_many_more_people_are_enough(
    needed: int, roles: list[str], given: list[Agreement]
) -> None:
    left = still_needed(needed, roles, given)
    for number in range(left.people):
        now = still_needed(needed, roles, given)
        assert now.people == left.people - number
        given = [*given, Agreement(f"more {number}", frozenset(now.roles[:1]))]
    assert still_needed(needed, roles, given).people == 0


@given(st.integers(1, 4), _ROLES, _PEOPLE)
def test_a_person_who_agrees_again_counts_once(
    needed: int, roles: list[str], given: list[Agreement]
) -> None:
    twice = [agreement for agreement in given for _ in range(2)]
    assert still_needed(needed, roles, twice) == still_needed(needed, roles, given)


# --- a call ---------------------------------------------------------------------------------------


def asked(governor: Governor, ran: list[str]) -> str:
    """Call a tool of high risk, and return the id of the call that waits."""

    @governor.govern(
        risk_level="high",
        read_only=False,
        access_kinds=["file_write"],
        write_effects=["local_draft"],
    )
    def refund(order: str) -> None:
        ran.append(order)

    with (
        agent_context(actor="agent:a", session_id="s", roots=["."]),
        pytest.raises(ApprovalRequired) as waits,
    ):
        refund("o-1")
    return waits.value.invocation_id


@pytest.mark.parametrize("data", [TWO, BOTH])
def test_the_stock_policy_lets_two_people_decide(data: dict[str, Any], tmp_path: Path) -> None:
    ran: list[str] = []
    store = ApprovalStore(tmp_path / "approvals.db")
    governor = Governor(policy_data=data, approvals=store)
    invocation = asked(governor, ran)
    ref = governor.approvals.waiting(invocation).request.request_id
    store.answer(ref, ApprovalAnswer(True, answered_by="user:ann", roles=("finance",)))
    assert governor.resume(invocation).status is ResultStatus.PENDING
    store.answer(ref, ApprovalAnswer(True, answered_by="user:bob", roles=("legal",)))
    assert governor.resume(invocation).status is ResultStatus.SUCCEEDED
    assert ran == ["o-1"]


def test_two_people_are_not_enough_for_a_stricter_policy(tmp_path: Path) -> None:
    ran: list[str] = []
    store = ApprovalStore(tmp_path / "approvals.db")
    before = Governor(policy_data=TWO, approvals=store)
    invocation = asked(before, ran)
    ref = before.approvals.waiting(invocation).request.request_id
    for person in ("user:ann", "user:bob"):
        store.answer(ref, ApprovalAnswer(True, answered_by=person, roles=("finance",)))
    after = Governor(policy_data=BOTH, approvals=store)
    asked(after, ran)
    assert after.resume(invocation).status is ResultStatus.REJECTED
    assert ran == []


def test_an_approver_in_place_is_one_of_the_two() -> None:
    ran: list[str] = []
    answer = ApprovalAnswer(True, answered_by="user:ann")
    asked(Governor(policy_data=TWO, approver=FixedApprover(answer)), ran)
    assert ran == []


# --- what people are shown ------------------------------------------------------------------------


def test_the_command_line_names_how_many_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    url = str(tmp_path / "approvals.db")
    store = ApprovalStore(url)
    ref = two_people(store, approver_roles=[])
    done = CliRunner().invoke(
        app, ["approvals", "approve", ref, "-u", url, "--as", "user:ada", "--yes"]
    )
    assert "agreed: user:ada; still needed: 1 more person" in " ".join(done.output.split())
    shown = CliRunner().invoke(app, ["approvals", "show", ref, "-u", url]).output
    assert "2 different people" in shown
    assert "1 more person" in shown
    assert "pending, 1 more" in CliRunner().invoke(app, ["approvals", "list", "-u", url]).output
    store.close()
