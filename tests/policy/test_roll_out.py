"""A policy of one's own rolled out by settings alone: signed, fetched, watched, and compared in shadow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bundle_server import BundleServer, running_server
from policy_inputs import make_document

from agenttool_otel import Governor, ToolDenied
from agenttool_otel.authoring.building import SigningKey, build_bundle
from agenttool_otel.authoring.project import load_project
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.source import ReloadResult
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.open import OpenedPolicy, open_engines
from agenttool_otel.testing import capture

SECRET = "-".join(["a secret of tests", "of thirty-two bytes", "or more"])
FAR = 86_400.0
"""Seconds between two looks in tests that look themselves."""


def _rules(root: Path, tool: str, revision: str = "acme-1") -> Path:
    """Rules on top of the stock bundle that deny one tool."""
    root.mkdir(parents=True, exist_ok=True)
    (root / ".manifest").write_text(json.dumps({"revision": revision}))
    (root / "freeze.rego").write_text(
        "package agenttool.custom.freeze\n\n"
        'deny contains {"rule": "acme.freeze", "message": "frozen"} if '
        f'input.tool.name == "{tool}"\n'
    )
    return root


def _archive(root: Path, secret: str = SECRET) -> bytes:
    return build_bundle(load_project(root), signing=SigningKey(secret, "HS256"))


def _open(seen: list[ReloadResult] | None = None, **settings: Any) -> OpenedPolicy:
    done: list[ReloadResult] = [] if seen is None else seen
    return open_engines(
        Settings.load({}, policy_reload=FAR, **settings),
        None,
        data=None,
        extension=None,
        on_reload=done.append,
    )


def _decided(opened: OpenedPolicy, name: str) -> Any:
    decider = Decider(opened.engines, shadow_engines=opened.shadow, timeout=30)
    document = make_document()
    document["tool"] = {**document["tool"], "name": name, "read_only": True}
    return decider.decide(document)


@pytest.fixture
def server() -> Iterator[BundleServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key.txt"
    file.write_text(SECRET)
    return file


def test_an_extension_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_EXTENSION", str(_rules(tmp_path / "own", "deploy")))
    with capture(policy=default_bundle_path()) as captured:
        deploy = captured.governor.govern(lambda: 1, name="deploy", read_only=True)
        with pytest.raises(ToolDenied, match="frozen"):
            deploy()
    assert captured.span.attributes["agenttool.policy.revision"].startswith("acme-1+")


def test_a_changed_extension_decides_the_next_call(tmp_path: Path) -> None:
    root = _rules(tmp_path / "own", "deploy")
    opened = _open(policy_extension=str(root))
    _rules(root, "release", "acme-2")
    assert [source.reload().status for source in opened.sources] == ["activated"]
    assert _decided(opened, "release").rule_ref == "acme.freeze"
    assert opened.engines[0].revision.startswith("acme-2+agenttool-stock-")
    opened.close()


def test_a_broken_extension_leaves_the_last_good(tmp_path: Path) -> None:
    root = _rules(tmp_path / "own", "deploy")
    seen: list[ReloadResult] = []
    opened = _open(seen, policy_extension=str(root))
    # loads, and can have no effect: only the joined bundle shows it
    (root / "freeze.rego").write_text(
        "package agenttool.custom.freeze\n\ndenny contains x if x := 1"
    )
    assert opened.sources[0].reload().status == "failed"
    assert [result.status for result in seen] == ["failed"]
    assert _decided(opened, "deploy").rule_ref == "acme.freeze"
    opened.close()


def test_the_data_file_is_watched(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    asks = {"agenttool": {"settings": {"approval": {"always_ask": ["deploy"]}}}}
    file.write_text("{}")
    opened = _open(policy_data=str(file))
    before = _decided(opened, "deploy").behavior
    file.write_text(json.dumps(asks))
    assert [source.reload().status for source in opened.sources] == ["activated"]
    assert (before, _decided(opened, "deploy").behavior) == ("allow", "ask")
    opened.close()


def test_two_places_that_change_are_both_in_use(tmp_path: Path) -> None:
    root = _rules(tmp_path / "own", "deploy")
    file = tmp_path / "settings.json"
    file.write_text("{}")
    opened = _open(policy_extension=str(root), policy_data=str(file))
    _rules(root, "release")
    file.write_text(
        json.dumps({"agenttool": {"settings": {"approval": {"always_ask": ["other"]}}}})
    )
    for source in opened.sources:
        source.reload()
    found = [_decided(opened, name).behavior for name in ("release", "other", "deploy")]
    assert found == ["deny", "ask", "allow"]
    opened.close()


def test_a_signed_extension_is_fetched_with_key_and_token(
    tmp_path: Path, server: BundleServer, key_file: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first" + "-token")
    server.answer = (200, {"ETag": '"1"'}, _archive(_rules(tmp_path / "own", "deploy")))
    opened = _open(
        policy_extension=server.url,
        policy_key_file=str(key_file),
        policy_algorithm="HS256",
        policy_token_file=str(token),
    )
    assert _decided(opened, "deploy").rule_ref == "acme.freeze"
    token.write_text("second" + "-token")
    assert opened.sources[0].reload().status == "unchanged"
    sent = [request["authorization"] for request in server.seen]
    assert sent == ["Bearer first-token", "Bearer second-token"]
    assert server.seen[1]["if-none-match"] == '"1"'
    opened.close()


def test_an_extension_of_another_key_is_not_activated(
    tmp_path: Path, server: BundleServer, key_file: Path
) -> None:
    server.answer = (200, {"ETag": '"1"'}, _archive(_rules(tmp_path / "own", "deploy")))
    opened = _open(
        policy_extension=server.url, policy_key_file=str(key_file), policy_algorithm="HS256"
    )
    other = _archive(_rules(tmp_path / "own", "nothing"), SECRET[::-1])
    server.answer = (200, {"ETag": '"2"'}, other)
    result = opened.sources[0].reload()
    assert (result.status, "signature is wrong" in result.error) == ("failed", True)
    assert _decided(opened, "deploy").rule_ref == "acme.freeze"
    opened.close()


def test_with_a_key_an_unsigned_extension_is_refused(tmp_path: Path, key_file: Path) -> None:
    with pytest.raises(PolicyLoadError, match="not signed"):
        Governor(
            policy_extension=str(_rules(tmp_path / "own", "deploy")),
            policy_key_file=str(key_file),
            policy_algorithm="HS256",
        )


def test_a_shadow_policy_is_asked_for_the_record(tmp_path: Path) -> None:
    shadow = _rules(tmp_path / "next", "deploy")
    opened = _open(shadow_policy=str(shadow))
    verdict = _decided(opened, "deploy")
    assert (verdict.behavior, verdict.shadow.behavior) == ("allow", "deny")
    _rules(shadow, "release")
    assert [source.reload().status for source in opened.sources] == ["activated"]
    assert _decided(opened, "deploy").shadow.behavior == "allow"
    opened.close()


def test_a_shadow_policy_does_not_hinder_the_real_one(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    decision = 'package agenttool.permission\n\ndecision := {"behavior": "%s"}\n'
    (base / "p.rego").write_text(decision % "deny")
    shadow = tmp_path / "next"
    shadow.mkdir()
    (shadow / "own.rego").write_text("package agenttool.custom.own\n\nx := 1\n")
    opened = open_engines(
        Settings.load({}, policy_reload=FAR, shadow_policy=str(shadow)),
        base,
        data=None,
        extension=None,
        on_reload=lambda result: None,
    )
    # the new base has a file of the same name as the shadow's: together they can't be used
    (base / "own.rego").write_text("package agenttool.custom.other\n\nx := 1\n")
    assert opened.sources[0].reload().status == "activated"
    opened.close()


def test_a_governor_notices_a_new_extension_by_itself(tmp_path: Path) -> None:
    root = _rules(tmp_path / "own", "other")
    with capture(
        policy=default_bundle_path(), policy_extension=str(root), policy_reload=0.1
    ) as captured:
        deploy = captured.governor.govern(lambda: 1, name="deploy", read_only=True)
        assert deploy() == 1
        _rules(root, "deploy")
        with pytest.raises(ToolDenied, match="frozen"):
            _call_until(deploy, time.monotonic() + 120)


def _call_until(tool: Callable[[], int], deadline: float) -> None:
    while time.monotonic() < deadline:
        tool()
        time.sleep(0.1)


SERVERS = {"policy_bundle": "http://one.example/b", "policy_extension": "http://two.example/b"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy_key_file": "KEY"}, "no policy that it could verify"),
        ({"policy_extension": "OWN", "policy_key_file": "/nowhere"}, "KEY_FILE can't be used"),
        ({"policy_extension": "OWN", "policy_token_file": "KEY"}, "no policy has a URL"),
        ({**SERVERS, "policy_token_file": "KEY"}, "is for one server"),
        ({"policy_extension": "OWN", "policy_ca_file": "KEY"}, "no policy has an https URL"),
        ({"policy_engine": "opa_server", "policy_reload": 5.0}, "POLICY_RELOAD can't be used"),
        ({"policy_engine": "opa_server", "policy_extension": "OWN"}, "policy_extension can't be"),
    ],
)
def test_what_would_be_without_effect_is_refused(
    settings: dict[str, Any], message: str, tmp_path: Path, key_file: Path
) -> None:
    places = {"KEY": str(key_file), "OWN": str(_rules(tmp_path / "own", "deploy"))}
    stated = {name: places.get(value, value) for name, value in settings.items()}
    with pytest.raises(ConfigurationError, match=message):
        Governor(opa_url="http://127.0.0.1:1", **stated)


def test_a_bundle_in_memory_can_not_be_watched() -> None:
    with pytest.raises(ConfigurationError, match="POLICY_RELOAD can't be used with a bundle"):
        Governor(load_bundle(default_bundle_path()), policy_reload=5.0)


def test_an_unknown_algorithm_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_ALGORITHM", "none")
    with pytest.raises(ConfigurationError, match="POLICY_ALGORITHM has to be one of"):
        Governor()
