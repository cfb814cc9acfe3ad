"""Numbers reach a rule as numbers, whatever their class, by every door; what no number of JSON can
hold is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import enum
import json
import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pandas
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.tools import tool

from agenttool_otel import GovernedOutcome, agent_context
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.testing import capture
from agenttool_otel.values.numbers import NoJsonNumber, json_number
from agenttool_otel.values.policy_value import to_policy_value

FACTS: dict[str, Any] = {
    "read_only": True,
    "access_kinds": [],
    "write_effects": ["none"],
    "risk_level": "low",
}
RULE = """package agenttool.custom

deny contains {"rule": "custom.negative", "message": "no negative amounts"} if {
	some value in input.input.amount
	is_number(value)
	value < 0
}

deny contains {"rule": "custom.negative", "message": "no negative amounts"} if input.input.amount.a.b < 0

deny contains {"rule": "custom.negative", "message": "no negative amounts"} if input.input.amount < 0

deny contains {"rule": "custom.limit", "message": "too much"} if {
	is_number(input.input.amount)
	input.input.amount > 100
}

deny contains {"rule": "custom.limit", "message": "too much"} if {
	input.tool.name == "withdraw"
	input.input.amount > input.resources.balance
}
"""


class Price(enum.Enum):
    REFUND = Decimal("-5")


class Step(enum.IntEnum):
    BACK = -5


class Money(Decimal):
    """A subclass, as libraries of money have it."""


@dataclasses.dataclass
class Line:
    price: Any


class Item(pydantic.BaseModel):
    price: Decimal


NEGATIVE = {
    "decimal": Decimal("-5"),
    "decimal with digits": Decimal("-0.00000000000000000000000001"),
    "decimal below the smallest double": Decimal("-1e-999"),
    "subclass of decimal": Money("-5"),
    "fraction": Fraction(-1, 3),
    "enum of a decimal": Price.REFUND,
    "int enum": Step.BACK,
    "time span": timedelta(seconds=-5),
    "numpy float32": numpy.float32(-5),
    "numpy int8": numpy.int8(-5),
    "numpy longdouble": numpy.longdouble("-0.1"),
    "numpy time span": numpy.timedelta64(-5, "ns"),
    "numpy array of one": numpy.array(-5),
    "pandas time span": pandas.Timedelta(seconds=-5),
}
NESTED = {
    "list": [1, Decimal("-5")],
    "dict": {"a": {"b": Fraction(-1, 2)}},
    "tuple": (Decimal("-5"),),
    "set": frozenset({Decimal("-5")}),
    "dataclass": Line(numpy.float32(-5)),
    "model": Item(price=Decimal("-5")),
}
NO_NUMBER = {
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "decimal inf": Decimal("-Infinity"),
    "decimal nan": Decimal("NaN"),
    "signalling nan": Decimal("sNaN"),
    "numpy nan": numpy.float32("nan"),
    "numpy -inf": numpy.float16("-inf"),
    "numpy longdouble -inf": numpy.longdouble("-inf"),
    "no time span": numpy.timedelta64("NaT"),
    "pandas NaT": pandas.NaT,
    "pandas NA": pandas.NA,
    "too large": Decimal("-1e400"),
    "much too large": Decimal("-1e999999"),
    "large int": -(10**400),
    "large fraction": Fraction(-(10**400), 3),
}


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.rego").write_text(RULE, encoding="utf-8")
    with capture(extension=str(folder)) as captured:

        def pay(amount: Any) -> Any:
            """Pay."""
            return amount

        def charge(amount: Decimal) -> str:
            """Pay an exact amount."""
            return str(amount)

        def withdraw(amount: Any) -> str:
            """Withdraw."""
            return "paid"

        govern = captured.governor.govern
        yield {
            "pay": govern(pay, **FACTS),
            "charge": govern(charge, **FACTS),
            "tool": govern(tool("invoice")(charge), **FACTS),
            "withdraw": govern(withdraw, **FACTS),
        }


def outcome(call: Any, *args: Any, **more: Any) -> str:
    try:
        call(*args, **more)
    except GovernedOutcome as refused:
        return str(refused)
    return "paid"


@pytest.mark.parametrize("value", NEGATIVE.values(), ids=NEGATIVE.keys())
def test_a_negative_number_of_any_class_is_below_zero(pay: Any, value: Any) -> None:
    assert "no negative amounts" in outcome(pay["pay"], value)


@pytest.mark.parametrize("value", NESTED.values(), ids=NESTED.keys())
def test_a_negative_number_is_found_inside_other_values(pay: Any, value: Any) -> None:
    assert "no negative amounts" in outcome(pay["pay"], value)


@pytest.mark.parametrize("value", NO_NUMBER.values(), ids=NO_NUMBER.keys())
def test_what_is_no_json_number_is_refused_by_argument(pay: Any, value: Any) -> None:
    for amount in (value, [{"a": value}]):
        told = outcome(pay["pay"], amount)
        assert "the argument amount" in told
        assert "a number that JSON lacks" in told


@pytest.mark.parametrize("amount", ["-5", -5, -5.0, "-0.00000000000000000001"])
def test_text_that_the_hint_reads_as_a_number_is_one(pay: Any, amount: Any) -> None:
    assert str(pay["charge"].tool.invoke(amount=amount).status) == "denied"
    message = pay["tool"].invoke(
        {"type": "tool_call", "name": "invoice", "id": "1", "args": {"amount": amount}}
    )
    assert message.status == "error"
    assert "no negative amounts" in message.content


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_text_that_is_read_as_no_number_is_refused(pay: Any, amount: str) -> None:
    assert pay["charge"].tool.invoke(amount=amount).status != "succeeded"
    # LangChain reads it first, and may refuse it itself
    with contextlib.suppress(pydantic.ValidationError):
        message = pay["tool"].invoke(
            {"type": "tool_call", "name": "invoice", "id": "1", "args": {"amount": amount}}
        )
        assert message.status == "error"


def test_a_little_more_than_the_limit_is_more(pay: Any) -> None:
    assert outcome(pay["charge"], Decimal(100)) == "paid"
    assert "too much" in outcome(pay["charge"], Decimal("100.00000000000000000001"))
    assert "too much" in outcome(pay["pay"], Fraction(10**30 + 1, 10**28))


def test_the_executed_number_is_the_one_that_was_given(pay: Any) -> None:
    given = Decimal("12.500000000000000000000000001")
    assert pay["pay"](given) == given
    assert pay["charge"](given) == str(given)
    assert pay["charge"].tool.invoke(amount=given).value == str(given)
    assert pay["pay"](Fraction(1, 3)) == Fraction(1, 3)


def test_numbers_of_the_application_are_numbers_too(pay: Any) -> None:
    with agent_context(actor="agent:a", session_id="s", resources={"balance": Decimal("10.50")}):
        assert "too much" in outcome(pay["withdraw"], 11)
        assert outcome(pay["withdraw"], 10) == "paid"


def test_resources_without_a_json_number_are_refused() -> None:
    with (
        pytest.raises(ConfigurationError),
        agent_context(actor="agent:a", resources={"limit": Decimal("NaN")}),
    ):
        pass


def test_a_programs_decimal_context_changes_nothing() -> None:
    with decimal.localcontext() as context:
        context.prec = 2
        context.traps[decimal.Inexact] = context.traps[decimal.Rounded] = True
        context.traps[decimal.FloatOperation] = True
        assert json_number(Decimal("123.456")) == 123.456
        assert json_number(Decimal("1234567")) == 1234567


def written(number: float) -> Fraction:
    """Return the number that a JSON text is."""
    return Fraction(repr(number))


decimals = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**300), max_value=10**300
)
exact = st.one_of(decimals, st.fractions(), st.builds(Fraction, decimals))
limits = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.integers(-(10**15) + 1, 10**15 - 1),
    st.integers(-40, 40),
)


@given(exact, limits)
@example(Decimal("100.00000000000000000001"), Decimal(100))
@example(Decimal("0.1000000000000000055"), Decimal("0.1"))
@example(Fraction(1, 3), Decimal("0.333333333333333"))
@example(Fraction(-1, 10**500), Decimal(0))
@example(Decimal("1e-999"), Decimal(0))
def test_every_comparison_is_that_of_the_number(number: Decimal | Fraction, limit: Decimal) -> None:
    shown, wanted, there = written(json_number(number)), Fraction(number), Fraction(limit)
    assert (shown < there, shown == there, shown > there) == (
        wanted < there,
        wanted == there,
        wanted > there,
    )


@given(exact, st.floats(-0.5, 0.5))
def test_near_numbers_keep_their_side_of_a_limit(number: Decimal | Fraction, part: float) -> None:
    limit = Decimal(f"{float(number):.14e}")
    for near in (Fraction(limit) * (1 + Fraction(part) / 10**18), Fraction(limit)):
        try:
            shown = written(json_number(near))
        except NoJsonNumber:
            continue
        if abs(near) > Fraction(1, 10**290):
            assert (shown < Fraction(limit), shown > Fraction(limit)) == (
                near < limit,
                near > limit,
            )


@given(st.one_of(st.integers(-(2**64), 2**64), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_of_json_stay_what_they_are(number: float) -> None:
    assert json_number(number) == number
    assert written(json_number(Decimal(repr(number)))) == written(number)
    assert to_policy_value({"a": [number, (number,)]}) == {"a": [number, [number]]}


@given(exact)
def test_what_is_shown_is_read_back_as_itself(number: Decimal | Fraction) -> None:
    shown = json_number(number)
    assert json.loads(json.dumps(shown)) == shown
    assert written(json_number(Decimal(repr(shown)))) == written(shown)
