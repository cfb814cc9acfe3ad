"""The embedded engine: what it refuses at load, what becomes a deny, and what it survives."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_inputs import documents, make_document

from agenttool_otel.errors import (
    PolicyError,
    PolicyEvaluationError,
    PolicyLoadError,
    PolicyTimeout,
    PolicyUnavailable,
    PolicyUnsupported,
)
from agenttool_otel.names import Behavior, FailClosedCause
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines import evaluation
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.rego.native import native_error, new_engine, regorus_module
from agenttool_otel.policy.types import PolicyEngine

DECISION = "data.agenttool.permission.decision"
ALLOW = '{"behavior": "allow"}'


def bundle(rules: str, data: Any = None, **files: str) -> Bundle:
    """A bundle of one module in the permission package, and whatever else."""
    contents = {"agenttool/permission.rego": f"package agenttool.permission\n\n{rules}\n".encode()}
    contents.update((f"{name}.rego", text.encode()) for name, text in files.items())
    if data is not None:
        contents["data.json"] = json.dumps(data).encode()
    return bundle_from_files(contents, origin="test")


def engine(rules: str, data: Any = None, **files: str) -> EmbeddedEngine:
    return EmbeddedEngine(bundle(rules, data, **files))


def ask(rules: str, document: Any = None, *, timeout: float = 10.0, data: Any = None) -> Any:
    return (
        engine(rules, data).evaluate(DECISION, document or make_document(), timeout=timeout).value
    )


def test_it_is_an_engine_and_answers_with_value_and_revision() -> None:
    subject = engine(f"decision := {ALLOW} if input.tool.read_only")
    assert isinstance(subject, PolicyEngine)
    answer = subject.evaluate(DECISION, make_document(), timeout=1)
    assert answer.value == {"behavior": "allow"}
    assert answer.revision == subject.revision == subject.bundle.revision


async def test_it_answers_the_same_asynchronously() -> None:
    answer = await engine(f"decision := {ALLOW}").aevaluate(DECISION, make_document(), timeout=1)
    assert answer.value == {"behavior": "allow"}


class TestRefusedAtLoad:
    """A bundle that can't be trusted to decide is refused, with file and line."""

    @pytest.mark.parametrize(
        ("rules", "message"),
        [
            ("decision := {", r"agenttool/permission\.rego:\d+: "),
            (
                "decision = true { input.x }",
                r"agenttool/permission\.rego:3: `if` keyword is required",
            ),
            ("decision := x", r"agenttool/permission\.rego:3: .*x.* is unsafe"),
            (
                "decision := 1 if decision",
                r"agenttool/permission\.rego:3: data\.agenttool\.permission\.decision is rec",
            ),
            ("decision := a\na if b\nb if not a", "is recursive"),
            ("f(x) := f(x)\ndecision := f(1)", r"permission\.f is recursive"),
            ("decision := data.agenttool[input.x]", "is recursive"),
            ("other := 1", r"entry point data\.agenttool\.permission\.decision is not defined"),
            (
                "decision := data.lib.f(1)",
                r"permission\.rego:3: the function data\.lib\.f is not defined",
            ),
            ("decision := " + "[" * 5000, r"permission\.rego:3: brackets are nested more than"),
            ("decision := " + "(" * 60 + "1" + ")" * 60, "nest"),
        ],
    )
    def test_broken_rego(self, rules: str, message: str) -> None:
        with pytest.raises(PolicyLoadError, match=message):
            engine(rules)

    @pytest.mark.parametrize(
        ("call", "builtin"),
        [
            ('http.send({"method": "get", "url": "http://127.0.0.1/"})', "http.send"),
            ('crypto.sha256("a")', "crypto.sha256"),
            ('io.jwt.decode("x")', "io.jwt.decode"),
            ("opa.runtime()", "opa.runtime"),
            ('net.cidr_intersects("10.0.0.0/8", "10.0.0.0/9")', "net.cidr_intersects"),
            ("no.such.builtin(1)", "no.such.builtin"),
        ],
    )
    def test_a_missing_builtin_is_named_with_rule_file_and_line(
        self, call: str, builtin: str
    ) -> None:
        with pytest.raises(PolicyUnsupported) as caught:
            engine(f"decision := {ALLOW} if helper\n\nhelper if {{\n\t{call}\n}}")
        message = str(caught.value)
        assert f"uses {builtin}," in message
        assert "agenttool/permission.rego:6: data.agenttool.permission.helper" in message

    def test_a_package_outside_the_roots(self) -> None:
        files = {
            "p.rego": f"package agenttool.permission\n\ndecision := {ALLOW}\n".encode(),
            "q.rego": b"package other\n\nx := 1\n",
            ".manifest": b'{"roots": ["agenttool"]}',
        }
        with pytest.raises(PolicyLoadError, match=r"q\.rego:1: package other lies outside"):
            EmbeddedEngine(bundle_from_files(files, origin="test"))

    def test_a_rule_that_is_also_data(self) -> None:
        with pytest.raises(PolicyLoadError, match="is both a rule and data"):
            engine(f"decision := {ALLOW}", {"agenttool": {"permission": {"decision": 1}}})

    def test_builtins_of_another_wheel_must_give_the_same_answers(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from agenttool_otel.policy.rego import builtins

        monkeypatch.setattr(builtins, "_verified", set())
        monkeypatch.setattr(builtins, "_answer", lambda expression: {"value": "something else"})
        with pytest.raises(PolicyUnsupported, match="startswith does not give OPA's answer"):
            engine('decision := {"behavior": "allow"} if startswith(input.tool.id, "a")')


class TestNoDecision:
    """What does not end in a value ends in an error, whose cause is named and which quotes
    no input.
    """

    @pytest.mark.parametrize(
        ("rules", "cause"),
        [
            (f"decision := {ALLOW} if input.tool.destructive", FailClosedCause.UNDEFINED),
            ("decision := input.input.amount + 1", FailClosedCause.ENGINE_ERROR),
            ("decision := to_number(input.input.amount)", FailClosedCause.ENGINE_ERROR),
            (
                "decision := 1 if input.tool.read_only\ndecision := 2 if input.tool.read_only",
                FailClosedCause.ENGINE_ERROR,
            ),
            ("decision := x if some x in input.tool.aliases", FailClosedCause.ENGINE_ERROR),
            (
                "decision := {k: v | some v in input.tool.aliases; k := 1}",
                FailClosedCause.ENGINE_ERROR,
            ),
            (
                "decision := regex.match(input.input.pattern, input.tool.id)",
                FailClosedCause.ENGINE_ERROR,
            ),
        ],
    )
    def test_errors(self, rules: str, cause: FailClosedCause) -> None:
        document = make_document(
            {
                "tool.aliases": ["a", "b"],
                "input": {"amount": "hunter2-" + "secret", "pattern": "(" * 3},
            }
        )
        with pytest.raises(PolicyEvaluationError) as caught:
            ask(rules, document)
        assert caught.value.cause is cause
        assert "hunter2" not in str(caught.value)

    def test_null_is_a_value_and_undefined_is_none(self) -> None:
        assert ask("decision := null") is None
        with pytest.raises(PolicyEvaluationError, match="undefined"):
            ask("decision := null if false")

    def test_an_error_in_a_deny_rule_does_not_become_an_allow(self) -> None:
        rules = (
            'default decision := {"behavior": "allow"}\n'
            'decision := {"behavior": "deny"} if count(denials) > 0\n'
            'denials contains "big" if to_number(input.input.amount) > 10'
        )
        verdict = Decider([engine(rules)]).decide(make_document({"input": {"amount": "a lot"}}))
        assert (verdict.behavior, verdict.fail_closed) == (
            Behavior.DENY,
            FailClosedCause.ENGINE_ERROR,
        )


class TestBounded:
    """Whatever comes in, an answer or an error comes out in bounded time, and the process lives."""

    @staticmethod
    def nested(levels: int) -> Any:
        value: Any = {}
        for _ in range(levels):
            value = {"a": value}
        return value

    @pytest.mark.parametrize("levels", [100, 200, 1000, 10_000, 200_000])
    def test_deeply_nested_input(self, levels: int) -> None:
        subject = engine(f"decision := {ALLOW} if count(input.input) == 1")
        document = make_document({"input": self.nested(levels)})
        started = time.thread_time()
        if levels <= 100:
            assert subject.evaluate(DECISION, document, timeout=5).value
        else:
            with pytest.raises(PolicyEvaluationError, match=r"deep|recursion"):
                subject.evaluate(DECISION, document, timeout=5)
        assert time.thread_time() - started < 5

    def test_huge_input(self) -> None:
        subject = EmbeddedEngine(bundle(f"decision := {ALLOW}"), max_input_bytes=1_000_000)
        with pytest.raises(PolicyEvaluationError, match="more than the limit") as caught:
            subject.evaluate(
                DECISION, make_document({"input": {"text": "x" * 2_000_000}}), timeout=5
            )
        assert caught.value.cause is FailClosedCause.INPUT_INVALID

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), b"x", {1, 2}, object(), "\ud800", {"a": b"x"}]
    )
    def test_values_that_json_lacks(self, value: Any) -> None:
        with pytest.raises(PolicyEvaluationError) as caught:
            ask(f"decision := {ALLOW}", make_document({"input": {"x": value}}))
        assert caught.value.cause is FailClosedCause.INPUT_INVALID

    def test_a_cycle(self) -> None:
        cycle: dict[str, Any] = {}
        cycle["self"] = cycle
        with pytest.raises(PolicyEvaluationError, match="cycle"):
            ask(f"decision := {ALLOW}", make_document({"input": cycle}))

    def test_a_regex_bomb(self) -> None:
        started = time.thread_time()
        document = make_document({"input": {"text": "a" * 50_000 + "!"}})
        assert ask('decision := regex.match("(a+)+$", input.input.text)', document) is False
        assert time.thread_time() - started < 2

    def test_a_regex_that_needs_too_much_memory(self) -> None:
        with pytest.raises(PolicyError):
            ask('decision := regex.match("(a{1000}){1000}", input.tool.id)')

    def test_an_answer_after_its_deadline_is_thrown_away(self) -> None:
        counted = "count([1 | some x in r; some y in r])"
        slow = f'decision := {{"behavior": "allow", "n": {counted}}}\nr := numbers.range(1, 300)'
        subject = engine(slow)
        assert subject.evaluate(DECISION, make_document(), timeout=30).value["n"] == 90_000
        with pytest.raises(PolicyTimeout):
            subject.evaluate(DECISION, make_document(), timeout=0.001)

    def test_large_numbers_stay_exact(self) -> None:
        assert (
            ask("decision := input.input.n", make_document({"input": {"n": 2**53 + 1}}))
            == 2**53 + 1
        )


class TestThreads:
    """Native engines are bound to their thread; ours are not."""

    def test_one_engine_serves_many_threads(self) -> None:
        subject = engine('decision := {"behavior": "allow", "id": input.tool.id}')

        def call(number: int) -> bool:
            answer = subject.evaluate(
                DECISION, make_document({"tool.id": f"t{number}"}), timeout=10
            )
            return bool(answer.value["id"] == f"t{number}")

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(call, range(400)))

    def test_a_panic_of_the_native_engine_is_a_deny(self) -> None:
        """The real panic: an engine made in another thread."""
        subject = EmbeddedEngine(bundle(f"decision := {ALLOW}"), fast=False)
        foreign: list[Any] = []
        thread = threading.Thread(target=lambda: foreign.append(regorus_module().Engine()))
        thread.start()
        thread.join()
        # never freed: freeing it here would be the very misuse that this test is about
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(foreign[0]))
        subject.evaluate(DECISION, make_document(), timeout=5)
        instance = evaluation._own_instance(subject._compiled)
        own, instance._engine = instance._engine, foreign[0]
        try:
            with pytest.raises(PolicyEvaluationError) as caught:
                subject.evaluate(DECISION, make_document(), timeout=5)
            assert caught.value.cause is FailClosedCause.ENGINE_PANIC
            verdict = Decider([subject]).decide(make_document())
            assert (verdict.behavior, verdict.fail_closed) == (
                Behavior.DENY,
                FailClosedCause.ENGINE_PANIC,
            )
        finally:
            instance._engine = own

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_what_means_stop_is_not_swallowed(self, stop: type[BaseException]) -> None:
        with pytest.raises(stop):
            native_error(stop(), PolicyEvaluationError)

    def test_another_threads_engine_is_refused_before_it_panics(self) -> None:
        foreign: list[Any] = []
        thread = threading.Thread(target=lambda: foreign.append(new_engine()))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="a thread that did not make it"):
            foreign[0].set_input_json("{}")


_DROPPED_ELSEWHERE: Final = {
    "the thread that made it ends": """
done, go = threading.Event(), threading.Event()
def hold():
    ask(); done.set(); go.wait()
thread = threading.Thread(target=hold); thread.start(); done.wait(); ask()
del engine; gc.collect(); go.set(); thread.join()
""",
    "an error crosses threads, in a cycle": """
with ThreadPoolExecutor(1) as pool:
    errors = [pool.submit(engine.evaluate, "data.agenttool.permission.gone", document, timeout=5).exception()]
assert "PolicyEvaluationError" in repr(errors), errors
errors.append(errors)
del errors, pool; gc.collect()
""",
    "an error of loading crosses threads": """
broken = bundle_from_files({"p.rego": b"package agenttool.permission\\n\\ndecision := 1 + x if x > 2"}, origin="t")
with ThreadPoolExecutor(1) as pool:
    errors = [pool.submit(EmbeddedEngine, broken).exception()]
assert "PolicyLoadError" in repr(errors), errors
del errors, pool; gc.collect()
""",
    "the process ends before a daemon thread": """
done = threading.Event()
def hold():
    ask(); done.set(); threading.Event().wait()
threading.Thread(target=hold, daemon=True).start(); done.wait()
""",
    "the process forks": """
done, go = threading.Event(), threading.Event()
def hold():
    ask(); done.set(); go.wait()
thread = threading.Thread(target=hold); thread.start(); done.wait()
child = os.fork()
if child == 0:
    ask(); gc.collect(); sys.stderr.flush(); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
go.set(); thread.join()
""",
}


@pytest.mark.parametrize("story", _DROPPED_ELSEWHERE)
@pytest.mark.parametrize("fast", [True, False])
def test_engines_that_are_dropped_elsewhere_leave_no_noise(story: str, fast: bool) -> None:
    """A native engine that another thread drops prints an unraisable panic, and leaks."""
    path = [item for item in sys.path if "policy" in item or "src" in item]
    script = f"""
import gc, os, sys, threading
from concurrent.futures import ThreadPoolExecutor
sys.path[:0] = {path!r}
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from policy_inputs import make_document
document = make_document()
engine = EmbeddedEngine(
    bundle_from_files({{"p.rego": b"package agenttool.permission\\n\\ndecision := 1"}}, origin="t"), fast={fast}
)
assert not {fast} or not engine.interpreted_because
def ask(): globals()["engine"].evaluate("data.agenttool.permission.decision", document, timeout=5)
{_DROPPED_ELSEWHERE[story]}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


class TestSwap:
    """A new bundle comes whole or not at all."""

    def test_the_last_good_bundle_stays_when_the_new_one_is_broken(self) -> None:
        subject = engine("decision := 1")
        for broken in ("decision := {", "other := 1", 'decision := crypto.md5("a")'):
            with pytest.raises(PolicyLoadError):
                subject.swap(bundle(broken))
            assert subject.evaluate(DECISION, make_document(), timeout=5).value == 1

    def test_no_request_sees_half_a_bundle(self) -> None:
        """Rule and data of one bundle carry the same number; any mix would be seen."""
        bundles = [bundle(f"decision := [{n}, data.number]", {"number": n}) for n in range(4)]
        subject = EmbeddedEngine(bundles[0])
        stop = threading.Event()
        mixed: list[Any] = []
        revisions = {item.revision: number for number, item in enumerate(bundles)}

        def call() -> None:
            document = make_document()
            while not stop.is_set():
                answer = subject.evaluate(DECISION, document, timeout=30)
                if answer.value != [revisions[answer.revision]] * 2:
                    mixed.append(answer)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(12):
            subject.swap(bundles[number % 4])
        stop.set()
        for thread in threads:
            thread.join()
        assert mixed == []


def test_a_closed_engine_is_unavailable() -> None:
    subject = engine("decision := 1")
    subject.close()
    with pytest.raises(PolicyUnavailable):
        subject.evaluate(DECISION, make_document(), timeout=1)


@settings(max_examples=60, deadline=None)
@given(documents(), st.sampled_from(['decision := {"behavior": "allow", "seen": input}']))
def test_an_engine_sees_exactly_the_document(document: Any, rules: str) -> None:
    seen = _ECHO.evaluate(DECISION, document, timeout=10).value["seen"]
    assert seen == json.loads(json.dumps(document))


_ECHO = engine('decision := {"behavior": "allow", "seen": input}')
