"""Arguments that a tool changes in place: it is said once by name, or the caller's own object is
handed over.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel
from recorded import last_of

from agenttool_otel import ConfigurationError, GovernedOutcome
from agenttool_otel.call.phases.in_place import WATCHED_CALLS
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.testing import Capture, StaticEngine, capture

FACTS: dict[str, Any] = {"read_only": True, "access_kinds": []}


@dataclasses.dataclass
class Cart:
    items: list[int] = dataclasses.field(default_factory=list)


class Report(BaseModel):
    items: list[int] = []


def put(key: Any, value: Any) -> Callable[[Any], Any]:
    def change(it: Any) -> None:
        it[key] = value

    return change


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (list, lambda it: it.append(1)),
    "dict": (dict, put("x", 1)),
    "set": (set, lambda it: it.add(1)),
    "bytearray": (bytearray, lambda it: it.extend(b"x")),
    "deque": (deque, lambda it: it.append(1)),
    "ordered": (OrderedDict, put("x", 1)),
    "default": (lambda: defaultdict(list), lambda it: it["x"].append(1)),
    "dataclass": (Cart, lambda it: it.items.append(1)),
    "model": (Report, lambda it: setattr(it, "items", [1])),
    "nested": (lambda: {"a": [{"b": set()}]}, lambda it: it["a"][0]["b"].add(1)),
    "in a tuple": (lambda: ([],), lambda it: it[0].append(1)),
    "same length": (lambda: [3, 1, 2], lambda it: it.sort()),
}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if "by_reference" in record.getMessage()
    ]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_place_is_said_once_by_name(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, change = CHANGES[name]
    with (
        capture(policy=StaticEngine("allow")) as captured,
        caplog.at_level(logging.WARNING, "agenttool_otel"),
    ):

        @captured.governor.govern(name="fill", **FACTS)
        def fill(cart: Any, other: Any = None) -> None:
            change(cart)

        for _ in range(3):
            given = make()
            fill(given, [1])
            assert given == make()
    [line] = lines(caplog)
    assert (
        "fill changed its argument 'cart'; the caller's is unchanged; state by_reference=['cart']"
        in line
    )


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_by_reference_reaches_the_caller(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, change = CHANGES[name]
    with (
        capture(policy=StaticEngine("allow")) as captured,
        caplog.at_level(logging.WARNING, "agenttool_otel"),
    ):

        @captured.governor.govern(name="fill", by_reference=["cart"], **FACTS)
        def fill(cart: Any, other: Any = None) -> Any:
            change(cart)
            return cart

        given = make()
        assert fill(given) is given
        assert given != make()
    assert not lines(caplog)


async def test_an_async_tool_changes_what_is_by_reference() -> None:
    with capture(policy=StaticEngine("allow")) as captured:

        @captured.governor.govern(by_reference=["cart"], **FACTS)
        async def fill(*, cart: list[int]) -> None:
            cart.append(1)

        given: list[int] = []
        await fill(cart=given)
        assert given == [1]


def test_a_tool_that_changes_nothing_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        caplog.at_level(logging.WARNING, "agenttool_otel"),
    ):

        @captured.governor.govern(**FACTS)
        def total(cart: list[float], state: dict[str, Any], report: Report) -> float:
            return sum([*cart, 1])

        assert total([1.5, 2.5], {"a": object()}, Report()) != 0
    assert not lines(caplog)


def test_a_change_before_an_exception_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        caplog.at_level(logging.WARNING, "agenttool_otel"),
    ):

        @captured.governor.govern(**FACTS)
        def fill(cart: list[int]) -> None:
            cart.append(1)
            raise KeyError("x")

        with pytest.raises(KeyError):
            fill([])
    assert len(lines(caplog)) == 1


def test_only_the_first_calls_are_watched(caplog: pytest.LogCaptureFixture) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        caplog.at_level(logging.WARNING, "agenttool_otel"),
    ):

        @captured.governor.govern(**FACTS)
        def fill(cart: list[int], late: bool) -> None:
            if late:
                cart.append(1)

        for _ in range(WATCHED_CALLS):
            fill([], False)
        fill([], True)
    assert not lines(caplog)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["crat"], "did you mean 'cart'"),
        (["cart", "state"], "no parameter 'state'"),
        (["self"], "no parameter 'self'"),
    ],
)
def test_a_name_that_is_no_parameter_is_refused_at_once(names: list[str], told: str) -> None:
    with capture() as captured, pytest.raises(ConfigurationError, match=told):

        @captured.governor.govern(by_reference=names, **FACTS)
        def fill(cart: list[int]) -> None: ...


def test_what_changed_since_the_decision_does_not_run() -> None:
    given = [1]
    ran = []

    hooks = Hooks()
    hooks.add(lambda ctx: given.append(2), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:

        @captured.governor.govern(by_reference=["cart"], **FACTS)
        def fill(cart: list[int]) -> None:
            ran.append(cart)

        with pytest.raises(GovernedOutcome, match="/cart: changed"):
            fill(given)
        assert not ran


def test_what_a_hook_put_there_is_what_runs() -> None:
    given = [1]
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({"cart": [7]}), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:

        @captured.governor.govern(by_reference=["cart"], **FACTS)
        def fill(cart: list[int]) -> list[int]:
            cart.append(8)
            return cart

        assert fill(given) == [7, 8]
        assert given == [1]


# --- records --------------------------------------------------------------------------------------


def invocation(captured: Capture) -> dict[str, Any]:
    return last_of(captured, "tool_invocation")


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize("door", ["call", "invoke"])
def test_a_record_has_what_a_body_was_given(name: str, door: str) -> None:
    make, change = CHANGES[name]

    def act(it: Any) -> None:
        change(it)

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(act, **FACTS)
        if door == "call":
            governed(make())
        else:
            governed.tool.invoke(it=make())
    record = invocation(captured)
    assert record["call_input_ref"] == record["permission_input_ref"]


def test_a_record_has_what_a_stream_was_given() -> None:
    def act(it: list[int]) -> Any:
        it.append(1)
        yield it

    with capture(policy=StaticEngine("allow")) as captured:
        list(captured.governor.govern(act, **FACTS)([0]))
    record = invocation(captured)
    assert record["call_input_ref"] == record["permission_input_ref"]


def test_a_record_has_what_a_tool_without_signature_was_given() -> None:
    schema = {"type": "object", "properties": {"it": {"type": "array"}}}

    def act(**arguments: Any) -> None:
        arguments["it"].append(1)

    with capture(policy=StaticEngine("allow")) as captured:
        captured.governor.govern(act, model_input_schema=schema, **FACTS).tool.invoke(it=[0])
    record = invocation(captured)
    assert record["call_input_ref"] == record["permission_input_ref"]


def test_arguments_that_cant_be_decided_are_no_permission_input() -> None:
    def act(it: Decimal) -> None:
        raise AssertionError("it is refused")

    with capture() as captured:
        captured.governor.govern(act, **FACTS).tool.invoke(it="1e400")
    record = invocation(captured)
    assert record["status"] == "denied"
    assert "permission_input_ref" not in record
