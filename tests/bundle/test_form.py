"""The form of the bundle: checked, formatted, documented, and within what every engine can
do alike.
"""

from __future__ import annotations

import json
import re
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

import pytest
from stock_bundle import DECISION, OBLIGATIONS, POLICIES, VISIBLE, modules, run_opa

from agenttool_otel.policy.bundles.check import load_program
from agenttool_otel.policy.bundles.load import load_bundle


def _code(text: str) -> str:
    return "\n".join(
        re.sub(r'"(?:[^"\\]|\\.)*"|`[^`]*`', '""', line.split("#", 1)[0])
        for line in text.splitlines()
    )


@pytest.mark.opa
def test_opa_checks_it_strictly_against_the_schema_of_the_input() -> None:
    done = run_opa("check", "--strict", "--schema", str(POLICIES / "schemas"), str(POLICIES))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.opa
def test_the_schema_check_finds_a_misspelt_member(tmp_path: pytest.TempPathFactory) -> None:
    file = tmp_path / "x.rego"
    file.write_text(
        "# METADATA\n# scope: package\n# schemas:\n#   - input: schema.input\npackage x\n\n"
        "y if input.tool.readonly == true\n",
        "utf-8",
    )
    done = run_opa("check", "--schema", str(POLICIES / "schemas"), str(file))
    assert done.returncode != 0
    assert "readonly" in done.stderr + done.stdout


@pytest.mark.opa
def test_opa_loads_it_as_a_bundle() -> None:
    done = run_opa("check", "--bundle", str(POLICIES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_two_packages_need_each_others_functions() -> None:
    # a running OPA takes one package at a time, and none whose functions it does not know yet
    program = load_program(load_bundle(POLICIES))
    packages = {
        rule.path: ".".join(module.package) for module in program.modules for rule in module.rules
    }
    needs: dict[str, set[str]] = {}
    for rule in program.rules:
        called = {packages[path] for path, *_ in rule.functions if path in packages}
        needs.setdefault(packages[rule.path], set()).update(called - {packages[rule.path]})
    assert sum(map(len, needs.values())) > 20
    TopologicalSorter(needs).prepare()  # raises where there is a circle


@pytest.mark.opa
def test_it_is_formatted() -> None:
    done = run_opa("fmt", "--list", "--fail", str(POLICIES))
    assert done.returncode == 0, done.stdout


@pytest.mark.opa
def test_entry_points_are_marked() -> None:
    done = run_opa("inspect", "--annotations", "--format=json", str(POLICIES))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    marked = {
        "data." + ".".join(str(part["value"]) for part in entry["path"][1:])
        for entry in report["annotations"]
        if entry["annotations"].get("entrypoint")
    }
    assert {DECISION, VISIBLE, OBLIGATIONS} <= marked


def test_manifest_names_revision_version_and_roots() -> None:
    manifest = json.loads((POLICIES / ".manifest").read_text("utf-8"))
    assert manifest["revision"].startswith("agenttool-stock-")
    assert manifest["rego_version"] == 1
    for file, _ in modules(tests=True):
        assert any(file.startswith(f"{root}/") for root in manifest["roots"]), file
    # what users own is not ours, so that their bundle can lie beside this one in one OPA
    for theirs in ("agenttool/custom", "agenttool/settings"):
        assert not any(f"{theirs}/".startswith(f"{root}/") for root in manifest["roots"])


@pytest.mark.parametrize("file", [file for file, _ in modules()])
def test_folders_are_package_paths_and_packages_are_described(file: str) -> None:
    text = dict(modules())[file]
    package = re.search(r"^package (\S+)", text, re.MULTILINE)
    assert package
    assert package[1] == ".".join(PurePosixPath(file).parent.parts)
    siblings = [
        other
        for name, other in modules()
        if PurePosixPath(name).parent == PurePosixPath(file).parent
    ]
    assert any(re.search(r"^# scope: package$", other, re.MULTILINE) for other in siblings)
    assert any(
        name.endswith("_test.rego") and PurePosixPath(name).parent == PurePosixPath(file).parent
        for name, _ in modules(tests=True)
    )


@pytest.mark.parametrize("file", [file for file, _ in modules() if "/rules/" in file])
def test_every_finding_has_a_title_and_a_severity(file: str) -> None:
    text = dict(modules())[file]
    heads = list(re.finditer(r"^(deny|ask) contains", text, re.MULTILINE))
    assert heads
    for head in heads:
        comment = text[: head.start()].rstrip("\n").split("\n\n")[-1]
        assert "# METADATA" in comment, (file, head[0])
        assert "# title: " in comment
        assert re.search(r"#   severity: (low|medium|high|critical)$", comment, re.MULTILINE), (
            comment
        )


def test_messages_are_fixed_words() -> None:
    """Messages go to telemetry, so nothing of an argument may get into one: its place, the names
    of tools and its author's sources may.
    """
    known = r"argument\(pointer\)|tools\(fact\)|allowed\(fact\)"
    place_or_tools = rf"data\.agenttool\.provenance\.(?:{known})"
    fixed = re.compile(rf'concat\("", \[(?:\s*(?:"[^"]*"|{place_or_tools}),)+\s*\]\)')
    for file, text in ((file, fixed.sub('"fixed"', text)) for file, text in modules()):
        for match in re.finditer(r'"message":\s*([^,}\n]+)', text):
            value = match[1].strip()
            assert value.startswith(('"', "min({")) or value in {"message", "reason.message"}, (
                file,
                value,
            )
        assert "sprintf" not in text.replace(
            'sprintf("%s:%d", [fact.host, fact.port])', ""
        ).replace('sprintf("%d", [fact.port])', ""), file


def test_no_package_is_imported() -> None:
    """An alias of a package makes regorus evaluate all of it, which costs ten times the
    decision.
    """
    for file, text in modules():
        assert not re.search(r"^import data\.", text, re.MULTILINE), file


def test_negations_are_of_names_and_helpers_only() -> None:
    """Engines differ in what they compute before a negation: ``not f(x) == y`` is not ``not (f(x)
    == y)`` in OPA.
    """
    for file, text in modules():
        for line in _code(text).splitlines():
            negation = re.search(r"\bnot (.+?)\s*\}?$", line.strip())
            if negation and "(" in negation[1]:
                assert not re.search(r"\)\s*(==|!=|<|>|in)\s", negation[1]), (file, line)


def test_no_negation_stands_inside_every() -> None:
    """In regorus ``every x in xs { not y[x] }`` fails where ``y[x]`` is undefined."""
    for file, text in modules():
        for block in re.finditer(r"\bevery [^{]+\{([^}]*)\}", _code(text)):
            assert not re.search(r"\bnot\b", block[1]), (file, block[0])


def test_no_index_stands_inside_every() -> None:
    """The regorus machine reads ``every x in xs { y[x] == 1 }`` as a loop of its own and finds it
    always true.
    """
    for file, text in modules():
        for block in re.finditer(r"\bevery [^{]+\{([^}]*)\}", _code(text)):
            assert "[" not in block[1], (file, block[0])


def test_rules_use_only_builtins_that_all_engines_answer_alike() -> None:
    agreed = {
        *(
            "array.concat",
            "concat",
            "contains",
            "count",
            "endswith",
            "glob.match",
            "is_array",
            "is_boolean",
            "is_number",
        ),
        *(
            "is_object",
            "is_set",
            "is_string",
            "lower",
            "max",
            "min",
            "object.get",
            "object.keys",
            "object.union",
        ),
        *(
            "regex.match",
            "set",
            "sort",
            "split",
            "sprintf",
            "startswith",
            "substring",
            "to_number",
            "trim_space",
            "trim_suffix",
        ),
    }
    for file, text in modules():
        code = _code(text)
        own = set(re.findall(r"^(\w+)\(", code, re.MULTILINE))
        for name in re.findall(r"(?<![\w.])([a-z_][\w.]*)\(", code):
            if (
                name.startswith("data.agenttool.")
                or name in own
                or any(re.search(rf"^{name}\(", other, re.MULTILINE) for _, other in modules())
            ):
                continue
            assert name in agreed, (file, name)
