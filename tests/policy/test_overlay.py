"""Data and rules on top of a bundle: joined, never replaced, and only where the extension says it
lives.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

BASE = b'package agenttool.permission\n\ndecision := {"behavior": data.agenttool.settings.word} if true\n'


def bundle(files: dict[str, bytes], **manifest: Any) -> Bundle:
    if manifest:
        files = {**files, ".manifest": json.dumps(manifest).encode()}
    return bundle_from_files(files, origin="test")


def base() -> Bundle:
    data = {"agenttool": {"settings": {"word": "deny", "other": {"a": 1}}}}
    return bundle({"base.rego": BASE, "data.json": json.dumps(data).encode()}, revision="r1")


def test_data_wins_member_by_member_and_changes_the_revision() -> None:
    made = overlay(base(), data={"agenttool": {"settings": {"word": "allow"}}})
    assert made.data["agenttool"]["settings"] == {"word": "allow", "other": {"a": 1}}
    assert made.revision.startswith("r1+")
    assert made.digest != base().digest
    assert overlay(base()) == base()


def test_an_extension_joins_and_replaces_nothing() -> None:
    rules = bundle(
        {"custom.rego": b"package agenttool.custom\n\nx := 1\n"}, roots=["agenttool/custom"]
    )
    assert set(overlay(base(), extension=rules).modules) == {"base.rego", "custom.rego"}
    with pytest.raises(PolicyLoadError, match=r"replaces base\.rego"):
        overlay(base(), extension=bundle({"base.rego": b"package other\n\nx := 1\n"}))


def test_rules_outside_the_own_roots_are_refused_by_line() -> None:
    rules = bundle(
        {"sly.rego": b"package agenttool.permission\n\nx := 1\n"}, roots=["agenttool/custom"]
    )
    with pytest.raises(
        PolicyLoadError, match=r"sly\.rego:1: data\.agenttool\.permission lies outside"
    ):
        overlay(base(), extension=rules)


def test_what_only_fails_when_it_is_compiled_is_refused_at_load() -> None:
    broken = b"package agenttool.permission\n\ndecision := x if {\n\ty := x\n\tx := input.n[y]\n}\n"
    with pytest.raises(PolicyLoadError):
        EmbeddedEngine(bundle({"broken.rego": broken}))
