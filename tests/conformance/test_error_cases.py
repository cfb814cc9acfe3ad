"""Requirements of "Errors and retries": each case has a class and guidance of its own."""

from __future__ import annotations

import io
import signal
import subprocess
import time
import urllib.error
from collections.abc import Callable
from email.message import Message
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, BatchCall, CancelState, SchedulerPolicy, current_call
from agenttool_otel.errors import PersistenceError
from agenttool_otel.hooks import Hooks, PermissionResult
from agenttool_otel.records import ToolError
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision
from function_engine import FunctionEngine

CASES: dict[str, Callable[[], ToolError]] = {}
"""By the name of a case what makes its error."""

Case = Callable[[], ToolError]


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def echo(text: str) -> str:
    return text


def raising(error: Exception) -> Callable[[str], str]:
    def act(text: str) -> str:
        raise error

    return act


def error_of(
    body: Callable[..., Any] = echo,
    *,
    policy: Any = "allow",
    world: dict[str, Any] | None = None,
    arguments: dict[str, Any] | None = None,
    **facts: Any,
) -> ToolError:
    """Call a tool, and return the error of its result."""
    engine = policy if hasattr(policy, "evaluate") else StaticEngine(policy)
    with capture(policy=engine, **(world or {})) as captured:
        act = captured.governor.govern(body, name="act", **facts)
        error = act.tool.invoke(**(arguments or {"text": "a"})).error
        assert error is not None
        return error


def fail(*arguments: Any) -> Any:
    raise PersistenceError("broken")


# --- before the body ------------------------------------------------------------------------------


@case
def unknown_tool() -> ToolError:
    with capture(policy=StaticEngine("allow")) as captured:
        [result] = captured.governor.batch([BatchCall("nobody", {})])
        assert result.error is not None
        return result.error


@case
def disabled() -> ToolError:
    return error_of(lifecycle="disabled")


@case
def not_set_up() -> ToolError:
    return error_of(lifecycle="requires_setup")


@case
def deferred() -> ToolError:
    return error_of(lifecycle="deferred")


@case
def another_type() -> ToolError:
    return error_of(arguments={"text": 5})


@case
def refused_value() -> ToolError:
    return error_of(validate=fail)


@case
def objecting_hook() -> ToolError:
    hooks = Hooks()
    hooks.add(lambda ctx: PermissionResult("deny", "no"), "pre_tool_use", hook_id="h")
    return error_of(world={"hooks": hooks})


@case
def broken_hook() -> ToolError:
    hooks = Hooks()
    hooks.add(fail, "pre_tool_use", hook_id="h")
    return error_of(world={"hooks": hooks})


@case
def denied() -> ToolError:
    return error_of(policy="deny")


@case
def undecidable() -> ToolError:
    return error_of(policy=FunctionEngine(fail))


@case
def rejected() -> ToolError:
    approver = FixedApprover(ApprovalAnswer(approved=False, answered_by="user:ada"))
    return error_of(policy="ask", world={"approver": approver})


@case
def sibling() -> ToolError:
    with capture(policy=StaticEngine("allow")) as captured:
        act = captured.governor.govern(fail, name="act", model_input_schema={"type": "object"})
        policy = SchedulerPolicy(sibling_failure_policy="cancel_dependent")
        calls = [BatchCall(act, {}), BatchCall(act, {}, depends_on=[0])]
        error = captured.governor.batch(calls, policy=policy)[1].error
        assert error is not None
        return error


# --- from the body on -----------------------------------------------------------------------------


def http_error(status: int, **headers: str) -> Exception:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return urllib.error.HTTPError("https://example.com", status, "no", message, io.BytesIO())


@case
def unauthorized() -> ToolError:
    return error_of(raising(http_error(401)))


@case
def limited() -> ToolError:
    return error_of(raising(http_error(429, Retry_After="7")))


@case
def left_its_sandbox() -> ToolError:
    return error_of(raising(subprocess.CalledProcessError(-signal.SIGSYS, ["ls"])))


@case
def raised() -> ToolError:
    return error_of(raising(RuntimeError("no")))


@case
def unreachable() -> ToolError:
    return error_of(raising(ConnectionRefusedError("no route")))


@case
def too_slow() -> ToolError:
    return error_of(lambda text: time.sleep(0.2), timeout_ms=20)


@case
def stopped() -> ToolError:
    def act(text: str) -> None:
        call = current_call()
        assert call is not None
        call.request(CancelState(call.invocation_id, "enough"))
        call.raise_if_canceled()

    return error_of(act)


@case
def too_large() -> ToolError:
    return error_of(lambda text: "line\n" * 20_000, world={"results": ResultKeeper(fail)})


class Unreadable:
    """What nobody can look into."""

    __slots__ = ()


@case
def unredactable() -> ToolError:
    policy = decision("allow", obligations={"redact_result": ["/a"]})
    return error_of(lambda text: Unreadable(), policy=policy)


# --- what they are --------------------------------------------------------------------------------

CLASSES = {
    "unknown_tool": "unknown_tool",
    "disabled": "blocked_tool",
    "not_set_up": "setup_required",
    "deferred": "schema_not_loaded",
    "another_type": "schema_validation_failed",
    "refused_value": "invalid_arguments",
    "objecting_hook": "hook_blocked",
    "broken_hook": "hook_failed",
    "denied": "permission_denied",
    "undecidable": "policy_blocked",
    "rejected": "approval_rejected",
    "sibling": "sibling_canceled",
    "unauthorized": "credential_missing",
    "limited": "rate_limited",
    "left_its_sandbox": "sandbox_violation",
    "raised": "execution_failed",
    "unreachable": "dependency_unavailable",
    "too_slow": "timeout",
    "stopped": "canceled",
    "too_large": "result_too_large",
    "unredactable": "result_redacted",
}


@pytest.mark.covers("error-cases-are-apart")
def test_each_case_has_a_class_of_its_own() -> None:
    assert {name: str(make().error_class) for name, make in CASES.items()} == CLASSES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.covers(row), id=name)
        for name, row in [
            ("unauthorized", "error-credentials-missing"),
            ("left_its_sandbox", "error-sandbox-violated"),
            ("stopped", "error-canceled"),
        ]
    ],
)
def test_a_case_that_ends_in_the_body_has_its_class(name: str) -> None:
    assert CASES[name]().error_class == CLASSES[name]


@pytest.mark.parametrize(
    ("name", "fact", "expected"),
    [
        pytest.param(name, fact, expected, marks=pytest.mark.covers(row), id=row)
        for name, fact, expected, row in [
            ("denied", "retry_safe", True, "retry-safe-where-nothing-ran"),
            ("raised", "retry_safe", False, "retry-not-safe-after-a-failure"),
            ("another_type", "arguments_must_change", True, "retry-needs-other-arguments"),
            ("deferred", "discovery_required", True, "retry-needs-discovery"),
            ("rejected", "approval_required", True, "retry-needs-approval"),
            ("sibling", "sibling_caused", True, "retry-caused-by-sibling"),
        ]
    ],
)
def test_guidance_tells_what_a_retry_needs(name: str, fact: str, expected: bool) -> None:
    assert getattr(CASES[name]().retry, fact) is expected


@pytest.mark.covers("retry-after-hint", "native-error-is-kept")
def test_a_servers_own_words_are_kept() -> None:
    error = limited()
    assert (error.retry_after, error.native_error_ref) == (7, "http:429")


@pytest.mark.covers("error-codes-are-stable", "denial-is-a-result-with-retry")
def test_a_denial_has_its_code_and_what_has_to_change() -> None:
    error = denied()
    assert (error.error_code, error.recoverability) == ("AT-301", "change_arguments_or_policy")


@pytest.mark.covers("error-has-an-explanation")
def test_a_denial_has_the_words_of_its_rule() -> None:
    assert denied().message == "the test answers deny"
