"""Modules that start programs as the shell tools of langchain-community and deepagents do."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from agenttool_otel.integrations.langchain import known_tools

SHELL = "langchain_community.tools.shell.tool"
BASH = "langchain_experimental.llm_bash.bash"
EXECUTE = "deepagents.middleware.filesystem"
LOCAL = "deepagents.backends.local_shell"

_BASH_SOURCE = """
import subprocess

class BashProcess:
    def __init__(self, persistent=False):
        self.process = object() if persistent else None

    def run(self, commands):
        lines = [commands] if isinstance(commands, str) else commands
        try:
            return subprocess.run(
                ";".join(lines), shell=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            ).stdout.decode()
        except subprocess.CalledProcessError as error:
            return error.stdout.decode()
"""
_SHELL_SOURCE = """
from typing import Any
from langchain_core.tools import BaseTool

class ShellTool(BaseTool):
    name: str = "terminal"
    description: str = "Run shell commands."
    process: Any = None

    def _run(self, commands: str | list[str]) -> str | None:
        try:
            return self.process.run(commands)
        except Exception:
            return None
"""
_LOCAL_SOURCE = """
import subprocess

class LocalShellBackend:
    def __init__(self, cwd):
        self.cwd = cwd

    def execute(self, command, *, timeout=None):
        try:
            return subprocess.run(
                command, check=False, shell=True, capture_output=True, stdin=subprocess.DEVNULL, text=True,
                timeout=timeout or 120, env={}, cwd=self.cwd, start_new_session=True,
            ).stdout
        except Exception as error:
            return repr(error)
"""
_EXECUTE_SOURCE = '''
import asyncio
from langchain_core.tools import StructuredTool

class FilesystemMiddleware:
    def __init__(self, backend):
        self.backend = backend

    def tool(self):
        def sync_execute(command: str) -> str:
            """Run a command."""
            return self.backend.execute(command)

        async def async_execute(command: str) -> str:
            """Run a command."""
            return await asyncio.to_thread(self.backend.execute, command)

        return StructuredTool.from_function(name="execute", func=sync_execute, coroutine=async_execute)
'''
_SOURCES = {
    BASH: _BASH_SOURCE,
    SHELL: _SHELL_SOURCE,
    LOCAL: _LOCAL_SOURCE,
    EXECUTE: _EXECUTE_SOURCE,
}


def stand_ins(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put modules of these names in place, in reviewed versions; return them by name."""
    monkeypatch.setattr(known_tools, "is_reviewed", lambda package: True)
    modules: dict[str, Any] = {}
    for name, source in _SOURCES.items():
        modules[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[name])
        exec(source, vars(modules[name]))
    return modules
