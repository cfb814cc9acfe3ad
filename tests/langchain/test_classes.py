"""Tool classes and objects that don't stay as they were governed, or go their own way to
their body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, Tool

from agenttool_otel import ConfigurationError, ToolDenied, configure
from agenttool_otel.call.runtime import replace_default
from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
from agenttool_otel.testing import StaticEngine, capture


class Plain(BaseTool):
    name: str = "plain"
    description: str = "An ordinary tool."

    def _run(self, text: str) -> str:
        return f"ran {text}"


class OwnInvoke(Plain):
    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        return "ran by itself"


class OwnRun(Plain):
    def run(self, *args: Any, **kwargs: Any) -> Any:
        return "ran by itself"


class OwnArun(Plain):
    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        return "ran by itself"


class OwnBatch(Plain):
    def batch(self, *args: Any, **kwargs: Any) -> Any:
        return ["ran by itself"]


OWN = [OwnInvoke, OwnRun, OwnArun, OwnBatch]


def never(text: str) -> str:
    """Never runs."""
    raise AssertionError("ran")


def echo(text: str) -> str:
    """Echo."""
    return text + "!"


async def anever(text: str) -> str:
    """Never runs."""
    raise AssertionError("ran")


@pytest.mark.parametrize("late", ["model_copy", "assigned"])
@pytest.mark.parametrize("method", ["ainvoke", "arun"])
@pytest.mark.parametrize(
    "made",
    [StructuredTool.from_function(never), Tool(name="never", func=never, description="Never.")],
)
def test_a_coroutine_that_comes_after_the_governing_is_governed(
    made: BaseTool, method: str, late: str
) -> None:
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        governed: Any = captured.governor.govern(made)
        if late == "model_copy":
            governed = governed.model_copy(update={"coroutine": anever})
        else:
            governed.coroutine = anever
        with pytest.raises(ToolDenied):
            asyncio.run(getattr(governed, method)({"text": "a"}))
        assert len(engine.documents) == 1


def test_a_plain_function_awaited_is_decided_once() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(StructuredTool.from_function(echo))
        assert asyncio.run(governed.arun({"text": "a"})) == "a!"
        assert len(engine.documents) == len(captured.spans) == 1


def test_an_asynchronous_body_of_a_subclass_is_decided() -> None:
    class Bypass(StructuredTool):
        async def _arun(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("ran")

    with capture(policy=StaticEngine("deny")) as captured:
        governed = captured.governor.govern(Bypass.from_function(never))
        with pytest.raises(ToolDenied):
            asyncio.run(governed.arun({"text": "a"}))


@pytest.mark.parametrize("made", OWN)
def test_a_class_that_replaces_outer_methods_is_refused(made: type[BaseTool]) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="replaces"),
    ):
        captured.governor.govern(made())


def test_subclasses_of_governed_classes_have_no_own_body() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        governed = type(captured.governor.govern(Plain()))
        with pytest.raises(ConfigurationError, match="is governed"):

            class Sub(governed):  # type: ignore[valid-type,misc]
                def _run(self, text: str) -> str:
                    return "ran"


@pytest.fixture
def instrumented() -> Iterator[StaticEngine]:
    engine, old, instrumentor = StaticEngine("deny"), replace_default(None), AgentToolInstrumentor()
    configure(policy=engine)
    instrumentor.instrument(facts={})
    try:
        yield engine
    finally:
        instrumentor.uninstrument()
        replace_default(old)


CALLS = {
    OwnInvoke: lambda made: made.invoke({"text": "a"}),
    OwnRun: lambda made: made.invoke({"text": "a"}),
    OwnArun: lambda made: asyncio.run(made.ainvoke({"text": "a"})),
    OwnBatch: lambda made: made.batch([{"text": "a"}]),
}


@pytest.mark.parametrize("made", OWN)
def test_such_a_class_does_not_run_in_an_instrumented_program(
    instrumented: StaticEngine, made: type[BaseTool]
) -> None:
    with pytest.raises(ToolDenied, match="replaces"):
        CALLS[made](made())

    class Later(made):  # type: ignore[valid-type,misc]
        invoke = made.invoke

    with pytest.raises(ToolDenied, match="replaces"):
        CALLS[made](Later())


def test_a_body_called_first_is_governed_when_instrumented(instrumented: StaticEngine) -> None:
    class Later(Plain):
        def _run(self, text: str) -> str:
            return super()._run(text)

    for made in (Plain(), Later(), StructuredTool.from_function(never)):
        more = {} if isinstance(made, Plain) else {"config": {}}
        with pytest.raises(ToolDenied):
            made._run(text="a", **more)
    with pytest.raises(ToolDenied):
        asyncio.run(StructuredTool.from_function(coroutine=anever)._arun(text="a", config={}))
    assert len(instrumented.documents) == 4


def methods() -> list[dict[str, int]]:
    classes = (BaseTool, StructuredTool, Plain, OwnRun)
    return [{n: id(v) for n, v in cls.__dict__.items() if callable(v)} for cls in classes]


def test_classes_of_an_instrumented_program_are_released() -> None:
    before = methods()
    instrumentor = AgentToolInstrumentor()
    old = replace_default(None)
    try:
        configure(policy=StaticEngine("deny"))
        instrumentor.instrument(facts={})
        assert before != methods()
    finally:
        instrumentor.uninstrument()
        replace_default(old)
    assert before == methods()
    assert Plain().invoke({"text": "a"}) == "ran a"
    assert OwnRun().invoke({"text": "a"}) == "ran by itself"

    class Later(OwnRun):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            return "later"

    assert Later().invoke({"text": "a"}) == "later"
