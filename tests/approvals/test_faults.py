"""The fault list of approvals as a table: nothing runs that should not, and the reason is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from approval_helpers import ARGS, FakeClock, a_request, bindings, held_by, no, yes

from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.store import database
from agenttool_otel.approvals.store.requests import by_id
from agenttool_otel.approvals.store.schema import requests
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, AskLimit
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalStoreError,
)
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status

OTHER = {"path": "/etc/passwd", "content": "hello"}

WRONG_CLAIMS: list[tuple[str, dict[str, Any], Reason]] = [
    ("other arguments", {"args_digest": args_digest(OTHER)}, Reason.ARGUMENTS),
    ("no digest", {"args_digest": ""}, Reason.ARGUMENTS),
    ("another actor", {"actor_id": "agent:other"}, Reason.ACTOR),
    ("no actor", {"actor_id": ""}, Reason.ACTOR),
    ("another tenant", {"tenant": "evil"}, Reason.TENANT),
    ("no tenant", {"tenant": None}, Reason.TENANT),
    ("another session", {"session_id": "s-2"}, Reason.SESSION),
    ("no session", {"session_id": None}, Reason.SESSION),
    ("a changed declaration", {"declaration_digest": "sha256:tool-v2"}, Reason.DECLARATION),
    ("a changed policy revision", {"policy_revision_seen": "rev-2"}, Reason.POLICY_REVISION),
    ("another tool", {"tool_id": "local.shell/run"}, Reason.TOOL),
]


def asked(store: ApprovalStore, **values: Any) -> ApprovalRequest:
    return store.create(a_request(**values), ARGS)


def approved(store: ApprovalStore, **values: Any) -> ApprovalRequest:
    request = asked(store, **values)
    return store.answer(request.request_id, yes())


@pytest.mark.parametrize(
    ("changes", "reason"), [row[1:] for row in WRONG_CLAIMS], ids=[row[0] for row in WRONG_CLAIMS]
)
def test_an_approval_is_refused_for_anything_else(
    store: ApprovalStore, changes: dict[str, Any], reason: Reason
) -> None:
    request = approved(store)
    with pytest.raises(ApprovalConflict) as caught:
        store.claim(request.invocation_id, **bindings(request, **changes))
    assert caught.value.reason is reason
    assert store.get(request.request_id).status is Status.APPROVED
    assert [
        entry.data["reason"] for entry in store.log_entries() if entry.kind is Kind.CLAIM_REFUSED
    ] == [reason]
    # and the right call still runs, once
    assert store.claim(request.invocation_id, **bindings(request)).arguments == ARGS


def test_an_approval_is_used_once(store: ApprovalStore) -> None:
    request = approved(store)
    store.claim(request.request_id, **bindings(request))
    for ref in (request.request_id, request.invocation_id):
        with pytest.raises(ApprovalConflict) as caught:
            store.claim(ref, **bindings(request))
        assert caught.value.reason is Reason.CONSUMED


@pytest.mark.parametrize(
    "state", [Status.PENDING, Status.REJECTED, Status.CANCELED, Status.EXPIRED]
)
def test_only_an_approved_request_is_claimed(
    store: ApprovalStore, clock: FakeClock, state: Status
) -> None:
    request = asked(store)
    expected: type[ApprovalError] = ApprovalConflict
    if state is Status.REJECTED:
        store.answer(request.request_id, no())
    elif state is Status.CANCELED:
        store.cancel(request.invocation_id, "user_interruption")
    elif state is Status.EXPIRED:
        clock.move(601)
        expected = ApprovalExpired
    with pytest.raises(expected):
        store.claim(request.invocation_id, **bindings(request))
    assert store.get(request.request_id).status is state


def test_an_approval_that_nobody_used_in_time_expires(
    store: ApprovalStore, clock: FakeClock
) -> None:
    request = approved(store)
    clock.move(601)
    with pytest.raises(ApprovalExpired):
        store.claim(request.invocation_id, **bindings(request))
    assert store.get(request.request_id).status is Status.EXPIRED


def test_an_answer_after_expiry_is_refused(store: ApprovalStore, clock: FakeClock) -> None:
    request = asked(store)
    assert request.expires_at is not None
    clock.now = request.expires_at
    with pytest.raises(ApprovalExpired):
        store.answer(request.request_id, yes())


def test_a_clock_set_back_revives_nothing(
    open_store: Callable[..., ApprovalStore], clock: FakeClock
) -> None:
    store = open_store()
    request = approved(store)
    clock.move(601)
    assert store.get(request.request_id).status is Status.EXPIRED
    clock.move(-3600)
    for reader in (store, open_store()):
        assert reader.get(request.request_id).status is Status.EXPIRED
        with pytest.raises(ApprovalExpired):
            reader.claim(request.invocation_id, **bindings(request))


def test_elapsed_time_counts_when_the_wall_clock_is_set_back(
    open_store: Callable[..., ApprovalStore], clock: FakeClock
) -> None:
    passed = [1000.0]
    store = open_store(ticks=lambda: passed[0])
    request = approved(store)
    clock.move(-86_400)
    passed[0] += 601
    with pytest.raises(ApprovalExpired):
        store.claim(request.invocation_id, **bindings(request))


def test_a_clock_that_ran_ahead_shortens_no_later_request(
    store: ApprovalStore, clock: FakeClock
) -> None:
    clock.move(365 * 86_400)
    asked(store)
    clock.move(-365 * 86_400)
    later = approved(store)
    assert store.claim(later.invocation_id, **bindings(later)).arguments == ARGS


@pytest.mark.parametrize("name", ["agent:support", " Agent:Support ", "ａgent:support"])
def test_the_requesting_actor_can_not_answer(store: ApprovalStore, name: str) -> None:
    request = asked(store)
    with pytest.raises(ApprovalConflict) as caught:
        store.answer(request.request_id, yes(answered_by=name))
    assert caught.value.reason is Reason.REQUESTER
    assert store.get(request.request_id).status is Status.PENDING


def test_the_requesting_actor_answers_only_where_it_is_allowed(store: ApprovalStore) -> None:
    own = yes(answered_by="agent:support")
    first, second = asked(store), asked(store, requester_may_answer=True)
    assert store.answer(first.request_id, own, allow_requester=True).status is Status.APPROVED
    assert store.answer(second.request_id, own).status is Status.APPROVED


BAD_ANSWERS: list[tuple[str, ApprovalAnswer, Reason]] = [
    ("without the role", yes(roles=("reader",)), Reason.ROLE),
    ("without any role", yes(roles=()), Reason.ROLE),
    ("from nobody", yes(answered_by=""), Reason.UNIDENTIFIED),
    ("from blanks", yes(answered_by="  "), Reason.UNIDENTIFIED),
    ("a rejection without the role", no(roles=()), Reason.ROLE),
    ("a text for yes", yes(approved="yes"), Reason.INVALID_ANSWER),
    ("a number for yes", yes(approved=1), Reason.INVALID_ANSWER),
    ("roles as one text", yes(roles="operator"), Reason.INVALID_ANSWER),
    ("an edit that is no object", yes(edited_input=["rm"]), Reason.INVALID_ANSWER),
    ("an edit with NaN", yes(edited_input={"path": "a", "n": float("nan")}), Reason.INVALID_ANSWER),
    ("an edit with bytes", yes(edited_input={"path": "a", "n": b"x"}), Reason.INVALID_ANSWER),
    (
        "an edit with a key that is no text",
        yes(edited_input={"path": "a", 1: "x"}),
        Reason.INVALID_ANSWER,
    ),
    ("an edit with a no", no(edited_input=dict(ARGS)), Reason.INVALID_ANSWER),
    ("an edit that breaks the schema", yes(edited_input={"path": 7}), Reason.INVALID_ANSWER),
    ("a suggestion that is not there", yes(remember=5), Reason.INVALID_ANSWER),
    ("a negative suggestion", yes(remember=-1), Reason.INVALID_ANSWER),
    ("a truth for a suggestion", yes(remember=True), Reason.INVALID_ANSWER),
    ("a suggestion with a no", no(remember=0), Reason.INVALID_ANSWER),
]


@pytest.mark.parametrize(
    ("answer", "reason"), [row[1:] for row in BAD_ANSWERS], ids=[row[0] for row in BAD_ANSWERS]
)
def test_an_answer_that_does_not_fit_leaves_the_request_pending(
    store: ApprovalStore, answer: ApprovalAnswer, reason: Reason
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    request = asked(
        store, input_schema=schema, suggested_updates=[{"type": "grant", "scope": "session"}]
    )
    with pytest.raises(ApprovalConflict) as caught:
        store.answer(request.request_id, answer)
    assert caught.value.reason is reason
    assert store.get(request.request_id).status is Status.PENDING
    assert store.list_grants() == []
    refused = [entry for entry in store.log_entries() if entry.kind is Kind.ANSWER_REFUSED]
    assert [entry.data["reason"] for entry in refused] == [reason]


def test_a_second_answer_is_refused_and_the_first_stands(store: ApprovalStore) -> None:
    request = asked(store)
    store.answer(request.request_id, no())
    with pytest.raises(ApprovalConflict) as caught:
        store.answer(request.request_id, yes())
    assert caught.value.reason is Reason.ALREADY_ANSWERED
    assert store.get(request.request_id).status is Status.REJECTED


def test_edited_arguments_are_what_is_claimed_and_nothing_else(store: ApprovalStore) -> None:
    request = asked(store)
    edited = {"path": "notes.txt", "content": "goodbye"}
    shown = store.answer(request.request_id, yes(edited_input=edited))
    assert shown.edited
    assert store.stored_call(request.invocation_id).args_digest == args_digest(edited)
    with pytest.raises(ApprovalConflict) as caught:
        store.claim(request.invocation_id, **bindings(request))
    assert caught.value.reason is Reason.ARGUMENTS
    claim = store.claim(request.invocation_id, **bindings(request, args_digest=args_digest(edited)))
    assert (claim.arguments, claim.original_arguments) == (edited, ARGS)


def test_a_schema_that_points_elsewhere_is_not_fetched(store: ApprovalStore) -> None:
    request = asked(store, input_schema={"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(ApprovalConflict, match="schema can't be read"):
        store.answer(request.request_id, yes(edited_input=dict(ARGS)))


def test_a_changed_policy_needs_a_decision_of_its_own(store: ApprovalStore) -> None:
    request = approved(store)
    changed = bindings(request, policy_revision_seen="rev-2")
    with pytest.raises(ApprovalConflict):
        store.claim(request.invocation_id, **changed)
    store.claim(request.invocation_id, **changed, decided_again=True)
    entry = store.log_entries()[-1]
    assert (entry.kind, entry.data["policy_revision"], entry.data["decided_again"]) == (
        Kind.CLAIMED,
        "rev-2",
        True,
    )


@pytest.mark.parametrize("end", ["open", "approved", "rejected", "consumed"])
def test_an_answered_invocation_is_not_asked_again(store: ApprovalStore, end: str) -> None:
    request = asked(store)
    if end == "rejected":
        store.answer(request.request_id, no())
    elif end != "open":
        store.answer(request.request_id, yes())
    if end == "consumed":
        store.finish(store.claim(request.invocation_id, **bindings(request)), "succeeded")
    with pytest.raises(ApprovalConflict) as caught:
        store.create(a_request(invocation_id=request.invocation_id), ARGS)
    expected = {"rejected": Reason.REJECTED, "consumed": Reason.CONSUMED}.get(
        end, Reason.STILL_OPEN
    )
    assert caught.value.reason is expected


def test_after_a_cancellation_an_invocation_may_ask_again(store: ApprovalStore) -> None:
    first = asked(store)
    store.cancel(first.request_id, "policy_changed")
    again = store.create(a_request(invocation_id=first.invocation_id), ARGS)
    newest = store.by_invocation(first.invocation_id)
    assert newest is not None
    assert newest.request_id == again.request_id
    with pytest.raises(ApprovalConflict):
        store.answer(first.request_id, yes())


def test_the_same_request_id_can_not_be_stored_twice(store: ApprovalStore) -> None:
    request = asked(store)
    with pytest.raises(ApprovalConflict) as caught:
        store.create(a_request(request_id=request.request_id), ARGS)
    assert caught.value.reason is Reason.DUPLICATE


def test_a_request_is_stored_only_with_its_own_arguments(store: ApprovalStore) -> None:
    with pytest.raises(ApprovalConflict) as caught:
        store.create(a_request(), OTHER)
    assert caught.value.reason is Reason.ARGUMENTS
    assert store.list("pending") == []


def test_an_actor_that_asks_too_often_is_refused_everywhere(
    open_store: Callable[..., ApprovalStore], clock: FakeClock
) -> None:
    one, two = (open_store(ask_limit=AskLimit(2, 60)) for _ in range(2))
    asked(one)
    asked(two)
    with pytest.raises(ApprovalConflict) as caught:
        asked(one)
    assert caught.value.reason is Reason.RATE_LIMITED
    asked(one, actor_id="agent:other")
    clock.move(61)
    asked(two)


def test_unknown_ids_are_told(store: ApprovalStore) -> None:
    assert store.by_invocation("inv_none") is None
    for act in (
        lambda: store.get("appr_none"),
        lambda: store.stored_call("appr_none"),
        lambda: store.answer("appr_none", yes()),
        lambda: store.cancel("appr_none", "x"),
        lambda: store.claim("appr_none", **bindings(a_request())),
        lambda: store.revoke("grant_none"),
    ):
        with pytest.raises(ApprovalNotFound):
            act()


def test_a_request_that_is_over_before_it_starts_is_refused(store: ApprovalStore) -> None:
    with pytest.raises(ApprovalExpired):
        asked(store, ttl=-1)


def test_a_request_without_an_expiry_gets_one(store: ApprovalStore) -> None:
    request = asked(store, ttl=None)
    assert request.expires_at is not None
    assert (request.expires_at - request.created_at).days == 7


def test_only_so_many_requests_wait_for_an_answer_at_once(
    open_store: Callable[..., ApprovalStore],
) -> None:
    store = open_store(max_pending=4, max_pending_per_session=2)
    first = asked(store, session_id="s")
    asked(store, session_id="s")
    entries = store.position()
    with pytest.raises(ApprovalConflict, match="this session") as caught:
        asked(store, session_id="s")
    assert caught.value.reason is Reason.RATE_LIMITED
    assert store.position() == entries  # whoever asks in a loop does not fill the log
    for session in ("t", None):
        asked(store, session_id=session)
    with pytest.raises(ApprovalConflict, match="too many requests wait") as caught:
        asked(store, session_id="u")
    assert caught.value.reason is Reason.RATE_LIMITED
    store.answer(first.request_id, no())
    asked(store, session_id="s")


def test_a_store_in_memory_forgets_what_was_closed_long_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "KEPT_IN_MEMORY", 40)
    monkeypatch.setattr(database, "_FORGET_EVERY", 10)
    store = ApprovalStore("sqlite://")
    waiting = asked(store)
    for _ in range(50):
        request = approved(store)
        store.finish(store.claim(request.invocation_id, **bindings(request)), "succeeded")
    assert len(store.log_entries()) < 60
    assert sum(store.counts().values()) < 20
    assert store.verify_chain().ok
    assert store.answer(waiting.request_id, yes()).status is Status.APPROVED
    assert store.claim(waiting.invocation_id, **bindings(waiting)).arguments == ARGS


# --- tampering ------------------------------------------------------------------------------------


def _change(store: ApprovalStore, request_id: str, **values: Any) -> None:
    with store._db.write() as tx:
        tx.connection.execute(
            requests.update().where(requests.c.request_id == request_id).values(**values)
        )


def test_a_row_marked_approved_by_hand_does_not_run(store: ApprovalStore) -> None:
    request = asked(store)
    _change(store, request.request_id, status="approved")
    with pytest.raises(ApprovalStoreError):
        store.claim(request.invocation_id, **bindings(request))
    with pytest.raises(ApprovalStoreError):
        store.get(request.request_id)


def test_a_rejected_row_marked_approved_by_hand_does_not_run(store: ApprovalStore) -> None:
    request = asked(store)
    store.answer(request.request_id, no())
    _change(store, request.request_id, status="approved")
    with pytest.raises(ApprovalStoreError):
        store.claim(request.invocation_id, **bindings(request))


def test_a_used_row_set_back_by_hand_does_not_run_again(store: ApprovalStore) -> None:
    request = approved(store)
    store.finish(store.claim(request.invocation_id, **bindings(request)), "succeeded")
    _change(store, request.request_id, status="approved", claim_id=None, outcome=None)
    with pytest.raises(ApprovalConflict) as caught:
        store.claim(request.invocation_id, **bindings(request))
    assert caught.value.reason is Reason.CONSUMED


@pytest.mark.parametrize("column", ["sealed_request", "sealed_call", "sealed_answer"])
def test_a_changed_or_swapped_ciphertext_does_not_run(store: ApprovalStore, column: str) -> None:
    request, other = approved(store), approved(store)
    with store._db.read() as (connection, _):
        mine = by_id(connection, request.request_id)
        theirs = by_id(connection, other.request_id)
    data = bytearray(getattr(mine, column))
    data[-1] ^= 1
    for value in (bytes(data), bytes(getattr(theirs, column)), b"", b"\x01short"):
        _change(store, request.request_id, **{column: value})
        with pytest.raises(ApprovalStoreError):
            store.claim(request.invocation_id, **bindings(request))
    assert store.claim(other.invocation_id, **bindings(other)).arguments == ARGS


def test_an_expiry_moved_by_hand_does_not_help(store: ApprovalStore, clock: FakeClock) -> None:
    request = approved(store)
    _change(store, request.request_id, expires_us=2**52)
    clock.move(601)
    with pytest.raises(ApprovalStoreError, match="changed"):
        store.claim(request.invocation_id, **bindings(request))


def test_a_list_shows_unreadable_requests_and_readable_ones(store: ApprovalStore) -> None:
    bad, good = asked(store), asked(store)
    _change(store, bad.request_id, sealed_request=b"\x01" + b"0" * 40)
    shown = {one.request_id: one for one in store.list("pending")}
    assert "can't be opened" in shown[bad.request_id].message
    assert shown[good.request_id].arguments_preview == ARGS
    with pytest.raises(ApprovalStoreError):
        store.answer(bad.request_id, yes())


# --- claims, ends and crashes within one process --------------------------------------------------


def test_a_run_ends_once_and_only_by_its_own_claim(store: ApprovalStore) -> None:
    request = approved(store)
    claim = store.claim(request.invocation_id, **bindings(request))
    with pytest.raises(ApprovalConflict) as caught:
        store.finish(claim._replace(claim_id="claim_forged"), "succeeded")
    assert caught.value.reason is Reason.WRONG_CLAIM
    store.finish(claim, "failed")
    store.finish(claim, "failed")
    with pytest.raises(ApprovalConflict):
        store.finish(claim, "succeeded")
    with pytest.raises(ValueError):
        store.finish(claim, "maybe")
    assert store.get(request.request_id).outcome == "failed"


def test_a_claim_that_was_never_used_can_be_given_back(store: ApprovalStore) -> None:
    request = approved(store)
    store.release(store.claim(request.invocation_id, **bindings(request)))
    claim = store.claim(request.invocation_id, **bindings(request))
    store.finish(claim, "succeeded")
    with pytest.raises(ApprovalConflict):
        store.release(claim)


def test_a_running_claim_is_not_recovered(store: ApprovalStore, clock: FakeClock) -> None:
    request = approved(store)
    store.claim(request.invocation_id, **bindings(request))
    clock.move(7 * 86_400)
    assert store.recover() == []


def test_a_lost_run_is_asked_again_and_never_repeated(
    store: ApprovalStore, clock: FakeClock
) -> None:
    request = approved(store)
    claim = store.claim(request.invocation_id, **bindings(request))
    store.extend(claim)
    held_by(store, '{"host": "elsewhere", "pid": 1, "start": 1}')
    assert store.recover() == []  # a machine that can't be seen from here: only the lease tells
    clock.move(3601)
    [lost] = store.recover()
    assert store.recover() == []
    assert store.get(request.request_id).status is Status.INTERRUPTED
    again = store.get(lost.asked_again)
    assert again.status is Status.PENDING
    assert again.supersedes == request.request_id
    assert "not known" in again.message
    assert again.invocation_id == request.invocation_id
    with pytest.raises(ApprovalConflict) as caught:
        store.claim(request.invocation_id, **bindings(request))
    assert caught.value.reason is Reason.NOT_ANSWERED
    store.answer(again.request_id, yes())
    assert store.claim(request.invocation_id, **bindings(request)).arguments == ARGS


def test_a_lost_run_that_ends_after_all_withdraws_the_question(
    store: ApprovalStore, clock: FakeClock
) -> None:
    request = approved(store)
    claim = store.claim(request.invocation_id, **bindings(request))
    held_by(store, "{}")
    clock.move(3601)
    [lost] = store.recover()
    store.answer(lost.asked_again, yes())
    store.finish(claim, "succeeded")
    assert store.get(lost.asked_again).status is Status.CANCELED
    with pytest.raises(ApprovalConflict):
        store.claim(request.invocation_id, **bindings(request))


def test_a_lost_edited_run_asks_about_arguments_with_a_preview(
    store: ApprovalStore, clock: FakeClock
) -> None:
    request = asked(store)
    edited = {"path": "other.txt", "content": "x"}
    store.answer(request.request_id, yes(edited_input=edited))
    store.claim(request.invocation_id, **bindings(request, args_digest=args_digest(edited)))
    held_by(store, "{}")
    clock.move(3601)
    [lost] = store.recover()
    assert store.stored_call(lost.asked_again).arguments == ARGS
    assert "edited arguments" in store.get(lost.asked_again).message
