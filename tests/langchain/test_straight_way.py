"""LangChain tools by the straight way and by the pipeline: nobody can see by which of them a call went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from langchain_shapes import SECRET, LangChainShape, langchain_shapes
from straight_shapes import SETTINGS
from two_ways import CALLS, Worlds

from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.straight.call import StraightCall
from samples import one_in

SHAPES = list(langchain_shapes())


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    with closing(Worlds(SETTINGS)) as worlds:
        yield worlds


def compare(worlds: Worlds, shape: LangChainShape, session: str) -> tuple[list[str], int]:
    """Return in what a shape differs by the two ways, and how many of its calls went straight."""
    context = {"actor": "agent:one", "tenant": "t", "roles": ["reader"], "session_id": session}
    return worlds.compare(shape, context)


@pytest.mark.parametrize(
    "number", one_in(4, range(len(SHAPES)), lambda number: str(SHAPES[number]))
)
def test_both_ways_leave_the_same(worlds: Worlds, number: int) -> None:
    found, _ = compare(worlds, SHAPES[number], session=f"s-{number}")
    assert not found, "\n".join(found[:20])


STRAIGHT = [
    LangChainShape(),
    LangChainShape(door="a tool call"),
    LangChainShape(form="with a coroutine", door="an awaited tool call"),
    LangChainShape(form="written", arguments="both"),
    LangChainShape(form="injected"),
    LangChainShape(form="by a JSON schema"),
    LangChainShape(tool="path", arguments="a path"),
    LangChainShape(body="raises a ToolException", form="with handled errors"),
    LangChainShape(settings="unsampled"),
    LangChainShape(settings="recorded"),
    LangChainShape(door="a config"),
]


@pytest.mark.parametrize("shape", STRAIGHT, ids=str)
def test_an_ordinary_call_goes_straight(worlds: Worlds, shape: LangChainShape) -> None:
    found, count = compare(worlds, shape, session=f"straight-{shape}")
    assert not found, "\n".join(found[:20])
    assert count == CALLS - 1


WALKED = [
    LangChainShape(form="with an artifact", body="gives a pair"),
    LangChainShape(arguments="a text"),
    LangChainShape(arguments="a list"),
    LangChainShape(door="its function"),
    LangChainShape(settings="hooks"),
    LangChainShape(tool="asked about"),
]


@pytest.mark.parametrize("shape", WALKED, ids=str)
def test_any_other_call_takes_the_pipeline(worlds: Worlds, shape: LangChainShape) -> None:
    found, count = compare(worlds, shape, session=f"walked-{shape}")
    assert (found, count) == ([], 0)


def test_an_injected_secret_stays_out_of_the_error(worlds: Worlds) -> None:
    shape = LangChainShape(form="injected", body="quotes what was injected")
    world = worlds.of("usual", straight=True)
    (*_, last) = world.observe(shape.make, {"actor": "agent:one", "session_id": "secret"})
    assert SECRET not in str(last["spans"])


@pytest.mark.parametrize(
    ("owner", "name"), [(StraightCall, "_record"), (CallSpan, "record_result")], ids=str
)
def test_a_seeded_difference_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(owner, name, nothing)
    with closing(Worlds(SETTINGS)) as worlds:
        found, count = compare(worlds, LangChainShape(), "s")
    assert found
    assert count
