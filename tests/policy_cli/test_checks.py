"""``policy check`` names what is wrong by file and line, and says what it looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from policy_project import rule_file, run, run_json, write

FILE = "agenttool/custom/more.rego"


def _check(report: Any, name: str) -> Any:
    return next(check for check in report["checks"] if check["name"] == name)


BROKEN = {
    "syntax": (
        "package agenttool.custom.more\n\ndeny if {\n\tinput.a ==\n}\n",
        5,
        "expecting expression",
    ),
    "unfinished": ("package agenttool.custom.more\n\ndeny if {\n\tinput.a\n", 5, "expecting `}`"),
    "v0": (
        "package agenttool.custom.more\n\ndeny[x] {\n\tx := input.a\n}\n",
        3,
        "`if` keyword is required",
    ),
    "no package": ("deny if true\n", 1, "expecting `package`"),
    "recursion": ("package agenttool.custom.more\n\na if b\n\nb if a\n", 3, "recursive"),
    "recursion through the decision": (
        'package agenttool.custom.more\n\ndeny if data.agenttool.permission.decision.behavior == "allow"\n',
        3,
        "recursive",
    ),
    "unsafe": (rule_file("\tx > 1", package="agenttool.custom.more"), 11, "unsafe"),
    "used before defined": (
        rule_file('\tname == "x"\n\tname := input.tool.name'),
        11,
        "before definition",
    ),
    "no such function": (rule_file("\tdata.agenttool.lib.nothing(1)"), 11, "not defined"),
    "http.send": (
        rule_file('\thttp.send({"method": "get", "url": "x"}).status_code == 200'),
        11,
        "http.send",
    ),
    "outside its roots": ("package other\n\ndeny if true\n", 1, "outside the manifest's roots"),
    "a stock package": (
        "package agenttool.permission\n\nextra if true\n",
        1,
        "outside the manifest's roots",
    ),
    "deep": (f"package agenttool.custom.more\n\nx := {'[' * 90}{']' * 90}\n", 3, "nested"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.usefixtures("no_opa")
def test_what_is_broken_is_named_by_file_and_line(project: Path, kind: str) -> None:
    text, line, message = BROKEN[kind]
    write(project, {FILE: text})
    status, report = run_json("check", project, "--json")
    assert status == 1
    assert report["ok"] is False
    problems = [
        problem
        for check in report["checks"]
        if check["status"] == "failed"
        for problem in check["problems"]
    ]
    assert any(
        (problem["line"], message in problem["message"]) == (line, True)
        and problem["file"].endswith("more.rego")
        for problem in problems
    ), problems
    done = run("check", project)
    assert done.exit_code == 1
    assert f"{FILE}:{line}" in done.output


def test_an_extension_claims_no_stock_package_unlisted(project: Path) -> None:
    """Even without a manifest, a rule where nobody asks it is pointed at."""
    (project / ".manifest").unlink()
    write(project, {"other/o.rego": rule_file("\tinput.tool.name", package="other")})
    report = run_json("check", project, "--json")[1]
    assert _check(report, "places")["status"] == "warned"
    assert "is not under agenttool.custom" in _check(report, "places")["problems"][0]["message"]


def test_an_undefined_entry_point_is_named_with_its_place(tmp_path: Path) -> None:
    write(
        tmp_path, {"p.rego": "# METADATA\n# title: x\npackage agenttool.permission\n\nother := 1\n"}
    )
    status, report = run_json("check", tmp_path, "--standalone", "--json")
    assert status == 1
    (problem,) = _check(report, "load")["problems"]
    assert (problem["file"], problem["line"]) == ("p.rego", 3)
    assert "data.agenttool.permission.decision is not defined" in problem["message"]


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"agenttool/custom/data.json": '{"a": 1,\n "b": }'}, "agenttool/custom/data.json:2"),
        ({"agenttool/custom/data.json": '{"deny": 1}'}, "agenttool/custom/deployments.rego"),
        ({"agenttool/custom/data.json": '{"a": 1, "a": 2}'}, "the same key twice"),
        ({".manifest": "[]"}, ".manifest"),
    ],
)
def test_broken_data_is_named(project: Path, files: dict[str, str], place: str) -> None:
    write(project, files)
    done = run("check", project)
    assert done.exit_code == 1
    assert place in done.output


def test_a_missing_folder_fails(tmp_path: Path) -> None:
    assert run("check", tmp_path / "nothing").exit_code == 1
    (tmp_path / "empty").mkdir()
    assert run("check", tmp_path / "empty").exit_code == 1


def test_each_builtin_is_named_for_each_engine(project: Path) -> None:
    write(
        project,
        {FILE: rule_file('\tcrypto.md5(input.tool.name) == "x"\n\turi.is_valid(input.tool.id)')},
    )
    status, report = run_json("check", project, "--json")
    assert status == 1
    problems = _check(report, "builtins: embedded")["problems"]
    assert [(item["file"], item["line"], item["message"]) for item in problems] == [
        (FILE, 11, "data.agenttool.custom.more.deny uses crypto.md5"),
        (FILE, 12, "data.agenttool.custom.more.deny uses uri.is_valid"),
    ]
    assert _check(report, "builtins: OPA")["status"] == "passed"
    status, report = run_json("check", project, "--engine", "opa_server", "--json")
    assert status == 0
    assert _check(report, "builtins: embedded")["status"] == "warned"
    assert _check(report, "load")["status"] == "passed"


def test_missing_metadata_are_warnings_and_with_strict_failures(project: Path) -> None:
    write(
        project,
        {FILE: 'package agenttool.custom.more\n\ndeny contains "x" if input.tool.name == "x"\n'},
    )
    status, report = run_json("check", project, "--json")
    assert status == 0
    found = _check(report, "METADATA")
    assert found["status"] == "warned"
    assert [(item["line"], item["message"].split(" ")[0]) for item in found["problems"]] == [
        (1, "the"),
        (1, "the"),
        (3, "data.agenttool.custom.more.deny"),
    ]
    assert run("check", project, "--strict").exit_code == 1


def test_rules_that_nobody_asks_are_pointed_at(project: Path) -> None:
    write(project, {FILE: rule_file("\tinput.tool.name", package="agenttool.custom.a.b")})
    problems = _check(run_json("check", project, "--json")[1], "places")["problems"]
    assert len(problems) == 1
    assert "too deep" in problems[0]["message"]


def test_a_test_that_would_be_recursive_is_pointed_at(project: Path) -> None:
    test = "package agenttool.custom.mine_test\n\ntest_x if data.agenttool.permission.decision.behavior\n"
    write(project, {"agenttool/custom/mine_test.rego": test})
    (problem,) = _check(run_json("check", project, "--json")[1], "places")["problems"]
    assert problem["file"] == "agenttool/custom/mine_test.rego"
    assert "recursive" in problem["message"]
    done = run("test", project)
    assert done.exit_code == 2
    assert "recursive" in done.stderr


@pytest.mark.opa
@pytest.mark.usefixtures("real_opa")
def test_opa_finds_a_misspelt_member_of_the_input(project: Path) -> None:
    write(project, {FILE: rule_file('\tinput.tool.nmae == "x"')})
    status, report = run_json("check", project, "--json")
    assert status == 1
    found = _check(report, "input types")
    assert "opa check --strict --schema" in found["detail"]
    (problem,) = found["problems"]
    assert (problem["file"], problem["line"]) == (FILE, 11)
    assert "undefined ref: input.tool.nmae" in problem["message"]


@pytest.mark.opa
@pytest.mark.usefixtures("real_opa")
def test_opa_checks_strictly(project: Path) -> None:
    write(project, {FILE: rule_file('\tunused := 1\n\tinput.tool.name == "x"')})
    (problem,) = _check(run_json("check", project, "--json")[1], "input types")["problems"]
    assert "unused" in problem["message"]


@pytest.mark.usefixtures("no_opa")
def test_it_says_when_opa_was_not_there(project: Path) -> None:
    status, report = run_json("check", project, "--json")
    assert status == 0
    assert _check(report, "input types")["status"] == "skipped"
    done = run("check", project)
    assert "no OPA program found" in done.output
    assert "skipped: input types" in done.output


def test_a_program_that_is_no_opa_does_not_pass(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "opa"
    fake.write_text("#!/bin/sh\necho what >&2\nexit 3\n", "utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("AGENTTOOL_OPA", str(fake))
    status, report = run_json("check", project, "--json")
    assert status == 1
    assert _check(report, "input types")["status"] == "failed"
    done = run("test", project, "--engine", "opa")
    assert done.exit_code == 2


@pytest.mark.slow
@pytest.mark.opa
@pytest.mark.usefixtures("real_opa")
def test_the_stock_bundle_itself_passes() -> None:
    from agenttool_otel.policy.bundles.bundle import default_bundle_path

    status, report = run_json("check", default_bundle_path(), "--json")
    assert status == 0
    failed = [check for check in report["checks"] if check["status"] == "failed"]
    assert failed == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_opa")
@pytest.mark.parametrize("wrong", ["denny", "allows", "asks"])
def test_a_set_that_no_decision_asks_is_told_with_what_was_meant(project: Path, wrong: str) -> None:
    text = rule_file("\tinput.tool.name").replace("deny contains", f"{wrong} contains")
    write(project, {FILE: text})
    report = run_json("check", project, "--json")[1]
    check = _check(report, "load")
    assert check["status"] == "failed"
    [problem] = check["problems"]
    assert problem["file"] == FILE
    assert (
        f"data.agenttool.custom.more.{wrong} is asked by no decision (did you mean"
        in problem["message"]
    )
    assert run("check", project, "--strict").exit_code == 1


@pytest.mark.usefixtures("no_opa")
def test_data_that_is_not_there_is_told_with_what_is(project: Path) -> None:
    body = "\tinput.session.counters.calls > data.agenttool.custom.more.limitt\n\thelper"
    write(
        project,
        {
            FILE: rule_file(body) + "\nhelper if data.agenttool.settings.budgets.session.calls\n",
            "agenttool/custom/more/data.json": '{"limit": 3}',
        },
    )
    check = _check(run_json("check", project, "--json")[1], "reads")
    problem, unread = check["problems"]
    assert "data.agenttool.custom.more.limit is read by no rule" in unread["message"]
    assert (
        "data.agenttool.custom.more.limitt is neither a rule nor in a data file"
        in problem["message"]
    )
    assert "did you mean 'limit'?" in problem["message"]
    assert problem["line"] == 11


@pytest.mark.usefixtures("no_opa")
def test_what_is_refused_on_purpose_is_told_so(project: Path) -> None:
    write(
        project, {FILE: rule_file('\thttp.send({"method": "get", "url": "x"}).status_code == 200')}
    )
    assert "refused on purpose" in run("check", project).output


@pytest.mark.usefixtures("no_opa")
def test_misspelt_settings_fail_the_check(project: Path) -> None:
    write(project, {"agenttool/settings/data.json": '{"preset": "strikt"}'})
    status, report = run_json("check", project, "--json")
    assert status == 1
    assert "did you mean 'strict'?" in _check(report, "settings")["problems"][0]["message"]


@pytest.mark.usefixtures("no_opa")
def test_the_project_of_init_has_nothing_unread(project: Path) -> None:
    report = run_json("check", project, "--json")[1]
    assert (_check(report, "reads")["status"], _check(report, "settings")["status"]) == (
        "passed",
        "passed",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("\tinput.input.amount + 1 > 5", "warned", "calculates with values of unproven type"),
        ('\tinput.time > "2026"', "passed", "reads input.time, which differs in every call"),
        ("\ttime.now_ns() > 5", "warned", "need the interpreter"),
        ("\tinput == {}", "passed", "uses the whole input"),
        ('\tinput.tool.name == "a"', "passed", ""),
    ],
)
def test_a_rule_that_slows_every_call_is_told(
    project: Path, body: str, status: str, message: str
) -> None:
    (project / "agenttool/custom/deployments.rego").unlink()
    (project / "agenttool/custom/deployments_test.rego").unlink()
    write(project, {"agenttool/custom/more.rego": rule_file(body)})
    _, report = run_json("check", project, "--json")
    check = next(check for check in report["checks"] if check["name"] == "speed")
    assert check["status"] == status
    assert ("compiled" in check["detail"]) == (status == "passed")
    problems = " ".join(problem["message"] for problem in check["problems"])
    assert message in problems if message else problems == ""
