"""A text in which nothing was found is not looked at again, and what is found never depends on that."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from blind_values import BLIND_SETS, blind_rows
from redaction_cases import ghp

from agenttool_otel.redaction import RedactionSettings, Redactor, Span
from agenttool_otel.redaction.text import TextRedactor

PATH = "/srv/notes-990364269.txt"  # nine digits may be a personal number
KINDS = frozenset({"email", "phone", "iban"})


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that detectors looked at."""
    looked: list[str] = []
    spans = TextRedactor.spans

    def noted(redactor: TextRedactor, text: str) -> list[Span]:
        looked.append(text)
        return spans(redactor, text)

    monkeypatch.setattr(TextRedactor, "spans", noted)
    return looked


def test_a_text_without_finds_is_looked_at_once(looks: list[str]) -> None:
    redactor = Redactor()
    for value in ({"path": PATH}, [{"place": PATH}], PATH):
        assert redactor.redact(value).value == value
    assert looks == [PATH]


def test_a_secret_is_taken_out_each_time() -> None:
    redactor = Redactor()
    secret = ghp
    for _ in range(3):
        assert secret not in redactor.redact({"note": f"use {secret}"}).value["note"]


def test_only_digests_of_texts_are_kept() -> None:
    redactor = Redactor()
    redactor.redact({"path": PATH})
    assert [len(kept) for kept in redactor._cleaner().text._clean] == [32]


def test_a_detector_of_ones_own_is_asked_each_time() -> None:
    found: list[bytes] = []

    class Learning:
        name = "learning"

        def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
            for secret in found:
                if (at := data.find(secret)) >= 0:
                    yield Span(at, at + len(secret), "learnt", "learning")

    redactor = Redactor(RedactionSettings(extra_detectors=(Learning(),)))
    assert redactor.redact(PATH).value == PATH
    found.append(b"990364269")
    assert "990364269" not in redactor.redact(PATH).value


def test_a_kinder_redactor_looks_at_no_such_text(looks: list[str]) -> None:
    strict = Redactor()
    kinder = strict.keeping(KINDS)
    strict.redact(PATH)
    assert kinder.redact({"place": PATH}).value == {"place": PATH}
    assert looks == [PATH]


SETS = sorted(path.stem for path in BLIND_SETS.glob("*.toml"))


@pytest.mark.parametrize("name", [name for name in SETS if name != "harmless_code_and_documents"])
def test_a_kinder_redactor_finds_what_it_would_alone(name: str) -> None:
    strict = Redactor()
    kinder = strict.keeping(KINDS)
    alone = Redactor(RedactionSettings(kept_kinds=KINDS))
    for key in ("secrets", "harmless"):
        for row in blind_rows(name, key)[::4]:
            strict.redact(row.text)
            assert kinder.redact(row.text) == alone.redact(row.text)
