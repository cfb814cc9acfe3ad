"""Shapes of tools, ways to call them and ways to guard them: each cell is held, or refused with a
text.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import BaseModel

from agenttool_otel import ConfigurationError, configure, govern
from agenttool_otel.call.runtime import replace_default
from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
from agenttool_otel.testing import StaticEngine

ran: list[str] = []


def work(text: str) -> str:
    """Do the work."""
    ran.append(text)
    return "ran"


async def awork(text: str) -> str:
    """Do the work."""
    return work(text)


class Arguments(BaseModel):
    text: str


class Plain(BaseTool):
    name: str = "work"
    description: str = "Work."

    def _run(self, text: str) -> str:
        return work(text)


class Both(Plain):
    async def _arun(self, text: str) -> str:
        return work(text)


class Inherited(Both):
    pass


class Mixin:
    """No tool."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return work(**input)


class RunMixin:
    """No tool."""

    def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return work(**tool_input)

    async def arun(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return work(**tool_input)


class BodyMixin:
    """No tool."""

    def _run(self, text: str) -> str:
        return work(text)


class Mixed(Mixin, Plain):
    pass


class RunMixed(RunMixin, Plain):
    pass


class BodyMixed(BodyMixin, BaseTool):
    name: str = "work"
    description: str = "Work."


class Callable_(Plain):
    def __call__(self, text: str) -> str:
        return work(text)


class Getting(Plain):
    def __getattribute__(self, name: str) -> Any:
        if name in ("invoke", "run", "_run"):
            return lambda *args, **kwargs: work("a")
        return super().__getattribute__(name)


def _made_late() -> BaseTool:
    class Late(Plain):
        pass

    made = Late()
    Late.invoke = Mixin.invoke  # type: ignore[method-assign, assignment]
    Late.run = RunMixin.run  # type: ignore[method-assign, assignment]
    return made


def _set_before() -> BaseTool:
    class Early(Plain):
        pass

    setattr(Early, "invoke", Mixin.invoke)  # noqa: B010
    return Early()


SHAPES: dict[str, Callable[[], BaseTool]] = {
    "function": lambda: StructuredTool.from_function(work, name="work"),
    "coroutine": lambda: StructuredTool.from_function(coroutine=awork, name="work"),
    "both functions": lambda: StructuredTool.from_function(work, awork, name="work"),
    "partial": lambda: StructuredTool.from_function(
        functools.partial(work), name="work", description="Work.", args_schema=Arguments
    ),
    "one input": lambda: Tool(name="work", func=work, description="Work."),
    "class": Plain,
    "asynchronous class": Both,
    "subclass": Inherited,
    "mixin with a body": BodyMixed,
    "mixin with invoke": Mixed,
    "mixin with run": RunMixed,
    "own call": Callable_,
    "own lookup": Getting,
    "method set before": _set_before,
    "method set later": _made_late,
    "model_copy": lambda: StructuredTool.from_function(work, name="work").model_copy(),
    "deepcopy": lambda: copy.deepcopy(Plain()),
    "model_construct": lambda: Plain.model_construct(name="work", description="Work."),
    "pickled": lambda: pickle.loads(
        pickle.dumps(StructuredTool.from_function(work, name="work", args_schema=Arguments))
    ),
}
REFUSED_BY_GOVERN = {"mixin with invoke", "mixin with run", "method set before", "method set later"}
"""Classes with outer methods of their own: ``govern`` refuses them; an instrumentor refuses their
calls.
"""

TOOL_CALL = {"type": "tool_call", "name": "work", "args": {"text": "a"}, "id": "1"}
INPUT = {"text": "a"}


def _function(tool: Any) -> Any:
    return getattr(tool, "func", None) or tool.invoke


def _coroutine(tool: Any) -> Any:
    return getattr(tool, "coroutine", None) or tool.ainvoke


def _with(function: Any, *names: str) -> Any:
    """Return what to give a tool's function, or a method in its place."""
    return INPUT if getattr(function, "__name__", "") in names else "a"


async def _collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


WAYS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda tool: tool.invoke(INPUT),
    "invoke of a tool call": lambda tool: tool.invoke(dict(TOOL_CALL)),
    "ainvoke": lambda tool: asyncio.run(tool.ainvoke(INPUT)),
    "run": lambda tool: tool.run(dict(INPUT)),
    "arun": lambda tool: asyncio.run(tool.arun(dict(INPUT))),
    "batch": lambda tool: tool.batch([INPUT]),
    "abatch": lambda tool: asyncio.run(tool.abatch([INPUT])),
    "stream": lambda tool: list(tool.stream(INPUT)),
    "astream": lambda tool: asyncio.run(_collect(tool.astream(INPUT))),
    "transform": lambda tool: list(tool.transform(iter([INPUT]))),
    "bound method": lambda tool: (lambda method: method(INPUT))(tool.invoke),
    "pipe": lambda tool: (RunnableLambda(lambda text: {"text": text}) | tool).invoke("a"),
    "with_retry": lambda tool: tool.with_retry(stop_after_attempt=1).invoke(INPUT),
    "with_config": lambda tool: tool.with_config(tags=["x"]).invoke(INPUT),
    "model_copy": lambda tool: tool.model_copy().invoke(INPUT),
    "function": lambda tool: (lambda f: f(_with(f, "invoke")))(_function(tool)),
    "RunnableLambda of the function": lambda tool: RunnableLambda(_function(tool)).invoke(
        _with(_function(tool), "invoke")
    ),
    "coroutine": lambda tool: (lambda f: asyncio.run(f(_with(f, "ainvoke"))))(_coroutine(tool)),
    "body": lambda tool: tool._run("a", config={}) if hasattr(tool, "func") else tool._run("a"),
    "call": lambda tool: tool("a"),
}


def _by_govern(make: Callable[[], BaseTool]) -> BaseTool:
    return govern(make())


def _by_instrumentor(make: Callable[[], BaseTool]) -> BaseTool:
    AgentToolInstrumentor().instrument(facts={})
    return make()


def _by_later_instrumentor(make: Callable[[], BaseTool]) -> BaseTool:
    made = make()
    AgentToolInstrumentor().instrument(facts={})
    return made


def _by_both(make: Callable[[], BaseTool]) -> BaseTool:
    AgentToolInstrumentor().instrument(facts={})
    return govern(make())


# each of the others takes as long as the first
GUARDS = [
    _by_govern,
    pytest.param(_by_instrumentor, marks=pytest.mark.slow),
    pytest.param(_by_later_instrumentor, marks=pytest.mark.slow),
    pytest.param(_by_both, marks=pytest.mark.slow),
]


@pytest.fixture
def engine() -> Iterator[StaticEngine]:
    engine, old = StaticEngine("deny"), replace_default(None)
    configure(policy=engine)
    ran.clear()
    yield engine
    if AgentToolInstrumentor().is_instrumented_by_opentelemetry:
        AgentToolInstrumentor().uninstrument()
    replace_default(old)


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_way_leads_to_a_body_that_is_denied(
    engine: StaticEngine, shape: str, guard: Callable[[Callable[[], BaseTool]], BaseTool]
) -> None:
    if guard in (_by_govern, _by_both) and shape in REFUSED_BY_GOVERN:
        with pytest.raises(ConfigurationError, match="replaces"):
            guard(SHAPES[shape])
        return
    tool = guard(SHAPES[shape])
    for way, call in WAYS.items():
        with suppress(Exception):
            call(tool)
        assert ran == [], way


@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - REFUSED_BY_GOVERN))
@pytest.mark.parametrize("guard", GUARDS)
def test_an_allowed_call_is_decided_and_run_once(
    engine: StaticEngine, shape: str, guard: Callable[[Callable[[], BaseTool]], BaseTool]
) -> None:
    tool = guard(SHAPES[shape])
    allowing = StaticEngine("allow")
    configure(policy=allowing)
    assert asyncio.run(tool.ainvoke(INPUT)) == "ran"
    assert ran == ["a"]
    assert len(allowing.documents) == 1


@pytest.mark.parametrize("guard", [_by_instrumentor, _by_later_instrumentor])
@pytest.mark.parametrize("shape", sorted(REFUSED_BY_GOVERN))
def test_a_refused_class_is_refused_with_a_text(
    engine: StaticEngine, shape: str, guard: Any
) -> None:
    tool = guard(SHAPES[shape])
    if shape == "method set later" and guard is _by_instrumentor:
        assert "denied" in str(_error(tool)) or "replaces" in str(_error(tool))
        return
    assert "replaces" in str(_error(tool))


def _error(tool: Any) -> Exception | None:
    try:
        tool.invoke(INPUT)
    except Exception as error:
        return error
    return None


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Methods:
    @govern
    def work(self, text: str) -> str:
        """Do the work."""
        return work(text)


NESTED: dict[str, Callable[[], BaseTool]] = {
    "governed function": lambda: StructuredTool.from_function(govern(work), name="work"),
    "wrapper of it": lambda: StructuredTool.from_function(_wrapped(govern(work)), name="work"),
    "partial of it": lambda: StructuredTool.from_function(
        functools.partial(govern(work)), name="work", description="Work.", args_schema=Arguments
    ),
    "governed method": lambda: StructuredTool.from_function(Methods().work, name="work"),
    "governed coroutine": lambda: StructuredTool.from_function(
        coroutine=govern(awork), name="work"
    ),
    "governed body of one input": lambda: Tool(name="work", func=govern(work), description="Work."),
}


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("shape", NESTED)
def test_a_governed_function_in_a_tool_is_one_call(
    engine: StaticEngine, shape: str, guard: Any
) -> None:
    tool = guard(NESTED[shape])
    with suppress(Exception):
        asyncio.run(tool.ainvoke(INPUT))
    assert (ran, len(engine.documents)) == ([], 1)
    allowing = StaticEngine("allow")
    configure(policy=allowing)
    assert asyncio.run(tool.ainvoke(INPUT)) == "ran"
    assert (ran, len(allowing.documents)) == (["a"], 1)


def test_a_second_call_inside_a_tool_is_a_call_of_its_own(engine: StaticEngine) -> None:
    inner = govern(work)

    def twice(text: str) -> str:
        """Call it with another text, and again."""
        inner("other")
        return inner(text) + inner(text)

    twice.__wrapped__ = inner  # type: ignore[attr-defined]
    tool = govern(StructuredTool.from_function(twice, name="twice"))
    allowing = StaticEngine("allow")
    configure(policy=allowing)
    tool.invoke(INPUT)
    assert ran == ["other", "a", "a"]
    assert len(allowing.documents) == 3
