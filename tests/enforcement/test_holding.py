"""``hold``: what a function gives and raises is as without it, and what it may not do is refused."""

from __future__ import annotations

import contextvars
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import SandboxUnavailable
from agenttool_otel.enforcement import Violation, available, held_profile, hold
from agenttool_otel.enforcement.processes import is_dead

PROOF = available()["read"]
pytestmark = pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason)

VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OPERATIONS: list[Any] = [sorted, len, repr, sum, dict, list, max, str.upper, divmod, int]


def ended(function: Any, args: Any) -> tuple[Any, ...]:
    try:
        return ("value", function(*args))
    except Exception as error:
        return ("error", type(error), str(error))


@settings(max_examples=60)
@given(function=st.sampled_from(OPERATIONS), args=st.lists(VALUES, max_size=2))
def test_value_and_exception_are_those_of_the_plain_call(function: Any, args: list[Any]) -> None:
    held = hold("read", function, args)
    if held.exception is None:
        found: tuple[Any, ...] = ("value", held.value)
    else:
        found = ("error", type(held.exception), str(held.exception))
    assert found == ended(function, args)
    assert held.violations == ()


def test_a_function_sees_its_callers_context_variables() -> None:
    variable = contextvars.ContextVar("variable", default="default")
    variable.set("mine")
    assert hold("read", variable.get).value == "mine"


def test_a_function_knows_its_profile_and_its_caller_has_none() -> None:
    assert hold("read", held_profile).value == "read"
    assert held_profile() is None


def test_keyword_arguments_arrive() -> None:
    assert hold("read", dict, (), {"a": 1}).value == {"a": 1}


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_a_program_is_handed_back(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert hold("read", fail).exception is error


def test_a_write_outside_is_refused_with_its_path(tmp_path: Path) -> None:
    held = hold("read", (tmp_path / "a").write_text, ("x",))
    assert isinstance(held.exception, PermissionError)
    assert held.violations == (Violation("write", str(tmp_path / "a"), 13),)
    assert not (tmp_path / "a").exists()


def test_a_masked_read_is_refused_with_its_path(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    held = hold("read", secret.read_text, masked=[secret])
    assert held.violations == (Violation("read", str(secret), 13),)
    assert hold("read", secret.read_text).value == "x"


def test_a_file_that_comes_later_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    hold("read", secret.read_text, masked=[secret])
    for name in ("a", "b"):  # the directory of a masked file is opened up, and has changed
        (tmp_path / name).write_text(name)
        assert hold("read", (tmp_path / name).read_text, masked=[secret]).value == name


def test_a_secret_that_comes_later_is_masked(tmp_path: Path) -> None:
    secret = tmp_path / "later"
    assert hold("read", os.listdir, (tmp_path,), masked=[secret]).value == []
    secret.write_text("x")
    assert isinstance(hold("read", secret.read_text, masked=[secret]).exception, PermissionError)


def test_an_error_that_is_not_the_profiles_is_no_violation() -> None:
    held = hold("read", open, ("/no/such/file",))
    assert isinstance(held.exception, FileNotFoundError)
    assert held.violations == ()


def test_the_caller_and_other_threads_stay_free(tmp_path: Path) -> None:
    hold("read", len, ("",))
    (tmp_path / "mine").write_text("x")
    other = threading.Thread(target=(tmp_path / "others").write_text, args=("x",))
    other.start()
    other.join()
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "others"}


def test_a_held_call_inside_of_one_needs_no_further_domain() -> None:
    def deep(level: int) -> Any:
        return level if level == 0 else hold("read", deep, (level - 1,)).value

    assert hold("read", deep, (40,)).value == 0


def test_a_held_call_inside_of_one_can_mask_nothing_more(tmp_path: Path) -> None:
    inner = hold("read", lambda: hold("read", len, ("",), masked=[tmp_path]))
    assert isinstance(inner.exception, SandboxUnavailable)


def test_an_unknown_profile_runs_nothing() -> None:
    ran: list[int] = []
    with pytest.raises(SandboxUnavailable) as raised:
        hold("everything", ran.append, (1,))
    assert ran == []
    assert raised.value.profile == "everything"


def test_a_process_that_a_function_leaves_is_ended() -> None:
    line = "setsid sleep 4321.5 >/dev/null 2>&1 & echo $!"
    held = hold("read", subprocess.check_output, (["/bin/sh", "-c", line],))
    assert is_dead(int(held.value))


def test_a_process_that_was_there_before_stays() -> None:
    with subprocess.Popen(["sleep", "60"]) as before:
        hold("read", subprocess.check_output, (["true"],))
        assert before.poll() is None
        before.kill()


def test_the_process_can_be_dumped_again_afterwards() -> None:
    from agenttool_otel.enforcement.libc import prctl

    assert prctl(3) == 1  # PR_GET_DUMPABLE
    assert hold("read", prctl, (3,)).value == 0
    assert prctl(3) == 1


def test_a_forked_child_proves_and_holds_by_itself() -> None:
    child = os.fork()
    if child == 0:
        held = hold("read", open, ("/tmp/agenttool-no", "w"))
        os._exit(0 if isinstance(held.exception, PermissionError) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
