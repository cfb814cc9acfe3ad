"""Which hooks run for a tool, in which order, and what can't be registered."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agenttool_otel import ConfigurationError
from agenttool_otel.hooks import (
    HookContext,
    Hooks,
    Message,
    PermissionResult,
    Progress,
    UpdatedInput,
)
from agenttool_otel.testing import StaticEngine, capture


def add(a: int, b: int = 1) -> int:
    return a + b


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [
        ({}, True),
        ({"tool": "add"}, True),
        ({"tool": "a*"}, True),
        ({"tool": "calc.add"}, True),
        ({"tool": "plus"}, True),
        ({"tool": ["x", "?dd"]}, True),
        ({"tool": "ADD"}, False),
        ({"tool": "addd"}, False),
        ({"namespace": "calc"}, True),
        ({"namespace": "ca[lx]c"}, True),
        ({"namespace": "other"}, False),
        ({"kind": "function"}, True),
        ({"kind": ["mcp_tool", "func*"]}, True),
        ({"kind": "shell_command"}, False),
        ({"tool": "add", "namespace": "calc", "kind": "function"}, True),
        ({"tool": "add", "namespace": "calc", "kind": "mcp_tool"}, False),
    ],
)
def test_a_hook_runs_for_tools_that_all_its_patterns_match(
    matcher: dict[str, Any], runs: bool
) -> None:
    hooks, seen = Hooks(), []
    hooks.on("pre_tool_use", **matcher)(lambda ctx: seen.append(ctx.tool_id))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(add, namespace="calc", tool_kind="function", aliases=["plus"])(1)
    assert seen == (["calc.add"] if runs else [])


def test_hooks_run_by_order_and_then_by_registration() -> None:
    hooks, seen = Hooks(), []

    def named(name: str) -> Callable[[HookContext], None]:
        return lambda ctx: seen.append(name)

    for name, order in (("c", 5), ("d", 5), ("a", -1), ("b", 0), ("e", 5.5)):
        hooks.add(named(name), "pre_tool_use", order=order)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(add)(1)
    assert seen == ["a", "b", "c", "d", "e"]


def test_an_added_or_removed_hook_counts_from_the_next_call() -> None:
    hooks, seen = Hooks(), []
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        tool = captured.governor.govern(add)
        tool(1)
        hook = hooks.add(lambda ctx: seen.append("ran"), "pre_tool_use", hook_id="h")
        tool(1)
        assert seen == ["ran"]
        assert hooks.remove(hook) is True
        assert hooks.remove("h") is False
        tool(1)
        assert seen == ["ran"]
        assert len(hooks) == 0


def test_the_decorated_function_stays_what_it_is() -> None:
    hooks = Hooks()

    @hooks.on("post_tool_use")
    @hooks.on("pre_tool_use")
    def both(ctx: HookContext) -> None:
        """Do."""

    assert both.__name__ == "both"
    assert [hook.function for hook in hooks] == [both, both]
    assert len({hook.hook_id for hook in hooks}) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"event": "before_tool"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
        {"timeout": "5"},
        {"timeout": True},
        {"order": float("nan")},
        {"order": "first"},
        {"on_failure": "ignore"},
        {"event": "post_tool_use", "on_failure": "block"},
        {"event": "result_persistence", "on_failure": "block"},
        {"event": "pre_tool_use", "owns_output": True},
        {"tool": ""},
        {"tool": []},
        {"tool": [1]},
        {"namespace": ""},
        {"kind": [""]},
    ],
)
def test_a_registration_that_can_not_be_meant_is_refused(options: dict[str, Any]) -> None:
    hooks = Hooks()
    event = options.pop("event", "pre_tool_use")
    with pytest.raises(ConfigurationError):
        hooks.add(lambda ctx: None, event, **options)
    assert len(hooks) == 0


def test_an_id_names_one_hook() -> None:
    hooks = Hooks()
    hooks.add(print, "pre_tool_use", hook_id="one")
    with pytest.raises(ConfigurationError, match="'one'"):
        hooks.add(print, "post_tool_use", hook_id="one")
    with pytest.raises(ConfigurationError, match="function"):
        hooks.add("no function", "pre_tool_use")  # type: ignore[arg-type]


async def afunction(ctx: HookContext) -> None: ...


async def agenerator(ctx: HookContext) -> Any:
    yield Message("m")


class Callable_:
    async def __call__(self, ctx: HookContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (afunction, True),
        (agenerator, True),
        (Callable_(), True),
        (Callable_().__call__, True),
        (functools.partial(afunction), True),
        (print, False),
        (functools.partial(print), False),
    ],
)
def test_asynchronous_hooks_are_known_as_such_in_every_form(function: Any, is_async: bool) -> None:
    assert Hooks().add(function, "pre_tool_use").is_async is is_async


def test_what_is_no_registry_is_refused_by_the_governor() -> None:
    with (
        pytest.raises(ConfigurationError, match="list"),
        capture(policy=StaticEngine("allow"), hooks=[print]),
    ):
        pass


def test_registering_during_calls_loses_no_hook_nor_call() -> None:
    hooks, errors = Hooks(), []
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        tool = captured.governor.govern(add)
        stop = threading.Event()

        def calls() -> None:
            while not stop.is_set():
                try:
                    assert tool(1) == 2
                except Exception as error:
                    errors.append(error)

        worker = threading.Thread(target=calls)
        worker.start()
        for number in range(200):
            hooks.add(
                lambda ctx: None, "permission_decision", hook_id=f"h{number}", tool=f"none{number}"
            )
        stop.set()
        worker.join()
        seen = []
        hooks.add(lambda ctx: seen.append(1), "pre_tool_use")
        tool(1)
    assert errors == []
    assert len(hooks) == 201
    assert seen == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: PermissionResult("maybe"),
        lambda: PermissionResult("ALLOW"),
        lambda: PermissionResult(None),  # type: ignore[arg-type]
        lambda: PermissionResult("deny", message=b"no"),  # type: ignore[arg-type]
        lambda: UpdatedInput(["a"]),  # type: ignore[arg-type]
        lambda: UpdatedInput({1: "a"}),  # type: ignore[dict-item]
        lambda: Progress(percent=101),
        lambda: Progress(percent=float("nan")),
        lambda: Progress(percent=True),
        lambda: Message(None),  # type: ignore[arg-type]
    ],
)
def test_an_output_that_means_nothing_can_not_be_made(make: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        make()
