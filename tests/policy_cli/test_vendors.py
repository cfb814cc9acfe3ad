"""``policy vendor`` and ``policy reference``: a project for OPA, editors and readers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from policy_project import REPOSITORY, make_project, rule_file, run, write

from agenttool_otel.authoring.project import load_project
from agenttool_otel.authoring.vendoring import FOLDER, REGAL


@pytest.fixture(scope="module")
def vendored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh project with the stock policy in it; no test changes it."""
    root = make_project(tmp_path_factory.mktemp("vendored") / "project")
    assert run("vendor", root).exit_code == 0
    return root


def opa(program: str, *arguments: str, within: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments, "."], cwd=within, capture_output=True, text=True, check=False
    )


@pytest.mark.opa
@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("check", "--strict", "--schema", "schemas"),
        ("test",),
        ("fmt", "--list", "--fail"),
    ],
)
def test_opas_own_commands_work_on_a_scaffold(
    vendored: Path, real_opa: str, command: tuple[str, ...]
) -> None:
    done = opa(real_opa, *command, within=vendored)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.opa
def test_opa_finds_slips_and_failing_tests_there(project: Path, real_opa: str) -> None:
    assert run("vendor", project).exit_code == 0
    slip = rule_file("input.tool.nmae == 1")
    write(project, {"agenttool/custom/more.rego": slip})
    done = opa(real_opa, "check", "--schema", "schemas", within=project)
    assert "undefined ref: input.tool.nmae" in done.stdout + done.stderr
    wrong = 'package agenttool.custom_test\n\ntest_wrong if data.agenttool.permission.decision.behavior == "x"\n'
    write(project, {"agenttool/custom/more.rego": "", "agenttool/custom/wrong_test.rego": wrong})
    (project / "agenttool/custom/more.rego").unlink()
    assert "FAIL: 1/" in opa(real_opa, "test", within=project).stdout


@pytest.mark.opa
def test_settings_of_the_project_count_for_opa(project: Path, real_opa: str) -> None:
    assert run("vendor", project).exit_code == 0
    write(project, {"agenttool/settings/data.json": '{"preset": "strict"}'})
    query = "data.agenttool.config.effective.preset"
    done = opa(real_opa, "eval", query, "--format", "raw", "--data", within=project)
    assert done.stdout.strip() == "strict"


def test_a_bundle_has_nothing_of_it(vendored: Path, project: Path) -> None:
    assert load_project(vendored).whole.modules == load_project(project).whole.modules
    assert load_project(vendored).own.tests.keys() == load_project(project).own.tests.keys()


def test_regal_leaves_the_stock_policy_alone(vendored: Path) -> None:
    config = yaml.safe_load((vendored / REGAL).read_text("utf-8"))
    assert config["ignore"]["files"] == [f"{FOLDER}/*"]
    excepted = config["rules"]["imports"]["unresolved-reference"]["except-paths"]
    assert excepted == ["data.agenttool.*"]


def test_what_is_out_of_date_is_found_and_renewed(project: Path) -> None:
    assert run("vendor", project, "--check").exit_code == 1
    assert not (project / FOLDER).exists()
    run("vendor", project)
    assert run("vendor", project, "--check").exit_code == 0
    stale, gone = project / FOLDER / "agenttool/lib/lib.rego", project / FOLDER / "old.rego"
    stale.write_text("package agenttool.lib\n", "utf-8")
    gone.write_text("package old\n", "utf-8")
    shown = run("vendor", project, "--check")
    assert shown.exit_code == 1
    assert "lib/lib.rego" in shown.output
    assert "old.rego" in shown.output
    run("vendor", project)
    assert run("vendor", project, "--check").exit_code == 0
    assert not gone.exists()


def test_a_configuration_of_regal_stays(project: Path) -> None:
    write(project, {REGAL: "rules: {}\n"})
    assert f"kept {REGAL}" in run("vendor", project).output
    assert (project / REGAL).read_text("utf-8") == "rules: {}\n"


@pytest.mark.parametrize("folder", [REPOSITORY / "policies", REPOSITORY / "nowhere"])
def test_what_needs_no_stock_policy_gets_none(folder: Path) -> None:
    assert run("vendor", folder).exit_code == 2
    assert not (folder / FOLDER).exists()


def test_the_reference_has_each_rule_with_its_metadata(project: Path) -> None:
    more = rule_file("true").replace(
        "# title: A rule\n",
        "# title: 'Ours: a | b'\n# description: |\n#   Twice\n#   as long.\n"
        "# related_resources:\n#   - ref: https://example.com/why\n"
        "# custom:\n#   severity: low\n#   owner: a|b\n",
    )
    write(project, {"agenttool/custom/more/more.rego": more})
    text = run("reference", project).output
    assert "## Deployments\n\n`agenttool.custom`\n" in text
    assert "### deny: Nothing is deployed on a frozen day\n" in text
    assert "| rule | `custom.deployments.frozen_day` |" in text
    assert "| severity | high |" in text
    assert "### deny: Ours: a | b\n\nTwice\nas long.\n" in text
    assert "| owner | a\\|b |" in text
    assert "| see | <https://example.com/why> |" in text
    assert "| source | `agenttool/custom/more/more.rego:" in text
    assert "agenttool.rules" not in text


def test_the_stock_policys_reference_names_every_rule_set(tmp_path: Path) -> None:
    target = tmp_path / "reference.md"
    policies = REPOSITORY / "policies"
    assert run("reference", policies, "-o", target, "--title", "Stock").exit_code == 0
    text = target.read_text("utf-8")
    assert text.startswith("# Stock\n")
    concerns = {folder.name for folder in (policies / "agenttool" / "rules").iterdir()}
    assert {name for name in concerns if f"`agenttool.rules.{name}`" not in text} == set()
    assert "without a title" not in text


def test_metadata_that_are_no_yaml_are_named(project: Path) -> None:
    broken = rule_file("true").replace("# title: A rule", "# title: [A rule")
    write(project, {"agenttool/custom/more/more.rego": broken})
    done = run("reference", project)
    assert done.exit_code == 2
    assert "more.rego:" in done.output


def test_a_policy_without_rules_has_no_reference(tmp_path: Path) -> None:
    write(tmp_path, {"agenttool/custom/a.rego": "package agenttool.custom\n\nx := 1\n"})
    assert run("reference", tmp_path).exit_code == 1
