"""No damage to an input turns a deny or an ask into an allow, and all engines decide alike. Made by
hypothesis.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stock_bundle import (
    EMBEDDED,
    ERROR,
    Interpreter,
    Machine,
    Opa,
    call,
    fixture,
    merged,
    path_call,
    shell_call,
    sql_call,
    stock,
    url_call,
    write_call,
)

from agenttool_otel.policy.bundles.input_schema import validating_schema

VALID = jsonschema_rs.validator_for(validating_schema())

UNTRUSTED = {
    "sources": ["tool:web"], "untrusted": True, "certain": True, "trust": "free_text", "role": "target", "seen_in": [],
    "link": False, "broken": False, "extended": False, "made_up_id": False, "private": [],
    "sourced": "unstated", "allowed": [],
}  # fmt: skip

BLOCKED: list[dict[str, Any]] = [
    path_call(sensitive="key"),
    path_call(inside=False),
    path_call(escapes=True, inside=False),
    path_call(certain=False),
    path_call(rejected="nul"),
    path_call(encoded=True),
    write_call(),
    write_call(inside=False),
    write_call(hard_links=3),
    merged(write_call(inside=False), {"session": {"roots": []}}),
    shell_call(parsed=False, unparsed="substitution"),
    shell_call(sensitive_read=True),
    shell_call(read_only=False, writes=True, destructive=True),
    shell_call(network=True),
    shell_call(complete=False),
    url_call(address_class="loopback", host="localhost"),
    url_call(address_class="metadata"),
    url_call(valid=False, rejected="control"),
    url_call(disagreement=True),
    url_call(lookalike="github.com"),
    url_call(scheme="file"),
    url_call(port=22),
    url_call(resolved=[{"address": "10.0.0.1", "address_class": "private"}]),
    sql_call(unbounded_write=True, read_only=False),
    sql_call(multiple=True),
    sql_call(tables_read=["pg_shadow"]),
    call(tool={"read_only": False}),
    call(tool={"read_only": False, "inferred": ["read_only"]}),
    call(tool={"inferred": ["read_only"]}),
    call(tool={"lifecycle": "disabled"}),
    call(tool={"destructive": True}),
    call(tool={"requires_user_interaction": True}, session={"interactive": False}),
    call(permission_profile={"risk_level": "critical"}),
    call(permission_profile={"approval_required": True}),
    call(permission_profile={"access_kinds": ["payment"]}),
    call(permission_profile={"write_effects": ["irreversible"]}),
    call(permission_profile={"tenant_scope": "umbrella"}),
    call(input={"tenant": "umbrella"}),
    call(invocation={"resumed": True}),
    merged(write_call(), {"approval": {**fixture("approved"), "status": "rejected"}}),
    call(hooks=[{"hook_id": "h", "behavior": "deny", "message": ""}]),
    call(hooks=[{"hook_id": "h", "behavior": "ask", "message": ""}]),
    call(
        tool={"read_only": False},
        permission_profile={"access_kinds": ["file_write"]},
        facts={"provenance": {"/to": UNTRUSTED}},
    ),
]
"""Calls that the stock bundle denies or asks about."""

CLEAR: list[dict[str, Any]] = [
    call(),
    url_call(),
    shell_call(),
    sql_call(),
    call(facts={"paths": []}),
]

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(
        [
            "",
            "allow",
            "true",
            "read",
            "none",
            "public",
            "approved",
            "available",
            "/",
            "*",
            "\u202e",
            "key",
        ]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.sampled_from([None, 1, "x", True, {}, []]), max_size=2),
    st.dictionaries(
        st.sampled_from(["deny", "certain", "0", "behavior"]), st.booleans(), max_size=2
    ),
)


def _places(document: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places: list[tuple[Any, ...]] = []
    if isinstance(document, dict):
        for key, value in document.items():
            places += [(*prefix, key), *_places(value, (*prefix, key))]
    elif isinstance(document, list):
        for index, value in enumerate(document):
            places += [(*prefix, index), *_places(value, (*prefix, index))]
    return places


def _holder(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        document = document[key]
    return document


@st.composite
def damaged(draw: st.DrawFn, base: dict[str, Any]) -> dict[str, Any]:
    """A document with members dropped, retyped or added; what was valid about it stays as it was.

    A change that leaves the document valid is another call, not a damaged one, so it is not made
    here.
    """
    document = copy.deepcopy(base)
    for _ in range(draw(st.integers(1, 3))):
        before = copy.deepcopy(document)
        intact = VALID.is_valid(_stripped(document))
        place = draw(st.sampled_from(_places(document)))
        holder = _holder(document, place)
        how = draw(st.sampled_from(["drop", "retype", "add"]))
        if how == "add":
            target = holder[place[-1]] if isinstance(holder[place[-1]], dict) else holder
            if isinstance(target, dict):
                target.setdefault(
                    draw(st.sampled_from(["extra", "allow", "trusted", "safe"])),
                    copy.deepcopy(draw(STRANGE)),
                )
            continue
        if place[0] == "input" or (isinstance(holder, list) and how == "drop"):
            # arguments have no schema, and an item less is another call
            continue
        if how == "drop":
            del holder[place[-1]]
        else:
            holder[place[-1]] = copy.deepcopy(draw(STRANGE))
        if how == "retype" and (VALID.is_valid(_stripped(document)) or not intact):
            # Of a document that is damaged already, it can't be told whether this change alone
            # would be another call.
            document = before
    return document


def _stripped(document: Any) -> Any:
    """Without the members that this test adds, which the schema refuses by themselves."""
    if isinstance(document, dict):
        return {
            key: _stripped(value)
            for key, value in document.items()
            if key not in {"extra", "allow", "trusted", "safe"}
        }
    if isinstance(document, list):
        return [_stripped(item) for item in document]
    return document


def _decided(kind: type[Any], documents: list[Any]) -> list[Any]:
    return stock(kind).decide(documents)


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_the_examples_are_what_they_say(kind: type[Any]) -> None:
    for document in [*BLOCKED, *CLEAR]:
        VALID.validate(document)
    assert {answer["behavior"] for answer in _decided(kind, BLOCKED)} == {"deny", "ask"}
    assert {answer["behavior"] for answer in _decided(kind, CLEAR)} == {"allow"}


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_never_turns_a_block_into_an_allow(kind: type[Any], data: st.DataObject) -> None:
    base = data.draw(st.sampled_from(BLOCKED))
    document = data.draw(damaged(base))
    [answer] = _decided(kind, [document])
    assert answer["behavior"] != "allow" if isinstance(answer, dict) else answer == "<undefined>", (
        answer,
        document,
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
def test_no_single_loss_or_wrong_type_is_an_allow(kind: type[Any]) -> None:
    """The same without chance: each member of each blocked call, dropped or given each wrong type,
    one at a time.
    """
    wrong: tuple[Any, ...] = (None, True, False, 0, 7, "", "x", [], [7], {}, {"x": 1})
    engine = stock(kind)
    compared = 0
    for base in BLOCKED:
        for place in _places(base):
            if place[0] == "input" or isinstance(place[-1], int):
                continue
            for value in ("drop", *wrong):
                document = copy.deepcopy(base)
                holder = _holder(document, place)
                if value == "drop":
                    del holder[place[-1]]
                else:
                    holder[place[-1]] = value
                    if VALID.is_valid(document):
                        continue
                answer = engine.ask(json.dumps(document))
                assert not isinstance(answer, dict) or answer["behavior"] != "allow", (
                    place,
                    value,
                    answer,
                )
                compared += 1
    assert compared > 10_000


@st.composite
def possible(draw: st.DrawFn) -> dict[str, Any]:
    """A valid input, with every member that a rule reads drawn at random."""
    flag = st.booleans()
    document = copy.deepcopy(draw(st.sampled_from([*CLEAR, *BLOCKED])))
    tool, profile, session = document["tool"], document["permission_profile"], document["session"]
    for member in draw(
        st.lists(
            st.sampled_from(["read_only", "destructive", "requires_user_interaction"]), max_size=1
        )
    ):
        tool[member] = draw(flag)
    if draw(st.integers(0, 3)) == 0:
        tool["lifecycle"] = draw(
            st.sampled_from(["available", "deprecated", "draft", "disabled", "odd"])
        )
        tool["aliases"] = draw(st.lists(st.sampled_from(["cat", "web.fetch"]), max_size=2))
        profile["risk_level"] = draw(st.sampled_from(["low", "medium", "high", "odd"]))
        profile["data_sensitivity"] = draw(
            st.sampled_from([None, "public", "confidential", "secret", "odd"])
        )
        profile["tenant_scope"] = draw(
            st.sampled_from([None, "single", "cross", "acme", "umbrella"])
        )
        profile["access_kinds"] = draw(
            st.lists(st.sampled_from(["file_read", "file_write", "network", "payment", "odd"]))
        )
        profile["write_effects"] = draw(
            st.lists(st.sampled_from(["none", "local_persistent", "remote_mutation", "odd"]))
        )
    session["mode"] = draw(
        st.sampled_from(["default", "default", "strict", "observe", "plan", "odd"])
    )
    session["interactive"] = draw(flag)
    session["roots"] = draw(st.sampled_from([["/proj"], ["/proj", "/srv"], []]))
    document["actor"]["roles"] = draw(
        st.lists(st.sampled_from(["reader", "writer", "operator", "odd"]), max_size=2)
    )
    document["actor"]["tenant"] = draw(st.sampled_from(["acme", None, "umbrella"]))
    document["approval"] = draw(
        st.sampled_from(
            [
                None,
                None,
                None,
                *(
                    {**fixture("approved"), "status": status}
                    for status in ("approved", "rejected", "expired")
                ),
            ]
        )
    )
    for fact in document["facts"]["paths"]:
        if draw(flag):
            member = draw(
                st.sampled_from(["inside", "escapes", "certain", "encoded", "confusable"])
            )
            fact[member] = not fact[member]
        fact["sensitive"] = draw(
            st.sampled_from([fact["sensitive"], "dotfile", "vcs", "key", "odd"])
        )
        fact["access"] = draw(st.sampled_from(["read", "write", "unknown"]))
        fact["hard_links"] = draw(st.sampled_from([None, 1, 2]))
    for fact in document["facts"]["urls"]:
        fact["address_class"] = draw(
            st.sampled_from(["name", "public", "private", "loopback", "link_local"])
        )
        fact["credentials"] = draw(flag)
    for fact in [*document["facts"]["shell"], *document["facts"]["sql"]]:
        member = draw(st.sampled_from(["parsed", "read_only", "inferred"]))
        fact[member] = not fact[member]
    VALID.validate(document)
    return document


@pytest.mark.parametrize("kind", EMBEDDED, ids=lambda kind: kind.name)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=possible())
def test_a_clear_concern_has_no_finding(kind: type[Any], document: dict[str, Any]) -> None:
    """The fast path may say allow only where the slow one would find nothing."""
    engine = stock(kind)
    [answer] = engine.decide([document])
    found = []
    for concern in ("paths", "shell", "network", "sql", "declared", "destructive", "approval"):
        found += engine.decide([document], f"data.agenttool.rules.{concern}.deny")[0]
        found += engine.decide([document], f"data.agenttool.rules.{concern}.ask")[0]
    if answer["behavior"] == "allow" and not answer["reason"]["rule_ref"].startswith(
        ("agenttool.permission.", "agenttool.rules.approval.")
    ):
        assert found == []
    if not found:
        assert "agenttool.rules." in answer["reason"]["rule_ref"]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=possible())
def test_both_forms_of_the_embedded_engine_agree(document: dict[str, Any]) -> None:
    assert _decided(Interpreter, [document]) == _decided(Machine, [document])


@pytest.mark.opa
@pytest.mark.parametrize(
    "examples", [200, pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_the_embedded_engine_agrees_with_opa(examples: int) -> None:
    valid: list[Any] = []
    broken: list[Any] = []

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(document=possible())
    def collect(document: dict[str, Any]) -> None:
        valid.append(document)

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(data=st.data())
    def collect_broken(data: st.DataObject) -> None:
        broken.append(data.draw(damaged(data.draw(st.sampled_from([*BLOCKED, *CLEAR])))))

    collect()
    collect_broken()
    documents = [*valid, *broken]
    reference = [
        answer
        for start in range(0, len(documents), 500)
        for answer in Opa().decide(documents[start : start + 500])
    ]
    assert {answer["behavior"] for answer in reference} == {"allow", "ask", "deny"}
    for kind in EMBEDDED:
        for document, expected, answer in zip(
            documents, reference, _decided(kind, documents), strict=True
        ):
            if answer == ERROR:
                # strict about builtin errors where OPA is not; both block
                assert expected["behavior"] != "allow", document
            else:
                assert answer == expected, (kind.name, document)
    print(f"{len(documents)} decisions on {len(EMBEDDED) + 1} engines, no difference")
