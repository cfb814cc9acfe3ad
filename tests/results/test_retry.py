"""Retries follow the execution profile, and only where a retry can help and nobody decided against
the call.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import ErrorClass
from agenttool_otel.records import ExecutionProfile, ToolError
from agenttool_otel.results.errors.mapper import classify
from agenttool_otel.results.errors.retry import RetryPolicy

TIMEOUT = ToolError.of(ErrorClass.TIMEOUT)


def profile(**retry):
    return ExecutionProfile(execution_profile_id="p", supports_retries=True, retry=retry)


@pytest.mark.covers("capability-retries-bind")
def test_a_tool_that_does_not_say_so_is_never_retried():
    silent = ExecutionProfile(execution_profile_id="p", retry={"max_attempts": 9})
    assert RetryPolicy.from_profile(silent).next_delay(1, TIMEOUT) is None
    assert RetryPolicy.from_profile(None).next_delay(1, TIMEOUT) is None


def test_delays_grow_to_the_maximum_and_then_attempts_run_out():
    policy = RetryPolicy.from_profile(
        profile(max_attempts=5, initial_delay_ms=100, max_delay_ms=300, multiplier=2, jitter=0)
    )
    assert [policy.next_delay(n, TIMEOUT) for n in range(1, 6)] == pytest.approx(
        [0.1, 0.2, 0.3, 0.3, None]
    )


@pytest.mark.covers("retry-after-is-honoured")
def test_retry_after_is_honoured_up_to_the_longest_wait():
    policy = RetryPolicy.from_profile(profile(max_attempts=3, max_delay_ms=10_000))
    assert policy.next_delay(1, ToolError.of(ErrorClass.RATE_LIMITED, retry_after=7)) == 7
    assert policy.next_delay(1, ToolError.of(ErrorClass.RATE_LIMITED, retry_after=11)) is None


@pytest.mark.parametrize(
    "error_class",
    [
        ErrorClass.PERMISSION_DENIED,
        ErrorClass.APPROVAL_REJECTED,
        ErrorClass.POLICY_BLOCKED,
        ErrorClass.CANCELED,
        ErrorClass.INVALID_ARGUMENTS,
        ErrorClass.SANDBOX_VIOLATION,
        ErrorClass.SETUP_REQUIRED,
    ],
)
def test_what_needs_other_arguments_is_never_retried(error_class):
    policy = RetryPolicy.from_profile(profile(max_attempts=3, retry_on=[error_class.value]))
    assert policy.next_delay(1, ToolError.of(error_class)) is None


def test_only_the_listed_classes_are_retried():
    policy = RetryPolicy.from_profile(profile(max_attempts=3, retry_on=["execution_failed"]))
    assert policy.next_delay(1, TIMEOUT) is None
    assert policy.next_delay(1, classify(RuntimeError("x"))) is not None
    assert policy.next_delay(1, classify(ValueError("x"))) is None


@pytest.mark.parametrize(
    "retry",
    [
        {"max_attempts": 0},
        {"max_attempts": "3"},
        {"max_attempts": True},
        {"initial_delay_ms": -1},
        {"max_delay_ms": float("nan")},
        {"retry_on": ["no_such_class"]},
        {"retry_on": 5},
    ],
)
def test_a_bad_policy_is_refused_when_it_is_read(retry):
    with pytest.raises(ConfigurationError):
        RetryPolicy.from_profile(profile(**retry))


@given(
    st.integers(1, 100),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.floats(1, 1e6),
    st.floats(0, 1),
    st.floats(0, 1, exclude_max=True),
    st.one_of(st.none(), st.floats(0, 1e6)),
)
def test_a_delay_is_between_retry_after_and_the_maximum(
    attempt, initial, longest, multiplier, jitter, luck, wait
):
    policy = RetryPolicy(101, initial, longest, multiplier, jitter=jitter)
    error = ToolError.of(ErrorClass.RATE_LIMITED, retry_after=wait)
    delay = policy.next_delay(attempt, error, uniform=lambda: luck)
    if wait is not None and wait > longest:
        assert delay is None
    else:
        assert delay is not None
        assert (wait or 0) <= delay <= longest
