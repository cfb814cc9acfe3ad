"""The package's own log lines are redacted before any handler of the program sees them."""

from __future__ import annotations

import logging

import pytest
from redaction_cases import ghp

LOGGER = logging.getLogger("agenttool_otel.approvals")


def test_a_log_line_is_redacted(caplog: pytest.LogCaptureFixture) -> None:
    LOGGER.warning("the approver failed: %s (%d tries)", f"token {ghp}", 3)
    assert caplog.messages == ["the approver failed: token [redacted:github_token] (3 tries)"]


def test_the_exception_of_a_log_line_is_redacted(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(f"refused: {ghp}")
    except ValueError:
        LOGGER.exception("the answer could not be taken")
    assert ghp not in caplog.text
    assert "ValueError: refused: [redacted:github_token]" in caplog.text


def test_a_log_line_with_bad_arguments_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    LOGGER.warning("%d tries", "many")
    assert caplog.messages == ["[log line withheld: TypeError]"]


def test_without_handlers_a_warning_still_reaches_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    LOGGER.warning("password=hunter2")
    LOGGER.info("not that urgent")
    assert capsys.readouterr().err == "password=[redacted:password]\n"


def test_log_lines_of_the_program_are_its_own(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("app").warning("password=hunter2")
    assert caplog.messages == ["password=hunter2"]
