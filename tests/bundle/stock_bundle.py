"""The stock bundle on every engine at hand, for the tests in this folder.

The engines are driven directly, not through the package, so that these tests judge the bundle
alone.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import regorus

from agenttool_otel.policy.bundles.concerns import written_out

REPOSITORY = Path(__file__).resolve().parents[2]
POLICIES = REPOSITORY / "policies"
DECISION = "data.agenttool.permission.decision"
VISIBLE = "data.agenttool.surface.visible"
OBLIGATIONS = "data.agenttool.redaction.obligations"
ERROR = {"behavior": "error"}
"""Stands for an evaluation that gave no answer; the package turns it into a deny."""


def opa_program() -> str:
    """Path of a real OPA, or skip."""
    for candidate in (
        os.environ.get("AGENTTOOL_OPA"),
        str(REPOSITORY / ".servers" / "opa"),
        shutil.which("opa"),
        str(Path.home() / ".cache" / "agenttool" / "bin" / "opa"),
    ):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    pytest.skip("no OPA program found: set AGENTTOOL_OPA or run make servers")


def run_opa(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run OPA."""
    return subprocess.run(
        [opa_program(), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@functools.cache
def modules(*, tests: bool = False) -> tuple[tuple[str, str], ...]:
    """Rego files of the bundle by their relative path."""
    return tuple(
        (path.relative_to(POLICIES).as_posix(), path.read_text("utf-8"))
        for path in sorted(POLICIES.rglob("*.rego"))
        if tests or not path.name.endswith("_test.rego")
    )


@functools.cache
def _stock_data() -> str:
    document: dict[str, Any] = {}
    for path in sorted((POLICIES / "agenttool").rglob("data.json")):
        place = document
        for part in path.parent.relative_to(POLICIES).parts:
            place = place.setdefault(part, {})
        place.update(json.loads(path.read_text("utf-8")))
    return json.dumps(document)


def data_document(settings: Any = None) -> str:
    """The bundle's data with somebody's settings."""
    if settings is None:
        return _stock_data()
    document = json.loads(_stock_data())
    document["agenttool"]["settings"] = settings
    return json.dumps(document)


def embedded_files(custom: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """The modules as the embedded engine gets them: rules that go through the packages are written
    out.
    """
    return list(written_out({**dict(modules()), **(custom or {})}).items())


class Interpreter:
    """The regorus interpreter."""

    name = "interpreter"

    def __init__(self, settings: Any = None, custom: Mapping[str, str] | None = None) -> None:
        self.engine = regorus.Engine()
        for file, text in embedded_files(custom):
            self.engine.add_policy(file, text)
        self.engine.add_data_json(data_document(settings))

    def decide(self, documents: Iterable[Any], entry_point: str = DECISION) -> list[Any]:
        """Answers to some inputs, in their order."""
        return [self.ask(json.dumps(document), entry_point) for document in documents]

    def ask(self, text: str, entry_point: str = DECISION) -> Any:
        """Answer to one input as JSON text."""
        try:
            self.engine.set_input_json(text)
            answer = self.engine.eval_rule_as_json(entry_point)
        except RuntimeError:
            return ERROR
        return json.loads(answer)


class Machine:
    """The regorus virtual machine, the compiled form."""

    name = "machine"

    def __init__(self, settings: Any = None, custom: Mapping[str, str] | None = None) -> None:
        self.files = embedded_files(custom)
        self.data = data_document(settings)
        self.machines: dict[str, Any] = {}

    def machine(self, entry_point: str) -> Any:
        """The machine for an entry point."""
        if entry_point not in self.machines:
            program = regorus.Program.compile_from_modules(self.data, self.files, [entry_point])
            machine = regorus.Rvm()
            machine.load_program(program)
            machine.set_data_json(self.data)
            self.machines[entry_point] = machine
        return self.machines[entry_point]

    def decide(self, documents: Iterable[Any], entry_point: str = DECISION) -> list[Any]:
        """Answers to some inputs, in their order."""
        return [self.ask(json.dumps(document), entry_point) for document in documents]

    def ask(self, text: str, entry_point: str = DECISION) -> Any:
        """Answer to one input as JSON text."""
        machine = self.machine(entry_point)
        try:
            machine.set_input_json(text)
            answer = machine.execute()
        except RuntimeError:
            return ERROR
        return json.loads(answer)


class Opa:
    """A real OPA, one process for a list of inputs."""

    name = "opa"

    def __init__(self, settings: Any = None, custom: Mapping[str, str] | None = None) -> None:
        opa_program()
        self.settings = settings
        self.custom = dict(custom or {})

    def decide(self, documents: Iterable[Any], entry_point: str = DECISION) -> list[Any]:
        """Answers to some inputs, in their order."""
        inputs = list(documents)
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for file, text in (*modules(), *self.custom.items()):
                target = root / "rules" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, "utf-8")
            (root / "data.json").write_text(data_document(self.settings), "utf-8")
            query = (
                f"[answer | some document in input; answer := {entry_point} with input as document]"
            )
            done = run_opa(
                "eval",
                *(
                    "--format",
                    "json",
                    "--data",
                    str(root / "rules"),
                    "--data",
                    str(root / "data.json"),
                ),
                *("--stdin-input", query),
                stdin=json.dumps(inputs),
            )
        assert done.returncode == 0, done.stdout + done.stderr
        answers = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
        assert len(answers) == len(inputs), "the entry point is undefined for some input"
        return answers


EMBEDDED = (Interpreter, Machine)


@functools.cache
def stock(kind: type[Any]) -> Any:
    """An engine with the bundle as it ships."""
    return kind()


@functools.cache
def _fixtures() -> dict[str, Any]:
    engine = regorus.Engine()
    for file, text in modules(tests=True):
        if file.endswith("fixtures_test.rego"):
            engine.add_policy(file, text)
    names = ("base", "path_fact", "url_fact", "shell_fact", "sql_fact", "approved", "writing")
    return {
        name: json.loads(engine.eval_rule_as_json(f"data.agenttool.lib.fixtures_test.{name}"))
        for name in names
    }


def fixture(name: str) -> Any:
    """A fresh copy of one of the inputs that the Rego tests use."""
    return copy.deepcopy(_fixtures()[name])


def merged(base: Any, changes: Any) -> Any:
    """Objects merged member by member; everything else replaced."""
    if isinstance(base, dict) and isinstance(changes, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in changes.items()}}
    return copy.deepcopy(changes)


def call(**changes: Any) -> dict[str, Any]:
    """The base input with members merged into it."""
    return merged(fixture("base"), changes)


def path_call(**changes: Any) -> dict[str, Any]:
    """A file tool with one path."""
    return call(facts={"paths": [merged(fixture("path_fact"), changes)]})


def write_call(**changes: Any) -> dict[str, Any]:
    """A file tool that writes one path."""
    document = fixture("writing")
    document["facts"]["paths"] = [merged(document["facts"]["paths"][0], changes)]
    return document


def url_call(**changes: Any) -> dict[str, Any]:
    """A read-only tool that fetches one URL."""
    return call(
        tool={
            "id": "web.fetch",
            "namespace": "web",
            "name": "fetch",
            "kind": "function",
            "open_world": True,
        },
        permission_profile={"access_kinds": ["network"]},
        input={"url": "https://docs.example.org/"},
        facts={"paths": [], "urls": [merged(fixture("url_fact"), changes)]},
    )


def shell_call(**changes: Any) -> dict[str, Any]:
    """A shell tool that states nothing but its kind."""
    return call(
        tool={
            "id": "shell.run",
            "namespace": "shell",
            "name": "run",
            "kind": "shell_command",
            "read_only": False,
            "open_world": True,
            "inferred": ["read_only"],
        },
        permission_profile={
            "risk_level": "medium",
            "access_kinds": ["code_execution"],
            "write_effects": ["local_persistent"],
        },
        input={"command": "ls -l src"},
        facts={"paths": [], "shell": [merged(fixture("shell_fact"), changes)]},
    )


def sql_call(**changes: Any) -> dict[str, Any]:
    """A query tool."""
    return call(
        tool={
            "id": "db.query",
            "namespace": "db",
            "name": "query",
            "kind": "function",
            "read_only": False,
        },
        permission_profile={"access_kinds": [], "write_effects": ["remote_mutation"]},
        input={"query": "select 1"},
        facts={"paths": [], "sql": [merged(fixture("sql_fact"), changes)]},
    )


def rego_tests() -> Sequence[str]:
    """Full names of all test rules of the bundle."""
    names: list[str] = []
    for file, text in modules(tests=True):
        if file.endswith("_test.rego"):
            found = re.search(r"^package (\S+)", text, re.MULTILINE)
            assert found, file
            names += [
                f"data.{found[1]}.{name}"
                for name in dict.fromkeys(re.findall(r"^(test_\w+)", text, re.MULTILINE))
            ]
    return names
