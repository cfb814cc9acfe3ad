"""``policy push`` and ``status`` on a real OPA: what it holds afterwards, and what it keeps when a
push fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opa_program import OpaServer, free_port, opa_server
from policy_project import example_input, rule_file, run, run_json, write

from agenttool_otel.names import Behavior
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.opa_server import OpaServerEngine

pytestmark = pytest.mark.opa


@pytest.fixture
def server() -> Iterator[OpaServer]:
    """A real OPA with nothing in it."""
    with opa_server() as running:
        yield running


def _decides(server: OpaServer, document: Any) -> tuple[str, str]:
    engine = OpaServerEngine(server.url)
    verdict = Decider([engine], timeout=10).decide(document)
    engine.close()
    return verdict.behavior.value, verdict.rule_ref


@pytest.mark.slow
def test_a_pushed_project_decides(project: Path, server: OpaServer) -> None:
    status, told = run_json("status", project, "--url", server.url, "--json")
    assert (status, told["healthy"], told["decides"]) == (1, True, False)
    assert told["differs"] == ["agenttool.custom"]
    status, told = run_json("push", project, "--url", server.url, "--with-base", "--json")
    assert status == 0
    assert "agenttool.custom" in told["policies"]
    assert "agenttool/custom" in told["data"]
    assert "agenttool/defaults" in told["data"]
    assert _decides(server, example_input(project)) == ("deny", "custom.deployments.frozen_day")
    status, told = run_json("status", project, "--url", server.url, "--json")
    assert (status, told["healthy"], told["decides"], told["differs"]) == (0, True, True, [])


@pytest.mark.slow
def test_a_second_push_replaces_the_first(project: Path, server: OpaServer) -> None:
    write(project, {"agenttool/custom/more.rego": rule_file('\tinput.tool.name == "other"')})
    assert run("push", project, "--url", server.url, "--with-base").exit_code == 0
    (project / "agenttool/custom/more.rego").unlink()
    write(
        project,
        {
            "agenttool/custom/third.rego": rule_file(
                '\tinput.tool.name == "third"', package="agenttool.custom.third"
            )
        },
    )
    assert run_json("status", project, "--url", server.url, "--json")[1]["differs"] == [
        "agenttool.custom.more",
        "agenttool.custom.third",
    ]
    done = run("push", project, "--url", server.url, "--with-base")
    assert done.exit_code == 0
    assert "removed agenttool.custom.more" in done.stdout
    assert run("status", project, "--url", server.url).exit_code == 0


@pytest.mark.slow
def test_a_refused_push_leaves_the_policies_of_before(project: Path, server: OpaServer) -> None:
    assert run("push", project, "--url", server.url, "--with-base").exit_code == 0
    # embedded and checked alike, but this OPA has a rule of the same name as a value already
    engine = OpaServerEngine(server.url)
    engine.client.update_policy_from_string(
        "package agenttool.custom.taken\n\nallow := 1\n", "others.rego"
    )
    write(project, {"agenttool/custom/taken.rego": rule_file("\ttrue", package="agenttool.custom.taken").replace(
        "deny contains", "allow contains")})  # fmt: skip
    changed = (project / "agenttool/custom/deployments.rego").read_text() + "\n# changed\n"
    write(project, {"agenttool/custom/deployments.rego": changed})
    done = run("push", project, "--url", server.url, "--with-base")
    assert done.exit_code == 2
    assert "refuses" in done.stderr
    assert _decides(server, example_input(project)) == ("deny", "custom.deployments.frozen_day")
    told = run_json("status", project, "--url", server.url, "--json")[1]
    assert told["differs"] == ["agenttool.custom", "agenttool.custom.taken"]
    assert "others.rego" in told["policies"]


@pytest.mark.slow
def test_a_broken_project_is_not_pushed(project: Path, server: OpaServer) -> None:
    write(
        project,
        {
            "agenttool/custom/more.rego": "package agenttool.custom.more\n\ndeny contains x if true\n"
        },
    )
    assert run("push", project, "--url", server.url, "--with-base").exit_code == 2
    assert run_json("status", "--url", server.url, "--json")[1]["policies"] == []


@pytest.fixture
def bundle(project: Path, tmp_path: Path) -> Path:
    """The project and the stock bundle as an archive."""
    output = tmp_path / "bundle.tar.gz"
    assert run("build", project, "--with-base", "-r", "7", "-o", output).exit_code == 0
    return output


def test_a_bundle_that_opa_runs_does_not_differ(project: Path, bundle: Path) -> None:
    with opa_server("--bundle", str(bundle)) as server:
        status, found = run_json("status", project, "--url", server.url, "--json")
    assert (status, found["differs"], found["decides"]) == (0, [], True)
    assert found["revision"] == "7"


def test_a_changed_rule_differs_from_the_bundle(project: Path, bundle: Path) -> None:
    rules = project / "agenttool/custom/deployments.rego"
    rules.write_text(rules.read_text("utf-8") + "\n# changed\n")
    write(project, {"agenttool/custom/more.rego": rule_file('\tinput.tool.name == "x"')})
    with opa_server("--bundle", str(bundle)) as server:
        status, found = run_json("status", project, "--url", server.url, "--json")
    assert status == 1
    assert found["differs"] == ["agenttool.custom", "agenttool.custom.more"]


def test_nobody_there_is_an_error_and_not_healthy(project: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = run("push", project, "--url", url)
    assert done.exit_code == 2
    assert "no connection" in done.stderr
    status, told = run_json("status", "--url", url, "--json")
    assert (status, told["healthy"]) == (1, False)


def test_without_the_extra_the_error_names_it(project: Path) -> None:
    code = (
        "import sys; sys.modules['opa_client'] = None; from agenttool_otel.cli import main; "
        f"sys.argv = ['agenttool', 'policy', 'push', {str(project)!r}, '--url', 'http://127.0.0.1:1']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "opa-server" in done.stderr


@pytest.mark.slow
def test_decisions_need_neither_the_extra_nor_a_library(server: OpaServer, project: Path) -> None:
    assert run("push", project, "--url", server.url, "--with-base").exit_code == 0
    code = (
        "import asyncio, json, sys\n"
        "for name in ('opa_client', 'aiohttp', 'requests'): sys.modules[name] = None\n"
        "from agenttool_otel.policy.engines.opa_server import OpaServerEngine\n"
        "from agenttool_otel.policy.decider import Decider\n"
        f"decider = Decider([OpaServerEngine({server.url!r})], timeout=10)\n"
        "document = json.loads(sys.stdin.read())\n"
        "print(decider.decide(document).behavior.value, asyncio.run(decider.adecide(document)).behavior.value)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(example_input(project)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == ([Behavior.DENY.value] * 2, "")
