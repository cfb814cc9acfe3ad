"""A governed function is a descriptor as a plain one is, wherever it is put, and what it is bound
to pickles.
"""

from __future__ import annotations

import asyncio
import functools
import pickle
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agenttool_otel import ConfigurationError, Governor, ToolDenied
from agenttool_otel.testing import StaticEngine, capture

GOVERNOR = Governor(policy=StaticEngine("allow"))


def describe(receiver: Any, x: int, *, times: int = 1) -> str:
    """Name what it was called on; its first parameter has no special name."""
    name = receiver.__name__ if isinstance(receiver, type) else type(receiver).__name__
    return f"{name} {x * times}"


async def adescribe(self: Any, x: int) -> str:
    """The same, awaited."""
    return describe(self, x)


def items(self: Any, x: int) -> Iterator[str]:
    """The same, twice."""
    yield describe(self, x)
    yield describe(self, x)


async def aitems(self: Any, x: int) -> AsyncIterator[str]:
    """The same, twice, awaited."""
    yield describe(self, x)
    yield describe(self, x)


GOVERNED = GOVERNOR.govern(describe)


class Here:
    """Gets its methods afterwards."""


class Below(Here):
    """Inherits them."""


class WithMeta(type):
    """Its classes get the method."""


class Named:
    """Takes it under the name of a class body."""

    method = GOVERNED


class Counted:
    """Gets it by ``setattr``."""


class Task:
    """As Celery's: the function becomes ``run`` of a class made for it."""


Here.method = GOVERNED  # type: ignore[attr-defined]
WithMeta.method = GOVERNED  # type: ignore[attr-defined]
setattr(Counted, "method", GOVERNED)  # noqa: B010
Made = type("Made", (), {"method": GOVERNED, "__module__": __name__})
Bound = type("Bound", (Task,), {"run": GOVERNED, "__module__": __name__})


@pytest.mark.parametrize("cls", [Here, Below, Made, Named, Counted])
def test_a_function_on_a_class_is_bound_to_the_object(cls: Any) -> None:
    assert cls().method(2, times=3) == f"{cls.__name__} 6"
    assert cls.method(cls(), 2) == f"{cls.__name__} 2"


def test_every_other_way_to_bind_does_what_python_does() -> None:
    class Holder:
        of_class = classmethod(GOVERNED)
        static = staticmethod(GOVERNED)
        part = functools.partialmethod(GOVERNED, 3)

    holder = Holder()
    assert Bound().run(2) == "Bound 2"
    assert WithMeta("Instance", (), {}).method(2) == "Instance 2"  # type: ignore[attr-defined]
    assert holder.of_class(2) == Holder.of_class(2) == "Holder 2"
    assert Holder.static(holder, 2) == "Holder 2"
    assert holder.part() == "Holder 3"
    assert types.MethodType(GOVERNED, holder)(2) == "Holder 2"
    assert GOVERNED.__get__(holder, Holder)(2) == "Holder 2"
    holder.own = GOVERNED  # type: ignore[attr-defined]
    assert holder.own(holder, 2) == "Holder 2"  # type: ignore[attr-defined]


def test_each_kind_of_function_is_bound() -> None:
    async def collect(stream: Any) -> list[str]:
        return [item async for item in stream]

    cls = type("Kinds", (), {f.__name__: GOVERNOR.govern(f) for f in (adescribe, items, aitems)})
    made: Any = cls()
    assert asyncio.run(made.adescribe(2)) == "Kinds 2"
    assert list(made.items(2)) == asyncio.run(collect(made.aitems(2))) == ["Kinds 2"] * 2


def test_a_bound_function_is_decided_on_its_other_arguments() -> None:
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        cls = type("Denied", (), {"method": captured.governor.govern(describe)})
        made: Any = cls()
        with pytest.raises(ToolDenied):
            made.method(2)
        assert made.method.tool.invoke({"x": 2}).is_error
        assert [document["input"] for document in engine.documents] == [{"x": 2, "times": 1}] * 2


def test_facts_of_the_receiver_can_not_be_used_on_a_method() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        cls = type(
            "Facts",
            (),
            {"method": captured.governor.govern(describe, sensitive_fields=["receiver"])},
        )
        with pytest.raises(ConfigurationError, match="receiver"):
            cls().method(2)


class Stateful:
    """Methods that were governed in the class's body."""

    def __init__(self, start: int) -> None:
        self.start = start

    @GOVERNOR.govern
    def add(self, x: int) -> int:
        """Add."""
        return self.start + x

    @classmethod
    def plain_class(cls, x: int) -> int:
        """Not governed."""
        return x

    @GOVERNOR.govern
    @classmethod
    def of_class(cls, x: int) -> str:
        """Name the class."""
        return f"{cls.__name__} {x}"

    @GOVERNOR.govern
    @staticmethod
    def static(x: int) -> int:
        """Return it."""
        return x


@pytest.mark.parametrize(
    ("bound", "args", "expected"),
    [
        (Stateful(3).add, (2,), 5),
        (Stateful.of_class, (2,), "Stateful 2"),
        (Stateful(3).of_class, (2,), "Stateful 2"),
        (Stateful.static, (2,), 2),
        (Here().method, (2,), "Here 2"),  # type: ignore[attr-defined]
        (Made().method, (2,), "Made 2"),
        (Stateful.add, (Stateful(3), 2), 5),
        (Here.method, (Here(), 2), "Here 2"),  # type: ignore[attr-defined]
        (functools.partial(Stateful(3).add, 2), (), 5),
    ],
)
def test_bound_methods_pickle(bound: Any, args: tuple[Any, ...], expected: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(bound, protocol))(*args) == expected


def test_what_a_pickle_could_not_find_is_refused() -> None:
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(GOVERNED.__get__(3, int))
