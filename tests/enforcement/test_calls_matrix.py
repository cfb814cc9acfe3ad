"""Whichever way a body is run that a policy obliges to be held: it is held, or it does not run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from held_calls import HOLDS, LATER, REFUSES, Run, held, held_when_asked, run_by

from agenttool_otel import GovernedOutcome, ToolDenied, enforcement
from agenttool_otel.names import Attr, ErrorClass, FailClosedCause, GenAI
from agenttool_otel.testing import Capture, StaticEngine, capture

SOURCES = Path(enforcement.__file__).parents[1]
WAYS = HOLDS | REFUSES


@pytest.fixture
def readable() -> None:
    """Skip where this host can't hold the profile read."""
    proof = enforcement.available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")


@pytest.fixture
def unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host on which nothing holds."""
    proof = SimpleNamespace(proven=False, mechanism="", reason="no Landlock in this test")
    monkeypatch.setattr(enforcement, "available", lambda: {"read": proof})


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=held()) as captured:
        yield captured


def denied_as_unavailable(captured: Capture) -> bool:
    attributes = captured.span.attributes
    return (
        attributes[GenAI.ERROR_TYPE] == ErrorClass.POLICY_BLOCKED
        and attributes[Attr.PERMISSION_FAIL_CLOSED] == FailClosedCause.SANDBOX_UNAVAILABLE
        and attributes[Attr.SANDBOX_ENFORCED] is False
    )


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_without_an_obligation_each_way_writes(way: Callable[[Run], Any], tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        run_by(way, captured, tmp_path / "out")
        assert Attr.SANDBOX_PROFILE not in captured.span.attributes
    assert (tmp_path / "out").exists() or way is REFUSES["custom tool"]


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("way", HOLDS.values(), ids=HOLDS.keys())
def test_a_way_that_holds_writes_nothing(
    way: Callable[[Run], Any], captured: Capture, tmp_path: Path
) -> None:
    run_by(way, captured, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    attributes = captured.span.attributes
    assert attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION
    assert attributes[Attr.SANDBOX_ENFORCED] is True
    assert Attr.INVOCATION_ATTEMPTS not in attributes  # what was refused once is not tried again


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("way", LATER.values(), ids=LATER.keys())
def test_nothing_of_a_body_is_left_for_later(
    way: Callable[[Run], Any], captured: Capture, tmp_path: Path
) -> None:
    assert isinstance(run_by(way, captured, tmp_path / "out"), TypeError)
    assert not (tmp_path / "out").exists()
    assert captured.span.attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("way", REFUSES.values(), ids=REFUSES.keys())
def test_a_way_that_can_not_hold_runs_nothing(
    way: Callable[[Run], Any], captured: Capture, tmp_path: Path
) -> None:
    run_by(way, captured, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert denied_as_unavailable(captured)


@pytest.mark.usefixtures("unavailable")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_where_nothing_holds_nothing_runs(
    way: Callable[[Run], Any], captured: Capture, tmp_path: Path
) -> None:
    run_by(way, captured, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert denied_as_unavailable(captured)


@pytest.mark.usefixtures("unavailable")
def test_nobody_is_asked_about_what_can_not_run(tmp_path: Path) -> None:
    with capture(policy=held("ask")) as captured:
        assert isinstance(run_by(HOLDS["call"], captured, tmp_path / "out"), ToolDenied)
        assert denied_as_unavailable(captured)


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("policy", [lambda: held("ask"), held_when_asked], ids=["again", "once"])
def test_an_approved_call_stays_held(policy: Callable[[], Any], tmp_path: Path) -> None:
    with capture(policy=policy(), approvals=f"sqlite:///{tmp_path / 'a.db'}") as captured:
        run = Run(captured, str(tmp_path / "out"))
        result = captured.governor.resume(run.approved())
        assert result.error is not None
        assert result.error.error_class is ErrorClass.SANDBOX_VIOLATION
    assert not (tmp_path / "out").exists()


def test_an_approval_is_not_used_up_where_nothing_holds(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("readable")
    with capture(policy=held("ask"), approvals=f"sqlite:///{tmp_path / 'a.db'}") as captured:
        invocation = Run(captured, str(tmp_path / "out")).approved()
        request.getfixturevalue("unavailable")
        assert captured.governor.resume(invocation).status == "denied"
        stored = captured.governor.approvals.store.by_invocation(invocation)
        assert str(stored.status) == "approved"


@pytest.mark.usefixtures("readable")
def test_a_shadow_policy_records_and_holds_nothing(tmp_path: Path) -> None:
    with capture(policy=held(), policy_mode="shadow") as captured:
        run_by(HOLDS["call"], captured, tmp_path / "out")
        attributes = captured.span.attributes
    assert (tmp_path / "out").exists()
    assert attributes[Attr.SANDBOX_PROFILE] == "read"
    assert attributes[Attr.SANDBOX_ENFORCED] is False


def test_a_check_foresees_that_nothing_holds(
    captured: Capture, unavailable: None, tmp_path: Path
) -> None:
    foreseen = Run(captured, "").govern(lambda path: path).tool.check(path=str(tmp_path))
    assert str(foreseen.behavior) == "deny"


def test_a_body_reaches_a_driver_in_one_place_alone() -> None:
    made = [
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*.py")
        if re.search(r"(?<!class )\bExecute\(", file.read_text("utf-8"))
    ]
    assert made == ["call/phases/execute.py"]


def test_what_holds_a_body_refuses_to_travel(captured: Capture) -> None:
    import pickle

    from agenttool_otel.call.phases.holding import HeldCoroutine, HeldFunction

    sandbox: Any = SimpleNamespace()
    for form in (HeldFunction, HeldCoroutine):
        with pytest.raises(TypeError, match="can't travel"):
            pickle.dumps(form(print, sandbox))


def test_the_caller_gets_a_typed_refusal(
    captured: Capture, unavailable: None, tmp_path: Path
) -> None:
    error = run_by(HOLDS["call"], captured, tmp_path / "out")
    assert isinstance(error, GovernedOutcome)
    assert "no Landlock in this test" in str(error)
