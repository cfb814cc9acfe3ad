"""Bad input, by name: the tool's own behaviour is untouched where it was allowed, and nothing runs
where it was not.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import StatusCode

from agenttool_otel import Governor, PolicyLoadError, ToolDenied, ToolInputInvalid
from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.policy.types import EngineAnswer
from agenttool_otel.testing import StaticEngine, capture, decision

CAPTURE_MODES = ["NO_CONTENT", "SPAN_AND_EVENT"]
SECRET = "hunter2-" + "do-not-leak"


class BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError(SECRET)

    __str__ = __repr__


def _outcome(governed: Any, *args: Any) -> Any:
    try:
        return governed(*args)
    except ToolDenied as denied:
        return denied


def cyclic() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


ODD_VALUES = {
    "none": None,
    "nan": math.nan,
    "infinity": -math.inf,
    "bytes that are not UTF-8": b"\xff\xfe\x00",
    "lone surrogate": "\ud800",
    "cyclic": cyclic(),
    "deep": deep(5000),
    "huge int": 10**400,
    "repr raises": BadRepr(),
    "set": {1, 2},
    "generator": (n for n in ()),
    "exception": ValueError(SECRET),
    "class": BadRepr,
}


@pytest.mark.parametrize("mode", CAPTURE_MODES)
@pytest.mark.parametrize("name", ODD_VALUES)
def test_an_allowed_tool_returns_exactly_what_it_returns(name: str, mode: str) -> None:
    value = ODD_VALUES[name]

    def tool() -> Any:
        return value

    with capture(policy=StaticEngine("allow"), capture=mode) as captured:
        assert captured.governor.govern(tool)() is value
        assert captured.span.status.status_code is StatusCode.UNSET
        assert captured.governor.telemetry.losses.total == 0, (
            captured.governor.telemetry.losses.by_kind()
        )


@pytest.mark.parametrize("mode", CAPTURE_MODES)
@pytest.mark.parametrize("name", [name for name in ODD_VALUES if name != "generator"])
def test_odd_arguments_reach_an_allowed_tool_and_break_nothing(name: str, mode: str) -> None:
    value = ODD_VALUES[name]
    seen: list[Any] = []

    def tool(thing: Any) -> str:
        seen.append(thing)
        return "ok"

    with capture(policy=StaticEngine("allow"), capture=mode) as captured:
        governed = captured.governor.govern(tool)
        result = _outcome(governed, value)
        if isinstance(result, ToolDenied):  # what can't be put before the policy is not run
            assert seen == []
            assert result.error_class == "policy_blocked"
        else:
            assert result == "ok"
            assert len(seen) == 1
        assert captured.governor.telemetry.losses.total == 0, (
            captured.governor.telemetry.losses.by_kind()
        )
        assert SECRET not in repr([(s.attributes, s.events, s.status) for s in captured.spans])


@pytest.mark.parametrize("name", ODD_VALUES)
def test_odd_arguments_never_run_a_denied_tool(name: str) -> None:
    def tool(thing: Any) -> str:
        raise AssertionError("ran")

    with (
        capture(policy=StaticEngine("deny")) as captured,
        pytest.raises((ToolDenied, ToolInputInvalid)),
    ):
        captured.governor.govern(tool)(ODD_VALUES[name])


def test_a_gigabyte_of_text_is_returned_and_measured_uncopied() -> None:
    import tracemalloc

    text = "x" * 1_000_000_000

    def tool() -> str:
        return text

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(tool, max_inline_chars=10**10)
        tracemalloc.start()
        assert governed() is text
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10_000_000
        assert (captured.span.attributes or {})["agenttool.result.size_bytes"] == 1_000_000_000


def test_an_argument_of_a_gigabyte_is_not_decided_and_so_not_run() -> None:
    def tool(text: str) -> str:
        raise AssertionError("ran")

    with capture() as captured, pytest.raises(ToolDenied) as denied:
        captured.governor.govern(tool, read_only=True)("x" * 1_000_000_000)
    assert denied.value.error_class == "policy_blocked"


@pytest.mark.parametrize(
    "error",
    [ValueError(SECRET), BaseException(SECRET), type("Odd", (Exception,), {"__str__": 1})()],
)
@pytest.mark.parametrize("mode", CAPTURE_MODES)
def test_a_tools_exception_is_raised_and_its_message_stays_out(
    error: BaseException, mode: str
) -> None:
    def tool() -> None:
        raise error

    with capture(policy=StaticEngine("allow"), capture=mode) as captured:
        with pytest.raises(type(error)) as raised:
            captured.governor.govern(tool)()
        assert raised.value is error
        if mode == "NO_CONTENT":
            assert SECRET not in repr([(s.attributes, s.events, s.status) for s in captured.spans])


# --- policies that can't be had -------------------------------------------------------------------


def test_a_missing_bundle_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(PolicyLoadError, match="does not exist"):
        Governor(policy=tmp_path / "nowhere")


def test_an_empty_bundle_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(PolicyLoadError):
        Governor(policy=tmp_path)


def test_a_syntax_error_is_told_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "broken.rego").write_text(
        "package agenttool.permission\n\ndecision := {\n", encoding="utf-8"
    )
    with pytest.raises(PolicyLoadError, match=r"broken\.rego"):
        Governor(policy=tmp_path)


def test_an_undefined_entry_point_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "other.rego").write_text("package other\n\nx := 1\n", encoding="utf-8")
    with pytest.raises(PolicyLoadError, match="decision"):
        Governor(policy=tmp_path)


WRONG_DOCUMENTS: dict[str, Any] = {
    "undefined": None,
    "null": {"behavior": None},
    "unknown word": {"behavior": "permit"},
    "capital letters": {"behavior": "ALLOW"},
    "a list": {"behavior": ["allow"]},
    "true": {"behavior": True},
    "empty object": {"behavior": "allow", "reason": "not an object"},
    "obligations of the wrong type": {"behavior": "allow", "obligations": []},
    "passthrough and nobody behind": {"behavior": "passthrough"},
}


@pytest.mark.parametrize("name", WRONG_DOCUMENTS)
def test_anything_but_a_well_formed_allow_runs_nothing(name: str) -> None:
    def tool() -> None:
        raise AssertionError("ran")

    with capture(policy=StaticEngine({"tool": WRONG_DOCUMENTS[name]})) as captured:
        with pytest.raises(ToolDenied) as denied:
            captured.governor.govern(tool)()
        assert denied.value.error_class == "policy_blocked"
        attributes = captured.span.attributes or {}
        assert attributes["error.type"] == "policy_blocked"
        assert attributes["agenttool.permission.fail_closed.cause"]
        assert captured.points("agenttool.permission.fail_closed")[0].value == 1


class PanickingEngine(StaticEngine):
    """Panics as native code does: with something that is no Exception."""

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        class PanicException(BaseException):
            pass

        PanicException.__module__ = "pyo3_runtime"
        raise PanicException("called from another thread")


def test_an_engine_that_panics_in_another_thread_denies() -> None:
    ran: list[int] = []
    errors: list[BaseException] = []

    def tool() -> None:
        ran.append(1)

    with capture(policy=PanickingEngine("allow")) as captured:
        governed = captured.governor.govern(tool)

        def body() -> None:
            try:
                governed()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    assert ran == []
    assert [type(error) for error in errors] == [ToolDenied]


class BrokenEngine(StaticEngine):
    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        raise self.error

    error: Exception = RuntimeError(SECRET)


@pytest.mark.parametrize(
    "error",
    [RuntimeError(SECRET), PolicyEvaluationError("broken"), RecursionError(), MemoryError()],
)
def test_an_engine_that_raises_denies_and_tells_only_the_type(error: Exception) -> None:
    def tool() -> None:
        raise AssertionError("ran")

    engine = BrokenEngine("allow")
    engine.error = error
    with capture(policy=engine) as captured:
        with pytest.raises(ToolDenied) as denied:
            captured.governor.govern(tool)()
        assert SECRET not in str(denied.value)
        assert SECRET not in repr([(s.attributes, s.events, s.status) for s in captured.spans])


# --- telemetry that breaks ------------------------------------------------------------------------


class BrokenExporter(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("exporter")

    def shutdown(self) -> None: ...


class BrokenProcessor:
    def on_start(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("on_start")

    def on_end(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("on_end")

    def _on_ending(self, *args: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self, *args: Any) -> bool:
        return True


def test_broken_telemetry_changes_nothing() -> None:
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from agenttool_otel import TelemetrySettings

    def subscriber(event: Any) -> None:
        raise RuntimeError("subscriber")

    def tool(x: int) -> int:
        return x + 1

    tracer = TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(BrokenExporter()))
    tracer.add_span_processor(BrokenProcessor())  # type: ignore[arg-type]
    settings = TelemetrySettings(
        tracer_provider=tracer,
        meter_provider=NoOpMeterProvider(),
        subscribers=(subscriber,),
        capture="SPAN_AND_EVENT",
    )
    governor = Governor(policy=StaticEngine("allow"), telemetry=settings)
    for name in governor.telemetry.instruments.__slots__:

        class Broken:
            def add(self, *args: Any, **kwargs: Any) -> None:
                raise RuntimeError("meter")

            record = add

        setattr(governor.telemetry.instruments, name, Broken())
    governed = governor.govern(tool)
    assert [governed(n) for n in range(3)] == [1, 2, 3]
    assert governor.telemetry.losses.total > 0

    deny = Governor(policy=StaticEngine("deny"), telemetry=settings).govern(tool)
    with pytest.raises(ToolDenied):
        deny(1)


def test_a_failing_redactor_drops_content_and_keeps_the_result() -> None:
    with capture(policy=StaticEngine("allow"), capture="SPAN_ONLY") as captured:

        class Broken:
            def redact(self, *args: Any, **kwargs: Any) -> Any:
                raise RuntimeError("redactor")

        governed = captured.governor.govern(lambda text: text, name="echo")
        captured.governor.pipeline.span.redaction._redactor = Broken()  # type: ignore[assignment]
        assert governed(SECRET) == SECRET
        assert SECRET not in repr([(s.attributes, s.events) for s in captured.spans])


def test_a_result_that_must_be_redacted_is_withheld_on_failure() -> None:
    answers = {"tool": decision("allow", obligations={"redact_result": ["*"]})}
    with capture(policy=StaticEngine(answers)) as captured:

        class Broken:
            def redact(self, *args: Any, **kwargs: Any) -> Any:
                raise RuntimeError("redactor")

        def tool() -> str:
            return SECRET

        captured.governor.pipeline._body._delivery._redactor = Broken()  # type: ignore[assignment]
        assert SECRET not in captured.governor.govern(tool)()
