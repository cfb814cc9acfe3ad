"""What somebody set about the policy takes effect, or nothing runs; it is never dropped
silently.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

import agenttool_otel
from agenttool_otel import Governor, ToolDenied, default_governor
from agenttool_otel.call.runtime import replace_default
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.testing import StaticEngine


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Any:
    for variable in Settings.variables().values():
        monkeypatch.delenv(variable, raising=False)
    before = replace_default(None)
    yield
    replace_default(before)


@pytest.mark.parametrize("text", ["opa_server", "OPA_SERVER", "opa-server", " Opa-Server\n"])
def test_an_engine_is_known_however_it_is_written(text: str) -> None:
    settings = Settings.load(
        {"AGENTTOOL_POLICY_ENGINE": text, "AGENTTOOL_POLICY_PRESET": " strict "}
    )
    assert (settings.policy_engine, settings.policy_preset, settings.problems) == (
        "opa_server",
        "strict",
        (),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POLICY_ENGINE", "opa"),
        ("POLICY_PRESET", "strickt"),
        ("POLICY_TIMEOUT", "nan"),
        ("POLICY_TIMEOUT", "0"),
        ("POLICY_TIMEOUT", "1s"),
        ("RESOLVE_DNS", "sure"),
        ("APPROVALS_TTL", "5m"),
    ],
)
def test_an_unreadable_setting_that_may_be_strict_stops_all(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AGENTTOOL_{name}", value)
    with pytest.raises(ConfigurationError, match=f"AGENTTOOL_{name} has to be"):
        Governor()
    ran: list[int] = []
    act = default_governor().govern(lambda: ran.append(1), name="act", read_only=True)
    with pytest.raises(ToolDenied, match=f"AGENTTOOL_{name}"):
        act()
    assert ran == []


@pytest.mark.parametrize("name", ["PRESET", "POLICY_MOD", "REQUIRE_CONTEX", "ROOT"])
def test_a_misspelt_variable_stops_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"AGENTTOOL_{name}", "strict")
    with pytest.raises(ConfigurationError, match=f"AGENTTOOL_{name} is no variable .*did you mean"):
        Governor()


def test_a_variable_like_none_of_ours_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings = Settings.load({"AGENTTOOL_QUANTUM_LINK": "hunter2", "QUANTUM_LINK": "x"})
    assert settings == Settings()
    assert [record.getMessage() for record in caplog.records] == [
        "AGENTTOOL_QUANTUM_LINK is ignored: this package has no such variable"
    ]


def test_every_variable_in_the_source_is_known(caplog: pytest.LogCaptureFixture) -> None:
    source = Path(agenttool_otel.__file__).parent
    names: set[str] = set()
    for path in source.rglob("*.py"):
        names.update(re.findall(r'"(AGENTTOOL_[A-Z_]+[A-Z])"', path.read_text("utf-8")))
    assert "AGENTTOOL_DIGEST_KEY" in names
    with caplog.at_level(logging.WARNING):
        settings = Settings.load(dict.fromkeys(names - set(Settings.variables().values()), "x"))
    assert settings.problems == ()
    assert not caplog.records


def test_an_empty_variable_is_none() -> None:
    assert (
        Settings.load({"AGENTTOOL_POLICY_ENGINE": "", "AGENTTOOL_POLICY_TIMEOUT": " "})
        == Settings()
    )


def test_what_is_said_about_a_variable_never_has_its_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = [name.removeprefix("AGENTTOOL_") for name in Settings.variables().values()]
    with caplog.at_level(logging.WARNING):
        settings = Settings.load({f"AGENTTOOL_{name}": "hunter2" for name in names})
    assert "POLICY_MODE is ignored" in caplog.text
    assert "POLICY_RELOAD is ignored" in caplog.text
    assert "hunter2" not in caplog.text
    assert "hunter2" not in "".join(settings.problems)


def test_code_may_not_name_an_engine_that_there_is_not() -> None:
    with pytest.raises(ConfigurationError, match="policy_engine"):
        Governor(policy_engine="OPA")
    with pytest.raises(ConfigurationError, match="policy_mode"):
        Governor(policy_mode="shaddow")
    with pytest.raises(ConfigurationError, match="policy_timeout"):
        Governor(policy=StaticEngine("allow"), policy_timeout=float("nan"))


@pytest.mark.parametrize("policy", [StaticEngine("allow"), [StaticEngine("allow")]])
@pytest.mark.parametrize(
    "option",
    [
        {"extension": "rules"},
        {"policy_data": {"agenttool": {"settings": {"preset": "strict"}}}},
        {"policy_preset": "strict"},
    ],
)
def test_rules_and_data_that_an_engine_can_not_have_are_refused(
    policy: Any, option: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        Governor(policy=policy, **option)
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        Governor(policy_engine="opa_server", opa_url="http://127.0.0.1:9", **option)


def test_an_environments_preset_yields_to_code_not_to_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_PRESET", "strict")
    Governor(policy=StaticEngine("allow"))
    with pytest.raises(ConfigurationError, match="policy_preset"):
        Governor(policy_engine="opa_server", opa_url="http://127.0.0.1:9")


def preset_of(governor: Governor) -> Any:
    return governor.decider.engines[0].bundle.data["agenttool"]["settings"]["preset"]  # type: ignore[attr-defined]


def test_data_in_code_is_laid_over_the_preset_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(
        '{"agenttool": {"settings": {"network": {"listed_only": true}}}, "mine": {"x": 1}}'
    )
    over = {
        "agenttool": {"settings": {"network": {"allowed_hosts": ["a.example"]}}},
        "mine": {"y": 2},
    }
    governor = Governor(policy_preset="strict", policy_data=over, settings=None)
    assert preset_of(governor) == "strict"
    settings = Settings.load(policy_preset="strict", policy_data=file)
    data = Governor(settings=settings, policy_data=over).decider.engines[0].bundle.data  # type: ignore[attr-defined]
    assert data["agenttool"]["settings"] == {
        "preset": "strict",
        "network": {"listed_only": True, "allowed_hosts": ["a.example"]},
    }
    assert data["mine"] == {"x": 1, "y": 2}
    observing = {"agenttool": {"settings": {"preset": "observe"}}}
    assert preset_of(Governor(policy_preset="strict", policy_data=observing)) == "observe"
