"""No byte of a secret leaves the process, wherever it was planted, in any capture mode, after a run
of everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from canaries import Canaries
from langchain_core.tools import tool as langchain_tool
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr

from agenttool_otel import Governor, TelemetrySettings
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.hooks import (
    AdditionalContext,
    HookContext,
    Hooks,
    Message,
    PermissionResult,
    Stop,
)
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.types import EngineAnswer
from agenttool_otel.records import ToolEvent
from agenttool_otel.testing import FixedApprover, StaticEngine, decision

CAPTURES = ("NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT")


class Quoting(StaticEngine):
    """A policy whose reasons quote the arguments, as policies that people write do."""

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        name, arguments = document["tool"]["name"], document["input"]
        if "broken" in name:
            raise RuntimeError(f"engine failed on {arguments}")
        behavior = next((word for word in ("deny", "ask") if word in name), "allow")
        if behavior == "ask" and document.get("approval"):
            behavior = "allow"
        answer = decision(
            behavior,
            alternatives=[{"tool": "safer", "arguments": arguments, "reason": f"{arguments}"}],
        )
        answer["reason"]["message"] = f"because of {arguments}"
        if "obliged" in name:
            answer["obligations"] = {"redact_result": ["/password"], "max_inline_chars": 5000}
        assert entry_point == EntryPoint.DECISION
        return EngineAnswer(answer, "test-1")


@dataclass
class World:
    """A Governor with everything switched on, and everything that leaves it."""

    canaries: Canaries
    governor: Governor
    spans: InMemorySpanExporter
    logs: InMemoryLogRecordExporter
    reader: InMemoryMetricReader
    events: list[ToolEvent]
    folder: Path

    def leaks(self, logged: str) -> list[str]:
        found: list[str] = []
        for span in self.spans.get_finished_spans():
            found += self.canaries.found_in(f"span {span.name}", span.to_json())
        for item in self.logs.get_finished_logs():
            found += self.canaries.found_in(
                "log event", str(item.log_record.attributes) + str(item.log_record.body)
            )
        data = self.reader.get_metrics_data()
        assert data is not None
        found += self.canaries.found_in("metrics", data.to_json())
        for event in self.events:
            found += self.canaries.found_in(f"envelope {event.event_type}", event.model_dump_json())
        found += self.canaries.found_in("Python logging", logged)
        for path in self.folder.rglob("*"):
            if path.is_file():
                found += self.canaries.found_in(
                    f"file {path.relative_to(self.folder)}", path.read_bytes()
                )
        return found


def world(
    folder: Path, capture: Any, canaries: Canaries, hooks: Hooks | None = None, **options: Any
) -> Iterator[World]:
    spans, logs, reader = (
        InMemorySpanExporter(),
        InMemoryLogRecordExporter(),
        InMemoryMetricReader(),
    )
    tracers, loggers, meters = TracerProvider(), LoggerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    events: list[ToolEvent] = []
    telemetry = TelemetrySettings(
        tracer_provider=tracers,
        meter_provider=meters,
        logger_provider=loggers,
        capture=capture,
        events="both",
        verbose=True,
        subscribers=(events.append,),
    )
    options.setdefault("policy", Quoting("allow"))
    governor = Governor(
        telemetry=telemetry,
        approvals=f"sqlite:///{folder / 'approvals.db'}",
        results_dir=folder / "results",
        hooks=hooks,
        **options,
    )
    try:
        yield World(canaries, governor, spans, logs, reader, events, folder)
    finally:
        governor.close()


def quietly(function: Callable[[], Any]) -> Any:
    """Call what may fail, and keep what it says: a refusal's own words must be clean too."""
    try:
        return function()
    except GovernedOutcome as outcome:
        return outcome
    except Exception:
        return None


def run_everything(at: World, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Call tools of every shape with secrets in every place; returns the words of refusals
    and errors.
    """
    made, govern = at.canaries, at.governor.govern
    said: list[str] = []

    def keep(outcome: Any) -> Any:
        if isinstance(outcome, GovernedOutcome):
            said.append(f"{outcome} {outcome.result.error if outcome.result else ''}")
        elif hasattr(outcome, "error") and outcome.error is not None:
            said.append(f"{outcome.error.message} {outcome.summary}")
        return outcome

    # functions: secrets by shape, by key, by contract, and echoed
    @govern(sensitive_fields=["note", "/who/pin"])
    def echo(note: str, who: dict[str, Any], password: str, url: str) -> dict[str, Any]:
        return {
            "text": f"got {note} and {who['pin']} with {password}",
            "url": url,
            "list": [note, {"k": password}],
        }

    @govern(sensitive_fields=["note"])
    def fail(note: str, api_key: str) -> None:
        raise ValueError(f"can't use {note} nor {api_key}: {made.every('exception')}")

    echo(
        made.word("sensitive field"),
        {"pin": made.word("sensitive pointer")},
        made.word("password"),
        made.url("url"),
    )
    keep(
        echo.tool.invoke(
            note=made.word("note"), who={"pin": made.word("pin")}, password=made.word("p"), url="u"
        )
    )
    quietly(lambda: fail(made.word("note in error"), made.word("key in error")))
    keep(fail.tool.invoke(note=made.word("note in error 2"), api_key=made.word("key in error 2")))

    @govern
    def result(kind: str) -> Any:
        if kind == "dict":
            return {
                "password": made.word("result key"),
                "headers": [
                    ["X-Api-Key", made.word("header pair")],
                    ["Cookie", f"session={made.password('cookie')}"],
                ],
                "nested": {"client_secret": made.word("nested key"), made.github("a key"): 1},
                "argv": ["curl", "--token", made.password("flag"), "https://example.com"],
            }
        return made.every(f"result {kind}")

    result("text")
    result("dict")
    result.tool.invoke(kind="dict")

    # exceptions in every relation
    @govern(
        retry={"max_attempts": 3, "initial_delay_ms": 1, "retry_on": ["dependency_unavailable"]}
    )
    def nested(kind: str) -> None:
        inner = ConnectionError(made.every("inner exception"))
        inner.add_note(made.every("note"))
        if kind == "group":
            raise ExceptionGroup(made.every("group"), [inner, KeyError(made.github("member"))])
        if kind == "cause":
            raise RuntimeError(made.every("outer")) from inner
        try:
            raise inner
        except ConnectionError:
            if kind == "context":
                raise LookupError(made.every("with context"))  # noqa: B904
            raise

    for kind in ("group", "cause", "context", "plain"):
        quietly(lambda kind=kind: nested(kind))  # type: ignore[misc]
        keep(nested.tool.invoke(kind=kind))

    # asynchronous, streams, timeouts
    @govern
    async def later(token: str) -> str:
        await asyncio.sleep(0)
        return f"used {token}: {made.every('coroutine')}"

    @govern(persistence="preview_and_persist")
    def lines(password: str) -> Iterator[str]:
        for number in range(20):
            yield f"{number} {password} {made.every('stream')}"

    @govern(persistence="preview_and_persist")
    async def alines(secret: str) -> AsyncIterator[Any]:
        yield {"password": made.word("item"), "echo": secret}
        yield f"{secret} {made.github('async item')}"
        raise OSError(f"lost {secret}: {made.aws('stream error')}")

    @govern(timeout_ms=30)
    def slow(password: str) -> str:
        time.sleep(0.2)
        return password

    async def drain() -> None:
        await later(made.word("token argument"))
        keep(await later.tool.ainvoke(token=made.word("token argument 2")))
        with contextlib.suppress(OSError):
            async for _ in alines(made.word("secret argument")):
                pass

    asyncio.run(drain())
    list(lines(made.word("stream argument")))
    lines.tool.invoke(password=made.word("stream argument 2"))
    for chunk in govern(lambda: iter(()), name="empty")() or ():
        del chunk
    stream = lines(made.word("abandoned"))
    next(stream)
    stream.close()
    quietly(lambda: slow(made.word("timeout")))
    keep(slow.tool.invoke(password=made.word("timeout 2")))

    # large results, also obliged ones
    @govern(max_inline_chars=2000, sensitive_fields=["note"])
    def large(kind: str, note: str) -> Any:
        filler = "lorem ipsum dolor sit amet\n" * 40
        if kind == "dict":
            return [{"password": made.word("row"), "text": filler, "echo": note} for _ in range(20)]
        if kind == "bytes":
            return f"{filler}{note} {made.every('bytes')}{filler * 5}".encode()
        if kind == "path":
            path = folder / "large.env"
            path.write_text(
                f"{filler * 5}SECRET_KEY={made.password('file')}\n{made.every('file')}\n{note}\n"
            )
            return path
        return (
            filler + f"{note} {made.every('large text')}" + filler * 5 + made.every("tail") + note
        )

    @govern
    def obliged_large(password: str) -> dict[str, Any]:
        return {
            "password": made.word("obliged"),
            "text": f"{password} {made.every('obliged text')}" * 3,
        }

    for kind in ("text", "dict", "bytes", "path"):
        large(kind, made.word(f"large {kind}"))
        large.tool.invoke(kind=kind, note=made.word(f"large {kind} 2"))
    delivered = str(obliged_large(made.word("obliged argument")))
    said.append(delivered)

    # decisions: denied, asked, broken, invalid
    @govern(sensitive_fields=["note"])
    def deny(note: str, command: str) -> str:
        raise AssertionError("ran")

    @govern(sensitive_fields=["note"])
    def ask(note: str, password: str, command: str) -> str:
        return f"{note} {password} {command}"

    @govern
    def broken(password: str, command: str) -> str:
        raise AssertionError("ran")

    def check(arguments: Mapping[str, Any]) -> None:
        raise ValueError(f"bad: {arguments} {made.every('validate')}")

    @govern(validate=check)
    def checked(password: str) -> None:
        raise AssertionError("ran")

    def command() -> str:
        key, user = made.password("header"), made.password("user")
        return f"curl -H 'X-Api-Key: {key}' --user bob:{user} {made.url('command')}"

    keep(quietly(lambda: deny(made.word("denied"), command())))
    keep(deny.tool.invoke(note=made.word("denied 2"), command=command()))
    deny.tool.check(note=made.word("checked"), command=command())
    keep(quietly(lambda: ask(made.word("asked"), made.word("asked password"), command())))
    at.governor.approvals.approver = FixedApprover(
        ApprovalAnswer(True, answered_by="user:ann", reason=f"fine, with {made.github('answer')}")
    )
    keep(quietly(lambda: ask(made.word("approved"), made.word("approved password"), command())))
    keep(ask.tool.invoke(note=made.word("n"), password=made.word("p"), command=command()))
    at.governor.approvals.approver = FixedApprover(
        ApprovalAnswer(False, answered_by="user:ann", reason=f"no: {made.github('no')}")
    )
    keep(quietly(lambda: ask(made.word("rejected"), made.word("rejected password"), command())))
    at.governor.approvals.approver = None
    waiting = keep(
        quietly(lambda: ask(made.word("resumed"), made.word("resumed password"), command()))
    )
    store: ApprovalStore = at.governor.approvals.store
    store.answer(waiting.request_id, ApprovalAnswer(True, answered_by="user:ann"))
    keep(at.governor.resume(waiting.invocation_id))
    keep(quietly(lambda: broken(made.word("broken"), command())))
    keep(broken.tool.invoke(password=made.word("broken 2"), command=command()))
    keep(quietly(lambda: checked(made.word("checked value"))))
    keep(quietly(lambda: echo(**{made.github("argument name"): 1})))
    keep(echo.tool.invoke({made.github("argument name 2"): made.every("unknown argument")}))

    # internal arguments, LangChain, environment, processes
    @govern(internal_only_fields=["api_key"])
    def internal(query: str, api_key: str = "") -> str:
        return f"{query} with {api_key}"

    @govern
    def opened(credential: SecretStr) -> str:
        return f"opened with {credential.get_secret_value()}"

    @govern
    def environment() -> dict[str, str]:
        return {
            "PATH": "/bin",
            "GITHUB_TOKEN": made.word("environment"),
            "DB_URL": made.url("environment"),
        }

    @govern
    def process() -> subprocess.CompletedProcess[str]:
        name = "CANARY_" + "PASSWORD"
        monkeypatch.setenv(name, made.word("process environment"))
        return subprocess.run(["/usr/bin/env"], capture_output=True, text=True, check=False)

    internal("q", api_key=made.word("internal"))
    quietly(lambda: opened(SecretStr(made.word("SecretStr"))))
    environment()
    environment.tool.invoke()
    process()

    @langchain_tool
    def search(query: str, password: str) -> str:
        """Search."""
        if query == "fail":
            raise ValueError(f"{password} {made.every('LangChain error')}")
        return f"{query} {password} {made.every('LangChain result')}"

    governed = govern(search)
    call = {"name": "search", "id": "1", "type": "tool_call"}
    governed.invoke({**call, "args": {"query": "a", "password": made.word("LangChain argument")}})
    quietly(
        lambda: governed.invoke(
            {**call, "args": {"query": "fail", "password": made.word("LangChain failing")}}
        )
    )
    quietly(
        lambda: governed.invoke(
            {**call, "args": {"query": made.every("bad"), "password": 1, "more": made.word("x")}}
        )
    )
    return said


def secret_hooks(made: Canaries) -> Hooks:
    hooks = Hooks()

    @hooks.on("pre_tool_use")
    def before(context: HookContext) -> list[Any]:
        text = f"{made.every('hook message')} {context.arguments}"
        outputs: list[Any] = [Message(text), AdditionalContext(text, source=text)]
        if context.tool_name == "stopped":
            outputs.append(Stop(text))
        if context.tool_name == "hooked":
            outputs.append(PermissionResult("deny", text))
        return outputs

    @hooks.on("post_tool_use")
    @hooks.on("post_tool_use_failure")
    @hooks.on("result_persistence")
    def after(context: HookContext) -> list[Any]:
        raise RuntimeError(f"hook failed on {context} {made.every('hook exception')}")

    return hooks


@pytest.mark.parametrize("capture", CAPTURES)
def test_no_byte_of_any_secret_leaves(
    capture: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    made = Canaries(random.SystemRandom().randrange(1 << 32))
    kept = tmp_path / "kept"
    kept.mkdir()
    with contextlib.contextmanager(world)(kept, capture, made) as at:
        said = run_everything(at, tmp_path, monkeypatch)
        leaks = at.leaks(caplog.text)
    leaks += [
        leak
        for text in said
        for leak in made.found_in("words of a refusal, error or obliged result", text)
    ]
    assert len(made.made) > 300
    assert not leaks, "\n".join(leaks[:40])


@pytest.mark.parametrize("capture", ["NO_CONTENT", "SPAN_AND_EVENT"])
def test_what_hooks_say_and_raise_is_clean(
    capture: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = Canaries(random.SystemRandom().randrange(1 << 32))
    said: list[str] = []
    with contextlib.contextmanager(world)(tmp_path, capture, made, secret_hooks(made)) as at:

        def echo(password: str) -> str:
            return f"{password} {made.every('result')}"

        for name in ("echo", "stopped", "hooked", "ask_hooked"):
            governed = at.governor.govern(echo, name=name)
            outcome = quietly(lambda governed=governed: governed(made.password("argument")))  # type: ignore[misc]
            said.append(str(outcome) if isinstance(outcome, GovernedOutcome) else "")
            result = governed.tool.invoke(password=made.password("argument"))
            said.append(f"{result.error} {result.summary}")
        leaks = at.leaks(caplog.text)
    leaks += [leak for text in said for leak in made.found_in("words of a refusal", text)]
    assert not leaks, "\n".join(leaks[:40])


def test_the_search_finds_8_characters_of_a_secret_in_any_form() -> None:
    made = Canaries(1)
    secret = made.word("test")
    assert made.found_in("text", f"xx{secret[5:13]}yy")
    assert made.found_in("bytes", secret.encode().hex().encode())
    assert not made.found_in("text", f"xx{secret[5:12]}-yy")
