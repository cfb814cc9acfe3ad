"""Reviewed facts serve the classes that were reviewed, and nothing that only looks like them."""

from __future__ import annotations

import json
import sys
from importlib import import_module, metadata, resources
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import BaseTool

from agenttool_otel import Governor, agent_context, govern
from agenttool_otel.catalog.vocabulary import check_options
from agenttool_otel.integrations.langchain import known_tools
from agenttool_otel.integrations.langchain.known_tools import known_facts

_TABLE: dict[str, Any] = json.loads(
    resources.files("agenttool_otel.integrations.langchain")
    .joinpath("known_tools.json")
    .read_text("utf-8")
)
_PATH = "langchain_community.tools.file_management.read"


class ReadFileTool(BaseTool):
    """Stands for the class of that name, in a module of that name."""

    name: str = "read_file"
    description: str = "Read a file."
    root_dir: str | None = None

    def _run(self, file_path: str) -> str:
        return file_path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> type[BaseTool]:
    """A program in which that class is the one that the module has, in a reviewed version."""
    module = ModuleType(_PATH)
    module.ReadFileTool = ReadFileTool  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, _PATH, module)
    monkeypatch.setattr(ReadFileTool, "__module__", _PATH)
    monkeypatch.setattr(
        known_tools, "is_reviewed", lambda package: package == "langchain_community"
    )
    return ReadFileTool


def test_every_entry_is_what_govern_takes() -> None:
    assert len(_TABLE["tools"]) >= 30
    for name, entry in _TABLE["tools"].items():
        check_options(entry["facts"])
        assert "read_only" in entry["facts"], name
        assert name.partition(".")[0] in _TABLE["reviewed"]


def test_a_reviewed_class_is_governed_without_a_statement(installed: type[BaseTool]) -> None:
    governor = Governor()
    tool: Any = governor.govern(installed())
    with agent_context(actor="agent:a", session_id="s", roots=["/proj"], cwd="/proj"):
        assert governor.find(tool.name).check(file_path="notes.txt").allowed
        assert not governor.find(tool.name).check(file_path="/etc/shadow").allowed


def test_what_the_host_states_wins(installed: type[BaseTool]) -> None:
    tool: Any = govern(installed(), read_only=False)
    assert type(tool).agenttool.spec.safety.read_only is False


@pytest.mark.parametrize("root", ["/etc", "sub", ""])
def test_another_root_is_not_what_was_reviewed(installed: Any, root: str) -> None:
    assert known_facts(installed())
    assert known_facts(installed(root_dir="."))
    assert not known_facts(installed(root_dir=root))


def test_a_subclass_or_a_namesake_is_not_reviewed(installed: Any) -> None:
    class Mine(installed):  # type: ignore[misc]
        pass

    class Namesake(BaseTool):
        name: str = "read_file"
        description: str = "x"

        def _run(self, file_path: str) -> str:
            return file_path

    Namesake.__module__, Namesake.__qualname__ = _PATH, "ReadFileTool"
    assert not known_facts(Mine())
    assert not known_facts(Namesake())


def test_another_version_is_not_reviewed(monkeypatch: pytest.MonkeyPatch) -> None:
    known_tools.is_reviewed.cache_clear()
    for version, reviewed in (("0.4.2", True), ("0.5.0", False), ("0.40.1", False)):
        monkeypatch.setattr(metadata, "version", lambda name, version=version: version)
        assert known_tools.is_reviewed("langchain_community") is reviewed
        known_tools.is_reviewed.cache_clear()


@pytest.mark.parametrize("name", _TABLE["tools"])
def test_every_entry_names_a_class_that_there_is(name: str) -> None:
    package = name.partition(".")[0]
    pytest.importorskip(package)
    if not known_tools.is_reviewed(package):
        pytest.skip("another version than the reviewed one")
    module, _, cls = name.rpartition(".")
    assert issubclass(getattr(import_module(module), cls), BaseTool)


READS = [
    ("terminal", {"commands": ["ls -la", "cat notes.txt"]}),
    ("file_search", {"pattern": "*.py"}),
    ("read_file", {"file_path": "notes.txt"}),
    ("list_directory", {"dir_path": "."}),
    ("requests_get", {"url": "https://docs.python.org/3/"}),
    ("sql_db_query", {"query": "select * from orders"}),
    ("sql_db_schema", {"table_names": "orders"}),
    ("sql_db_list_tables", {"tool_input": ""}),
    ("sql_db_query_checker", {"query": "select 1"}),
]
WRITES = [
    ("copy_file", {"source_path": "notes.txt", "destination_path": "b.txt"}, "paths.write_inside"),
    ("move_file", {"source_path": "notes.txt", "destination_path": "c.txt"}, "paths.write_inside"),
    ("file_delete", {"file_path": "notes.txt"}, "paths.write_inside"),
    ("write_file", {"file_path": "w.txt", "text": "x"}, "paths.write_inside"),
    (
        "requests_post",
        {"text": '{"url": "https://x.example.org/a", "data": {}}'},
        "destructive.effects",
    ),
    ("requests_delete", {"url": "https://x.example.org/a"}, "destructive.effects"),
    ("sql_db_query", {"query": "select * from orders; drop table orders"}, "sql.multiple"),
    ("Python_REPL", {"query": "print(1)"}, "declared.writes"),
]
DENIED = [
    ("copy_file", {"source_path": "/etc/shadow", "destination_path": "x"}, "paths.sensitive"),
    ("requests_get", {"url": "http://169.254.169.254/latest"}, "network.address"),
    ("sql_db_query", {"query": "delete from orders"}, "sql.unbounded_write"),
]


def test_community_tools_read_freely_and_ask_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    community = "langchain_community.agent_toolkits"
    toolkits = pytest.importorskip(community, reason="pip install --group community")
    repl = pytest.importorskip("langchain_experimental.tools").PythonREPLTool()
    shell = import_module("langchain_community.tools").ShellTool()
    wrapper = import_module("langchain_community.utilities.requests").TextRequestsWrapper(
        headers={}
    )
    database = import_module("langchain_community.utilities").SQLDatabase.from_uri("sqlite://")
    requests = import_module(f"{community}.openapi.toolkit").RequestsToolkit
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("x", "utf-8")
    governor = Governor()
    tools = [
        shell,
        *toolkits.FileManagementToolkit(root_dir=".").get_tools(),
        *requests(requests_wrapper=wrapper, allow_dangerous_requests=True).get_tools(),
        *toolkits.SQLDatabaseToolkit(
            db=database, llm=FakeListChatModel(responses=["SELECT 1"])
        ).get_tools(),
        repl,
    ]
    kept = [governor.govern(tool) for tool in tools]  # the one line
    assert len(kept) == 18
    expected = [
        *((*call, "allow", "") for call in READS),
        *((*call[:2], "ask", call[2]) for call in WRITES),
    ]
    for name, arguments, behavior, rule in [
        *expected,
        *((*call[:2], "deny", call[2]) for call in DENIED),
    ]:
        with agent_context(actor="agent:dev", session_id="s", roots=["."]):
            answer = governor.find(name).check(**arguments)
        told = answer.decision.reason.rule_ref if answer.decision else ""
        assert (name, answer.behavior.value) == (name, behavior)
        assert rule in told
