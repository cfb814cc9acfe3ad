"""An answer reaches the call whose question it answers, however deep it is, and no other call takes
it.

Each cell is one way to nest agents, to govern them and to answer. One answer is enough in each of
them.
"""

from __future__ import annotations

import logging
from itertools import product
from typing import Any

import pytest
from graph_agents import approve, reject
from langchain_core.tools import BaseTool
from nested_agents import GUARDS, INNER, Nest, guarded_by, made_tool

from agenttool_otel.names import ApprovalStatus
from samples import one_in

DEPTHS = [0, 1, 2, 3]
APIS = ["graph", "functional"]
WAYS = [False, True]
CELLS = [
    pytest.param(
        depth,
        api,
        guard,
        by_id,
        is_async,
        id=f"{depth}-{api}-{guard}-{_id}-{_async}",
        marks=pytest.mark.slow if depth > 1 or (is_async and depth) else (),
    )
    for depth, api, guard, (by_id, _id), (is_async, _async) in product(
        DEPTHS,
        APIS,
        GUARDS,
        [(False, "plain"), (True, "by_id")],
        [(False, "sync"), (True, "async")],
    )
]


def paying(*, is_async: bool) -> tuple[BaseTool, list[str]]:
    """Make the tool that asks, and the list of what it ran with."""
    ran: list[str] = []

    def pay(text: str) -> str:
        ran.append(text)
        return f"paid {text}"

    async def apay(text: str) -> str:
        return pay(text)

    return made_tool(INNER, apay if is_async else pay, is_async=is_async), ran


@pytest.mark.parametrize(("depth", "api", "guard", "by_id", "is_async"), CELLS)
def test_one_approval_is_enough(
    depth: int, api: str, guard: str, by_id: bool, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tool, ran = paying(is_async=is_async)
    with guarded_by(guard) as captured:
        nest = Nest(
            captured,
            guard,
            [tool],
            [(INNER, {"text": "x"})],
            depth=depth,
            api=api,
            is_async=is_async,
        )
        [asked] = nest.start()
        assert ran == []
        with caplog.at_level(logging.WARNING, "agenttool_otel"):
            assert nest.answer(approve(), asked if by_id else None) == []
        assert ran == ["x"]
        request = captured.governor.approvals.store.get(asked.value["request_id"])
        assert (request.status, request.answered_by) == (ApprovalStatus.CONSUMED, "user:ada")
        assert caplog.messages == []


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("depth", [1, 3])
def test_one_rejection_is_enough(depth: int, api: str, guard: str) -> None:
    tool, ran = paying(is_async=False)
    with guarded_by(guard) as captured:
        nest = Nest(captured, guard, [tool], [(INNER, {"text": "x"})], depth=depth, api=api)
        [asked] = nest.start()
        if api == "functional" and guard != "middleware":
            with pytest.raises(PermissionError):
                nest.answer(reject())
        else:
            assert nest.answer(reject()) == []
        assert ran == []
        request = captured.governor.approvals.store.get(asked.value["request_id"])
        assert request.status is ApprovalStatus.REJECTED


@pytest.mark.parametrize("is_async", WAYS)
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("depth", one_in(2, [0, 2, 1]))
def test_parallel_questions_get_their_own_answers(
    depth: int, api: str, guard: str, is_async: bool
) -> None:
    tool, ran = paying(is_async=is_async)
    calls: list[Any] = [(INNER, {"text": name}) for name in ("a", "b", "c")]
    with guarded_by(guard) as captured:
        nest = Nest(captured, guard, [tool], calls, depth=depth, api=api, is_async=is_async)
        asked = nest.start()
        while asked:  # LangGraph shows questions of parallel @tasks one after the other
            question, before = asked[-1], list(ran)
            asked = nest.answer(approve(), question)
            assert ran == [*before, question.value["args"]["text"]]
        assert sorted(ran) == ["a", "b", "c"]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("api", APIS)
def test_an_answer_is_not_used_for_the_next_question(api: str, guard: str) -> None:
    tool, ran = paying(is_async=False)
    with guarded_by(guard) as captured:
        nest = Nest(captured, guard, [tool], [(INNER, {"text": "a"})], depth=2, api=api)
        nest.start()
        again = nest.answer({"type": "no answer at all"})
        assert len(again) == 1
        assert [question.value["request_id"] for question in nest.nudge()] == [
            again[0].value["request_id"]
        ]
        assert ran == []
        assert nest.answer(approve()) == []
        assert ran == ["a"]
