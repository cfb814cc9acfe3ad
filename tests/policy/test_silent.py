"""Nothing silent: what can have no effect is refused, or told, when a policy is loaded."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agenttool_otel import Governor
from agenttool_otel.cli.policy.app import app
from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.input_schema import input_schema

HEAD = "package agenttool.custom.own\n\n"
FINDING = '{"rule": "own.rule", "message": "m"}'


def extension(folder: Path, text: str, package: str = HEAD) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "own.rego").write_text(package + text, encoding="utf-8")
    return folder


def allowing(*waives: str) -> str:
    return f'allow contains {{"rule": "own.a", "message": "m", "waives": {json.dumps(list(waives))}}} if true\n'


def effective(text: str) -> str:
    return f"deny contains {FINDING} if {{\n\t{text}\n}}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            allowing("agenttool.rules.paths.write_insid"),
            r"own.rego:3: waives.*did you mean.*write_inside",
        ),
        (
            allowing("agenttool.rules.paths.write_inside", "agenttool.rules.paths.nothing"),
            "no rule",
        ),
        (allowing("agenttool.rules.shell.critical_target"), "only denies"),
        (allowing("agenttool.rules.sql.unproven"), "only a person"),
        (allowing("agenttool.rules.declared.read_only"), "no question"),
        (
            f"denny contains {FINDING} if true\n",
            r"own.rego:3: data.agenttool.custom.own.denny .*did you mean.*deny",
        ),
        (f"asks contains {FINDING} if true\n", "asked by no decision"),
        (
            effective('input.tool.nmae == "x"'),
            r"own.rego:4: input.tool.nmae is not in .*did you mean 'name'",
        ),
        (effective('input.tol.name == "x"'), "did you mean 'tool'"),
        # after a variable only an evaluation tells
        (effective('input.facts.paths[_].inputs.x == "x"'), None),
        (effective('input.session.labels.whatever == "x"'), None),
        (effective('input.input.whatever.it.is == "x"'), None),
        (effective('input.actor.id.name == "x"'), "input.actor.id.name is not in"),
        (effective('input.approval.status == "x"'), None),
        (effective('input.approval.state == "x"'), "did you mean 'status'"),
        (allowing("agenttool.rules.paths.write_inside", "agenttool.rules.declared.writes"), None),
        (f"denied if true\ndeny contains {FINDING} if denied\n", None),
        ("# a note: denny, input.nothing\n" + effective("true"), None),
    ],
)
def test_an_extension_that_can_have_no_effect_is_refused(
    tmp_path: Path, text: str, told: str | None
) -> None:
    place = extension(tmp_path / "own", text)
    if told is None:
        Governor(extension=place).close()
        return
    with pytest.raises(PolicyLoadError, match=told):
        Governor(extension=place)
    done = CliRunner().invoke(app, ["check", str(place)])
    assert done.exit_code == 1
    assert "failed" in done.output


@pytest.mark.parametrize(
    "package", ["package acme.rules\n\n", "package agenttool.custom.own.deep\n\n"]
)
def test_rules_in_a_package_that_nobody_asks_are_refused(tmp_path: Path, package: str) -> None:
    with pytest.raises(PolicyLoadError, match="one level below"):
        Governor(extension=extension(tmp_path / "own", effective("true"), package))


def test_a_set_that_another_rule_reads_is_no_slip(tmp_path: Path) -> None:
    folder = extension(tmp_path / "own", effective("true"), "package acme.rules\n\n")
    (folder / "joined.rego").write_text(
        "package agenttool.custom.joined\n\ndeny contains finding if some finding in data.acme.rules.deny\n",
        "utf-8",
    )
    Governor(extension=folder).close()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"effects": {"agenttool.rules.shell.critical_target": "allow"}}, "only denies"),
        ({"effects": {"agenttool.rules.sql.unproven": "allow"}}, "only a person"),
        ({"effects": {"agenttool.rules.sql.unproven": "deny"}}, None),
        ({"effects": {"agenttool.rules.paths.read_outside": "allow"}}, None),
        ({"effects": {"agenttool.rules.paths.read_outsid": "allow"}}, "did you mean"),
        (
            {"roles": {"definitions": {"w": {"waives": ["agenttool.rules.sql.protected_table"]}}}},
            "only denies",
        ),
        (
            {
                "approval": {
                    "always_allow": [{"tools": ["a.*"], "rules": ["agenttool.rules.sql.prot*"]}]
                }
            },
            "only denies",
        ),
        (
            {
                "approval": {
                    "always_allow": [{"tools": ["a.*"], "rules": ["agenttool.rules.sql.*"]}]
                }
            },
            None,
        ),
        (
            {"presets": {"own": {"effects": {"agenttool.rules.shell.critical": "allow"}}}},
            "only denies",
        ),
    ],
)
def test_a_setting_that_can_have_no_effect_is_refused(
    settings: dict[str, Any], told: str | None
) -> None:
    data = {"agenttool": {"settings": settings}}
    if told is None:
        Governor(policy_data=data).close()
        return
    with pytest.raises(PolicyLoadError, match=told):
        Governor(policy_data=data)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("note", True), ({"tools": ["note"], "rules": ["agenttool.rules.declared.writes"]}, True), ("app.note", False),
        ("note*", False), ({"tools": ["app.note"], "rules": ["agenttool.rules.declared.writes"]}, False),
    ],
)  # fmt: skip
def test_a_short_name_in_always_allow_is_told(
    entry: Any, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agenttool_otel.policy"):
        Governor(
            policy_data={"agenttool": {"settings": {"approval": {"always_allow": [entry]}}}}
        ).close()
    assert bool([record for record in caplog.records if "'note'" in record.getMessage()]) is told


def test_every_member_that_the_schema_names_passes(tmp_path: Path) -> None:
    def paths(schema: dict[str, Any], at: str) -> list[str]:
        found = [at]
        for branch in schema.get("anyOf", [schema]):
            for name, member in branch.get("properties", {}).items():
                found += paths(member, f"{at}.{name}")
        return found

    reads = "\n".join(effective(f'{path} == "x"').replace("own.rule", f"own.{number}")
                      for number, path in enumerate(paths(input_schema(), "input")[1:]))  # fmt: skip
    assert reads.count("deny") > 50
    Governor(extension=extension(tmp_path / "own", reads)).close()
