"""Which thread evaluates, what that costs a new one, and which time its deadline counts."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from policy_inputs import make_document

from agenttool_otel.errors import PolicyEvaluationError, PolicyTimeout
from agenttool_otel.names import Behavior
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines import evaluation
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

DECISION = "data.agenttool.permission.decision"


def engine(rules: str, *, fast: bool = True) -> EmbeddedEngine:
    files = {"p.rego": f"package agenttool.permission\n\n{rules}\n".encode()}
    return EmbeddedEngine(bundle_from_files(files, origin="t"), fast=fast)


def in_new_thread(call: Any) -> Any:
    """Call it in a thread of its own, and return what came of it."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which engines are made."""
    threads: list[int] = []
    make = evaluation.Instance.__init__

    def counted(self: Any, compiled: Any) -> None:
        threads.append(threading.get_ident())
        make(self, compiled)

    monkeypatch.setattr(evaluation.Instance, "__init__", counted)
    return threads


@pytest.mark.parametrize("fast", [True, False])
def test_a_new_thread_for_each_call_makes_no_engine(made: list[int], fast: bool) -> None:
    subject = engine(
        'decision := {"behavior": "allow", "id": input.tool.id, "new thread": 1}', fast=fast
    )
    for number in range(20):
        document = make_document({"tool.id": f"t{number}"})
        answer = in_new_thread(
            lambda document=document: subject.evaluate(DECISION, document, timeout=5)
        )
        assert answer.value["id"] == f"t{number}"
    # this thread's, of the check at load, and that of the thread that evaluates for others
    assert len(made) == 2


def test_a_thread_that_asks_often_gets_its_own_engine(made: list[int]) -> None:
    subject = engine('decision := {"behavior": "allow", "often": 1}')

    def ask_often() -> int:
        for _ in range(20):
            subject.evaluate(DECISION, make_document(), timeout=5)
        return threading.get_ident()

    assert in_new_thread(ask_often) in made


def test_an_error_reaches_the_thread_that_asked() -> None:
    subject = engine("decision := to_number(input.tool.name)")
    error = in_new_thread(lambda: subject.evaluate(DECISION, make_document(), timeout=5))
    assert isinstance(error, PolicyEvaluationError)


def test_the_same_bundle_is_compiled_once(made: list[int]) -> None:
    rules = 'decision := {"behavior": "allow", "compiled": "once"}'
    first, second = engine(rules), engine(rules)
    assert first._compiled is second._compiled
    assert len(made) == 1
    assert engine(rules, fast=False)._compiled is not first._compiled


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_has_a_thread_of_its_own_to_ask() -> None:
    script = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
from test_threads import engine, in_new_thread, DECISION
from policy_inputs import make_document
subject = engine('decision := "forked"')
def ask(): return subject.evaluate(DECISION, make_document(), timeout=5).value
assert in_new_thread(ask) == "forked"
child = os.fork()
if child == 0:
    os._exit(0 if in_new_thread(ask) == "forked" else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    folder = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", script, folder],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


class TestDeadline:
    """Work counts, waiting does not."""

    def test_time_in_which_the_machine_was_busy_does_not_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        subject = engine('decision := {"behavior": "allow"}')
        timed = evaluation._timed

        def delayed(*arguments: Any) -> Any:
            time.sleep(0.3)
            return timed(*arguments)

        monkeypatch.setattr(evaluation, "_timed", delayed)
        verdict = Decider([subject], timeout=0.1).decide(make_document())
        assert verdict.behavior is Behavior.ALLOW
        assert verdict.duration >= 0.3

    @pytest.mark.parametrize("new_thread", [False, True])
    def test_work_counts_in_whichever_thread_it_is_done(self, new_thread: bool) -> None:
        subject = engine(
            'decision := {"behavior": "allow", "n": count([1 | some x in r; some y in r])}\nr := numbers.range(1, 300)'
        )

        def ask() -> Any:
            with pytest.raises(PolicyTimeout):
                subject.evaluate(DECISION, make_document(), timeout=0.001)
            return subject.evaluate(DECISION, make_document(), timeout=30).value["n"]

        assert (in_new_thread(ask) if new_thread else ask()) == 90_000


@pytest.mark.parametrize("variable", ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"])
def test_no_native_stack_trace_is_built_whatever_the_environment(variable: str) -> None:
    script = """
import os, sys, time
from agenttool_otel.policy.rego.native import new_engine
engine = new_engine()
engine.add_policy("p.rego", "package p\\n\\nx := to_number(input.y)")
engine.set_input_json('{"y": "a"}')
started = time.thread_time()
for _ in range(20):
    try:
        engine.eval_rule_as_json("data.p.x")
    except Exception as error:
        assert "backtrace" not in str(error).lower()
print(time.thread_time() - started < 0.2, os.environ[sys.argv[1]])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, variable], env={**os.environ, variable: "full"}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True full\n", "")
