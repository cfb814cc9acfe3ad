"""What a wheel's build compiled is used for exactly what it was made from, and else compiled anew."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from parsed_bundles import parsings, word_of

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.engines import evaluation, shipped
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.engines.evaluation import Checked, CompiledBundle
from agenttool_otel.policy.engines.rvm import CompiledProgram
from agenttool_otel.policy.engines.shipped import shipped_form

TABLE = b"""package agenttool.permission
decision := {"behavior": data.word}
visible := true
"""


def bundle(word: str, rules: bytes = TABLE) -> Bundle:
    return bundle_from_files(
        {"p.rego": rules, "data.json": b'{"word": "%s"}' % word.encode()}, origin="t"
    )


def made_of(given: Bundle) -> Checked:
    return CompiledBundle(given, (EntryPoint.DECISION.value,)).checked


def form(given: Bundle, made: Checked | None = None) -> bytes:
    return shipped_form([given], (EntryPoint.DECISION.value,), made or made_of(given))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an installed wheel has the file; nothing is kept by processes meanwhile."""
    path = tmp_path / "stock.bin"
    monkeypatch.setattr(shipped, "PLACE", path)
    monkeypatch.setattr(evaluation, "recall_kept", lambda *_: None)
    monkeypatch.setattr(evaluation, "keep", lambda *_: None)
    monkeypatch.setattr(evaluation, "_shared", evaluation.LRUCache(4))
    return path


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Bundle]:
    """Each bundle that is parsed."""
    return parsings(monkeypatch)


def test_what_the_wheel_brings_is_not_compiled(place: Path, parsed: list[Bundle]) -> None:
    place.write_bytes(form(bundle("deny")))
    parsed.clear()
    engine = EmbeddedEngine(bundle("deny"))
    assert (word_of(engine), engine.interpreted_because, parsed) == ("deny", "", [])


@pytest.mark.parametrize(
    "other",
    [bundle("allow"), bundle("deny", TABLE + b"unused := 1\n")],
    ids=["data", "rules"],
)
def test_another_bundle_is_compiled(place: Path, parsed: list[Bundle], other: Bundle) -> None:
    place.write_bytes(form(bundle("deny")))
    parsed.clear()
    assert word_of(EmbeddedEngine(other)) == other.data["word"]
    assert parsed == [other]


def test_other_entry_points_are_compiled(place: Path, parsed: list[Bundle]) -> None:
    place.write_bytes(form(bundle("deny")))
    parsed.clear()
    names = (EntryPoint.DECISION, "data.agenttool.permission.visible")
    assert word_of(EmbeddedEngine(bundle("deny"), entry_points=names)) == "deny"
    assert parsed == [bundle("deny")]


@pytest.mark.parametrize("name", ["gordon-to-regorus", "agenttool-otel"])
def test_another_version_is_compiled(place: Path, parsed: list[Bundle], name: str) -> None:
    head, _, content = form(bundle("deny")).partition(b"\n")
    made_from = orjson.loads(head)
    made_from["versions"][name] = "0.0.1"
    place.write_bytes(orjson.dumps(made_from) + b"\n" + content)
    parsed.clear()
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert len(parsed) == 1


def test_other_policy_code_compiles_anew(
    place: Path, parsed: list[Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write_bytes(form(bundle("deny")))
    parsed.clear()
    monkeypatch.setattr(shipped, "_code", lambda: "edited")
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert len(parsed) == 1


@pytest.mark.parametrize("harm", ["cut", "changed", "empty", "no JSON", "no object"])
def test_a_harmed_file_is_as_none(place: Path, parsed: list[Bundle], harm: str) -> None:
    whole = form(bundle("deny"))
    place.write_bytes(
        {
            "cut": whole[:-1],
            "changed": whole[:-1] + b"x",
            "empty": b"",
            "no JSON": b"x" + whole,
            "no object": b"[]\n" + whole,
        }[harm]
    )
    parsed.clear()
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert len(parsed) == 1


def test_a_program_the_engine_refuses_is_compiled(place: Path, parsed: list[Bundle]) -> None:
    made = made_of(bundle("deny"))._replace(compiled=CompiledProgram(b"of another engine"))
    place.write_bytes(form(bundle("deny"), made))
    parsed.clear()
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert len(parsed) == 1
