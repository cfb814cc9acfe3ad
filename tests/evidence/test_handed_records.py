"""Decision records as log records of OpenTelemetry, and as lines that a function gets."""

from __future__ import annotations

from pathlib import Path

import pytest
import semconv_check
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from agenttool_otel import Governor, TelemetrySettings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.chain import Reading, read_lines
from agenttool_otel.names import Attr
from agenttool_otel.values.canonical import DIGEST_KEY

KEY = "a key of the tests"


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIGEST_KEY, KEY)
    monkeypatch.chdir(tmp_path)  # a checkout below /root lies in a sensitive place


def make_calls(decisions: str, telemetry: TelemetrySettings) -> Governor:
    """Make some calls that are allowed or need an answer, and return the closed Governor."""
    governor = Governor(decisions=decisions, telemetry=telemetry, approver=lambda request: True)
    read = governor.govern(
        lambda path: "ok", name="read", read_only=True, access_kinds=["file_read"]
    )
    write = governor.govern(lambda path: "ok", name="write", write_effects=["local_persistent"])
    for path in ("notes.txt", "src/a.txt", "src/b.txt"):
        read(path)
    write("notes.txt")
    governor.close()
    return governor


def read_back(texts: list[str], folder: Path) -> tuple[list[str], Reading]:
    """Write texts to a file; return the kinds of the records that are read there."""
    path, reading = folder / "kept.jsonl", Reading()
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    lines = list(read_lines([path], KEY.encode(), reading))
    return [line["object"] for line in lines], reading


class Logs:
    """A provider of loggers that keeps what is emitted."""

    def __init__(self) -> None:
        self.exporter = InMemoryLogRecordExporter()
        self.provider = LoggerProvider()
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))
        self.settings = TelemetrySettings(
            logger_provider=self.provider, tracer_provider=TracerProvider()
        )

    def texts(self) -> list[str]:
        """The bodies of the records."""
        return [str(each.log_record.body) for each in self.exporter.get_finished_logs()]


def test_the_bodies_of_log_records_are_a_file(tmp_path: Path) -> None:
    logs = Logs()
    make_calls("otel", logs.settings)
    kinds, reading = read_back(logs.texts(), tmp_path)
    assert set(kinds) == {"agenttool.decision", "agenttool.answer"}
    assert (reading.lines, reading.lost) == (len(logs.texts()), 0)


def test_log_records_are_in_the_registry() -> None:
    logs = Logs()
    make_calls("otel", logs.settings)
    assert semconv_check.check_logs(logs.exporter.get_finished_logs()) == []


def test_a_log_record_is_in_the_trace_of_its_call() -> None:
    logs = Logs()
    make_calls("otel", logs.settings)
    (first, *_) = logs.exporter.get_finished_logs()
    assert f"{first.log_record.trace_id:032x}" in str(first.log_record.body)
    assert (first.log_record.attributes or {})[Attr.PERMISSION_BEHAVIOR] == "allow"


def test_a_function_gets_the_lines_of_a_file(tmp_path: Path) -> None:
    texts: list[str] = []
    make_calls("", TelemetrySettings(decision_subscribers=(texts.append,)))
    kinds, _ = read_back(texts, tmp_path)
    assert kinds.count("agenttool.answer") == 1


def test_a_function_and_a_file_get_the_same_records(tmp_path: Path) -> None:
    texts: list[str] = []
    path = tmp_path / "d.jsonl"
    make_calls(f"file:{path}", TelemetrySettings(decision_subscribers=(texts.append,)))
    assert len(path.read_text("utf-8").splitlines()) == len(texts) > 0


def test_a_line_that_a_function_refuses_is_counted(tmp_path: Path) -> None:
    texts: list[str] = []

    def refusing(text: str) -> None:
        if '"sequence":2,' in text:
            raise ValueError
        texts.append(text)

    governor = make_calls("", TelemetrySettings(decision_subscribers=(refusing,)))
    _, reading = read_back(texts, tmp_path)
    assert reading.lost == 1
    assert governor.telemetry.losses.total == 1


def test_a_function_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIGEST_KEY)
    with pytest.raises(ConfigurationError, match=DIGEST_KEY):
        Governor(telemetry=TelemetrySettings(decision_subscribers=(print,)))


def test_log_records_without_a_key_are_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(DIGEST_KEY)
    logs = Logs()
    make_calls("otel", logs.settings)
    assert logs.texts() == []
    assert DIGEST_KEY in caplog.text
