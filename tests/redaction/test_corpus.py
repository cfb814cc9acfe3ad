"""The figures that the engine promises on the corpus, and that Python's re finds the same."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel.names import RedactionState
from agenttool_otel.redaction import RedactionSettings, Redactor, default_redactor


def _missed(rows: list[dict[str, Any]], redactor: Redactor) -> tuple[list[str], list[str]]:
    missed, false = [], []
    for row in rows:
        result = redactor.redact_text(row["input"])
        assert result.state is not RedactionState.FAILED, row["id"]
        if row["expected"] == "redact" and (
            result.value == row["input"] or (row["secret"] and row["secret"] in result.value)
        ):
            missed.append(row["id"])
        if row["expected"] == "keep" and result.value != row["input"]:
            false.append(row["id"])
    return missed, false


def test_the_corpus_reaches_its_recall_and_precision(secrets_corpus: list[dict[str, Any]]) -> None:
    missed, false = _missed(secrets_corpus, default_redactor())
    secret = sum(row["expected"] == "redact" for row in secrets_corpus)
    harmless = sum(row["expected"] == "keep" for row in secrets_corpus)
    assert len(missed) <= 0.03 * secret, missed
    assert len(false) <= 0.01 * harmless, false


def test_hard_rows_of_the_corpus_are_all_right(secrets_corpus: list[dict[str, Any]]) -> None:
    hard = [row for row in secrets_corpus if row["kind"].startswith("hard")]
    assert len(hard) >= 20
    assert _missed(hard, default_redactor()) == ([], [])


@pytest.fixture
def with_re2(secrets_corpus: list[dict[str, Any]]) -> list[str]:
    return [default_redactor().redact_text(row["input"]).value for row in secrets_corpus]


@pytest.mark.slow
def test_python_re_gives_the_same_output(
    secrets_corpus: list[dict[str, Any]], with_re2: list[str], python_re: Redactor
) -> None:
    for row, value in zip(secrets_corpus, with_re2, strict=True):
        assert python_re.redact_text(row["input"]).value == value, row["id"]


def test_redacting_corpus_rows_twice_changes_nothing(secrets_corpus: list[dict[str, Any]]) -> None:
    redactor = default_redactor()
    for row in secrets_corpus:
        once = redactor.redact_text(row["input"])
        again = redactor.redact_text(once.value)
        assert again.value == once.value, row["id"]
        assert again.redactions == (), row["id"]


def test_the_gate_never_hides_what_the_detectors_find(secrets_corpus: list[dict[str, Any]]) -> None:
    text = default_redactor()._cleaner().text
    for row in secrets_corpus:
        if text.spans(row["input"]):
            assert text.suspicious(row["input"]), row["id"]


def test_an_aws_key_that_repeats_letters_is_still_a_key() -> None:
    key = "AK" + "IA2AD2P42PSP4UDASP"
    assert key not in str(Redactor(RedactionSettings()).redact_text(f"key {key}, x").value)
