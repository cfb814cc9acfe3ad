"""A governed call is not stricter than what it wraps, and what is decided is what runs."""

from __future__ import annotations

import asyncio
import enum
import functools
from collections import deque
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, validate_call
from typing_extensions import TypedDict

from agenttool_otel import ApprovalRequired, Governor, ToolInputInvalid, agent_context
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int


class Line(BaseModel):
    start: Point
    title: str | None = None


class Options(TypedDict):
    deep: bool


@dataclass
class Size:
    width: int


PLAIN = [
    (int, "5"),
    (int | None, "5"),
    (list[float], (1.0, 2.0)),
    (list[int], deque([1])),
    (float, Decimal("1.5")),
    (date, "2024-01-02"),
    (Decimal, 3),
    (Colour, "red"),
    (Literal["a", "b"], "c"),
    (Options, {"deep": 1, "more": 2}),
    (Size, {"width": "1"}),
    (Line, {"start": {"x": "1"}}),
    (str, b"bytes"),
    (str, Path("a/b")),
    (Annotated[int, Field(gt=3)], 1),
]


@pytest.mark.parametrize(("kind", "given"), PLAIN)
def test_a_plain_function_takes_what_its_caller_gives(kind: Any, given: Any) -> None:
    def tool(x: Any) -> Any:
        return x

    tool.__annotations__ = {"x": kind}
    with capture(policy=StaticEngine("allow")) as captured:
        assert captured.governor.govern(tool)(given) == given


@pytest.mark.parametrize("given", ["abc", [1], {"a": 1}])
def test_a_models_call_of_it_still_has_to_fit_the_schema(given: Any) -> None:
    def tool(x: int) -> Any:
        raise AssertionError("ran")

    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(tool).tool.invoke(x=given)
    assert result.error is not None
    assert result.error.error_class == "schema_validation_failed"


VALIDATED = [
    (int, "5", 5),
    (date, "2024-01-02", date(2024, 1, 2)),
    (Decimal, "1.50", Decimal("1.50")),
    (Colour, "red", Colour.RED),
    (Line, {"start": {"x": "1"}}, Line(start=Point(x=1))),
    (int | None, None, None),
    (Options, {"deep": "true"}, {"deep": True}),
    (Size, {"width": "1"}, Size(1)),
    (Annotated[int, AfterValidator(lambda x: x + 1)], "5", 6),
    (list[int], ("1", 2), [1, 2]),
]


@pytest.mark.parametrize(("kind", "given", "read"), VALIDATED)
@pytest.mark.parametrize("door", ["call", "invoke"])
def test_validate_call_reads_once_what_is_decided(
    kind: Any, given: Any, read: Any, door: str
) -> None:
    def tool(x: Any) -> Any:
        return x

    tool.__annotations__ = {"x": kind}
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(validate_call(tool))
        got = governed(given) if door == "call" else governed.tool.invoke(x=given).value
    assert (got, type(got)) == (read, type(read))
    if isinstance(read, int):
        assert engine.documents[0]["input"] == {"x": read}


def test_strict_validate_call_stays_strict_but_reads_json() -> None:
    @validate_call(config={"strict": True})
    def tool(x: int, day: date) -> str:
        return f"{x} {day:%Y}"

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(tool)
        assert governed.tool.invoke(x=1, day="2024-01-02").value == "1 2024"
        with pytest.raises(ToolInputInvalid, match="x: Input should be a valid integer"):
            governed("1", date(2024, 1, 2))  # type: ignore[arg-type]


def test_validate_call_takes_aliases_and_fills_defaults() -> None:
    @validate_call
    def tool(
        path: Annotated[str, Field(alias="file")],
        depth: Annotated[int, Field(validate_default=True)] = 2,
    ) -> Any:
        return path, depth

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        assert captured.governor.govern(tool)(file="a") == ("a", 2)  # type: ignore[call-arg]
    assert engine.documents[0]["input"] == {"path": "a", "depth": 2}


def _payment(
    account: int, amount: Annotated[int, BeforeValidator(lambda v: 2 * int(v))] = 1, *, fee: int = 0
) -> Any:
    return account, amount, fee


@pytest.mark.parametrize("door", ["call", "invoke"])
@pytest.mark.parametrize(
    ("args", "kwargs", "given", "decided"),
    [
        (("5",), {}, {"amount": "-2"}, {"amount": -4, "fee": 0}),
        ((), {"fee": "7"}, {"account": "1"}, {"account": 1, "amount": 1, "fee": 7}),
        ((), {"amount": "3"}, {"account": "1"}, {"account": 1, "amount": 6, "fee": 0}),
        (("5", "3"), {}, {}, {"fee": 0}),
    ],
)
def test_a_partial_of_validate_call_is_read_by_it_too(
    args: Any, kwargs: Any, given: Any, decided: Any, door: str
) -> None:
    partial = functools.partial(validate_call(_payment), *args, **kwargs)
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(partial, name="pay", description="Pay.")
        got = governed(**given) if door == "call" else governed.tool.invoke(given).value
    assert got == partial(**given)
    assert engine.documents[0]["input"] == decided


def test_a_partials_own_arguments_are_read_once() -> None:
    read: list[str] = []

    def noted(value: str) -> int:
        read.append(value)
        return int(value)

    @validate_call
    def pay(account: Annotated[int, BeforeValidator(noted)], amount: int) -> int:
        return account + amount

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(
            functools.partial(pay, "5"), name="pay", description="Pay."
        )
        assert [
            governed(amount="1"),
            governed(amount="2"),
            governed.tool.invoke(amount=3).value,
        ] == [6, 7, 8]
    assert read == ["5"]


def test_validate_call_is_read_in_coroutines_and_methods() -> None:
    with capture(policy=StaticEngine("allow")) as captured:

        @captured.governor.govern
        @validate_call
        async def later(x: int) -> int:
            return x

        class Desk:
            @captured.governor.govern
            @validate_call(validate_return=True)
            def method(self, x: int) -> str:
                assert isinstance(self, Desk)
                return f"{x!r}"

        assert asyncio.run(later("5")) == 5  # type: ignore[arg-type]
        assert Desk().method("5") == "5"  # type: ignore[arg-type]
        assert Desk.method(Desk(), "5") == "5"  # type: ignore[arg-type]
        assert Desk().method.tool.invoke(x="5").value == "5"


@pytest.mark.parametrize("door", ["call", "invoke"])
def test_a_paused_call_is_not_read_again_by_its_reader(door: str) -> None:
    @validate_call
    def tool(x: Annotated[int, AfterValidator(lambda x: x + 1)]) -> int:
        return x

    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        governed = governor.govern(tool)
        if door == "call":
            with pytest.raises(ApprovalRequired) as asked:
                governed("5")  # type: ignore[arg-type]
            invocation = asked.value.invocation_id
        else:
            invocation = str(governed.tool.invoke(x="5").invocation_id)
        request = governor.approvals.waiting(invocation).request
        governor.approvals.store.answer(
            request.request_id, ApprovalAnswer(True, answered_by="user:h")
        )
        assert governor.resume(invocation).value == 6


LOOSE_PLACES = [
    {"count": "/etc/shadow"},
    {"count": ["x", "/etc/shadow"]},
    {"count": {"path": "/etc/shadow"}},
    {"count": Path("/etc/shadow")},
    {"count": b"/etc/shadow"},
    {"mode": "/etc/shadow"},
    {"path": ("/etc/shadow",)},
    {"path": {"name": "/etc/shadow"}},
    {"path": b"/etc/shadow"},
    {"path": 3},
]


@pytest.mark.parametrize("given", LOOSE_PLACES)
def test_a_path_of_another_type_than_hinted_does_not_run(
    given: dict[str, Any], tmp_path: Path
) -> None:
    governor = Governor()

    @governor.govern(
        read_only=True, access_kinds=["file_read"], write_effects=["none"], risk_level="low"
    )
    def tool(path: str = "a", count: int = 1, mode: Literal["r", "w"] = "r") -> Any:
        raise AssertionError("ran")

    with (
        agent_context(roots=[str(tmp_path)], cwd=str(tmp_path)),
        pytest.raises(Exception) as stopped,
    ):
        tool(**given)
    assert type(stopped.value).__name__ in ("ToolDenied", "ApprovalRequired")


@pytest.mark.parametrize("changed", ["no number", [1], None])
def test_a_hooks_edit_is_checked_and_what_it_leaves_stays(changed: Any) -> None:
    def tool(x: int, y: int) -> Any:
        return x, y

    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "y": 7 if ctx.arguments["y"] == 1 else changed}),
        "pre_tool_use",
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(tool)
        assert governed("5", 1) == ("5", 7)  # type: ignore[arg-type]
        with pytest.raises(ToolInputInvalid):
            governed("5", 2)  # type: ignore[arg-type]


def test_an_approvers_edit_that_misses_the_schema_is_not_taken() -> None:
    def tool(x: int, y: int) -> Any:
        raise AssertionError("ran")

    approver = FixedApprover(
        ApprovalAnswer(True, answered_by="user:h", edited_input={"x": "5", "y": "no"})
    )
    policy = StaticEngine(decision("ask"))
    with capture(policy=policy, approver=approver) as captured, pytest.raises(ApprovalRequired):
        captured.governor.govern(tool)("5", 1)  # type: ignore[arg-type]


def test_local_types_arrive_as_objects_from_a_models_call() -> None:
    class Local(BaseModel):
        x: int

    @dataclass
    class Made:
        x: int

    with capture(policy=StaticEngine("allow")) as captured:

        class Holder:
            class Inner(BaseModel):
                x: int

            @captured.governor.govern
            def read(self, point: Inner) -> int:
                return point.x

        @captured.governor.govern
        def read(point: Local, many: list[Made]) -> int:
            return point.x + many[0].x

        assert read.tool.invoke(point={"x": 3}, many=[{"x": 4}]).value == 7
        assert Holder().read.tool.invoke(point={"x": 3}).value == 3


def test_a_hint_that_means_nothing_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    def tool(x: NoSuchThing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with capture(policy=StaticEngine("allow")) as captured:
        captured.governor.govern(tool)
    assert "'x', NoSuchThing, can't be resolved" in caplog.text
