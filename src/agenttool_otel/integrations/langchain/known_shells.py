"""Shell tools of LangChain's packages and deepagents: how each can be held where a policy obliges it.

A shell that starts a program for each call does so by ``subprocess.run`` of its module; there the
program is started by ``run_command`` while a profile holds, and as before where none does. A shell
that stays open, or that is on another host, was there before its call, and no profile holds it.
"""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any, Final, cast

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.integrations.langchain import known_tools
from agenttool_otel.integrations.langchain.first_use import base_of
from agenttool_otel.integrations.langchain.methods import FUNCTIONS, field_of
from agenttool_otel.values.forks import new_lock

_BY_COMMANDS: Final[GovernOptions] = {"runs_commands": True}
_ELSEWHERE: Final[GovernOptions] = {"runs_elsewhere": True}

_SHELL_TOOL: Final = "langchain_community.tools.shell.tool.ShellTool"
_BASH: Final = "langchain_experimental.llm_bash.bash.BashProcess"
_SESSION: Final = "langchain.agents.middleware.shell_tool"
_EXECUTE: Final = "deepagents.middleware.filesystem"
_LOCAL: Final = "deepagents.backends.local_shell.LocalShellBackend"


def holding_facts(tool: Any) -> GovernOptions:
    """Return how the commands of a shell tool can be held; nothing for other tools.

    Args:
        tool: a LangChain tool.
    """
    names = [_name(cls) for cls in base_of(tool).__mro__]
    if _SHELL_TOOL in names:
        return _of_shell_tool(tool, names[0])
    for field in FUNCTIONS:
        function = field_of(tool, field) if field in type(tool).model_fields else None
        module = getattr(function, "__module__", None)
        if module == _SESSION:
            return _ELSEWHERE
        if module == _EXECUTE and getattr(function, "__name__", "").endswith("_execute"):
            return _of_backend(_backend(function))
    return {}


def _of_shell_tool(tool: Any, name: str) -> GovernOptions:
    """Return the facts of community's ShellTool: its ``process`` may be any object."""
    process = getattr(tool, "process", None)
    if _name(type(process)) != _BASH or getattr(process, "process", None) is not None:
        return _ELSEWHERE  # BashProcess(persistent=True) is a bash that stays open
    if name != _SHELL_TOOL or not known_tools.is_reviewed("langchain_community"):
        return {}  # what the subclass does itself is held as any function is
    return _BY_COMMANDS if _is_diverted(type(process)) else {}


def _of_backend(backend: Any) -> GovernOptions:
    """Return the facts of deepagents' ``execute``: a backend may be on another host."""
    if _name(type(backend)) != _LOCAL or not _is_diverted(type(backend)):
        return _ELSEWHERE
    return _BY_COMMANDS


def _backend(function: Any) -> Any:
    """Return the backend that ``execute`` runs commands by; ``None`` where it can't be seen."""
    try:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        backend = dict(cells)["self"].cell_contents.backend
    except (AttributeError, KeyError, ValueError):
        return None
    if _name(type(backend)) == "deepagents.backends.composite.CompositeBackend":
        return backend.default
    return backend


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_lock: Final = new_lock()


def _is_diverted(cls: type) -> bool:
    """Let a class's module start programs by ``run_command`` while a profile holds.

    Returns:
        Whether it does: the class is the reviewed one.
    """
    module = sys.modules.get(cls.__module__)
    package, _, _ = cls.__module__.partition(".")
    # a class of another file may have the same __module__
    if getattr(module, cls.__qualname__, None) is not cls or not known_tools.is_reviewed(package):
        return False
    with _lock:
        if isinstance(getattr(module, "subprocess", None), _Diverted):
            return True
        if getattr(module, "subprocess", None) is not subprocess:
            return False
        cast(Any, module).subprocess = _Diverted("subprocess")
    return True


class _Diverted(ModuleType):
    """``subprocess`` for a module whose programs are held where a profile is obliged."""

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    @staticmethod
    def run(*args: Any, **kwargs: Any) -> Any:
        """Run a program; see ``subprocess.run``."""
        from agenttool_otel.enforcement.in_place import is_held, run_held

        return run_held(*args, **kwargs) if is_held() else subprocess.run(*args, **kwargs)  # noqa: S603
