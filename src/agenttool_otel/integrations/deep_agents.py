"""The door of deepagents: an agent of which all calls are governed, those of its sub-agents included.

An agent's guard sees its own calls alone (``langchain/reach.py``), so each agent of the tree gets one. The file
tools' facts depend on where their files are: below a directory, in the graph's state, or elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from deepagents import create_deep_agent
from deepagents.backends import (
    CompositeBackend,
    FilesystemBackend,
    LocalShellBackend,
    StateBackend,
    StoreBackend,
)
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.path_base import NOWHERE
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware, is_guard
from agenttool_otel.integrations.langchain.reach import unseen_tools

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor

_READING: Final = ("ls", "read_file", "glob", "grep")
_WRITING: Final = ("write_file", "edit_file", "delete")
_ACROSS_ROUTES: Final = ("glob", "grep", "delete")
_PATH: Final = {"ls": "path", "glob": "path", "grep": "path"}
"""The argument that is a path, where it is not ``file_path``."""
_PATTERN: Final = {"glob": "pattern", "grep": "glob"}
"""The argument that is a pattern of file names."""
_REPLACED: Final = (
    "FilesystemMiddleware",
    "SummarizationMiddleware",
    "PatchToolCallsMiddleware",
    "SkillsMiddleware",
    "AnthropicPromptCachingMiddleware",
)
"""Middleware that the general-purpose sub-agent has from its parent, where the program replaces it."""


def create_governed_agent(
    model: Any,
    tools: Sequence[Any] | None = None,
    *,
    governor: Governor | None = None,
    facts: Mapping[str, GovernOptions] | None = None,
    middleware: Sequence[Any] = (),
    subagents: Sequence[Any] = (),
    general_purpose: bool = True,
    **options: Any,
) -> Any:
    """Make a deep agent as ``create_deep_agent`` does, and govern all of it.

    Args:
        model: as of ``create_deep_agent``; so are the others that are not named here.
        tools: its own tools.
        governor: who decides; ``None`` for the default Governor.
        facts: facts of tools by name or glob; they come before the reviewed ones of deepagents' own tools.
        middleware: its own middleware.
        subagents: its sub-agents; each gets a guard. A compiled one has to have its own.
        general_purpose: whether it has deepagents' own general-purpose sub-agent.
        options: further arguments of ``create_deep_agent``.

    Raises:
        ConfigurationError: tools are left that nothing governs, as those of a compiled sub-agent.
    """
    backend = options.get("backend") or StateBackend()
    options["backend"] = backend
    stated = facts or {}

    def guard(own_tools: Sequence[Any], own_middleware: Sequence[Any]) -> AgentToolMiddleware:
        reviewed = _reviewed(backend, own_tools, own_middleware)
        fitting = {name: known for name, known in reviewed.items() if not options_for(stated, name)}
        return AgentToolMiddleware(governor, {**stated, **fitting})

    def guarded(spec: Mapping[str, Any]) -> Mapping[str, Any]:
        # a compiled agent has the middleware that it was made with, and a remote one runs elsewhere
        if "runnable" in spec or "graph_id" in spec:
            return spec
        own = list(spec.get("middleware", ()))
        # a forked one has its parent's, too
        seen = [*middleware, *own] if spec.get("mode") == "fork" else own
        own.append(guard(spec.get("tools", tools) or (), seen))
        return {**spec, "middleware": own}

    specs = list(subagents)
    if general_purpose and not _has_general_purpose(specs):
        specs.append(_general_purpose(middleware, options.get("skills")))
    agent = create_deep_agent(
        model,
        tools,
        middleware=[*middleware, guard(tools or (), middleware)],
        subagents=list(map(guarded, specs)),
        **options,
    )
    unseen = unseen_tools(agent, is_guard)
    if unseen:
        raise ConfigurationError(f"of this agent nothing governs {', '.join(unseen)}")
    return agent


def _has_general_purpose(specs: Iterable[Mapping[str, Any]]) -> bool:
    return any(spec["name"] == GENERAL_PURPOSE_SUBAGENT["name"] for spec in specs)


def _general_purpose(middleware: Iterable[Any], skills: Any) -> dict[str, Any]:
    """Return deepagents' own sub-agent, with what it has of the agent's middleware."""
    replaced = [part for part in middleware if part.name in _REPLACED]
    return {**GENERAL_PURPOSE_SUBAGENT, "skills": skills, "middleware": replaced}


# --- facts of deepagents' own tools -------------------------------------------------------------------


def _reviewed(
    backend: Any, tools: Iterable[Any], middleware: Iterable[Any]
) -> dict[str, GovernOptions]:
    """Return the reviewed facts that fit an agent: none of a tool that the program has in its place."""
    names = set(map(_name_of, tools))
    for part in middleware:
        if isinstance(part, FilesystemMiddleware):
            # it has a back end of its own; a subclass may have other tools, too
            backend = part.backend if type(part) is FilesystemMiddleware else None
        else:
            names.update(map(_name_of, getattr(part, "tools", ())))
    return {name: facts for name, facts in file_facts(backend).items() if name not in names}


def _name_of(tool: Any) -> str:
    # {"type": "web_search"} runs at the model's provider
    if isinstance(tool, Mapping):
        return str(tool.get("name"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None))


def file_facts(backend: Any) -> dict[str, GovernOptions]:
    """Return the reviewed facts of the tools that deepagents adds, by name.

    Args:
        backend: where the agent's files are. Of a class that was not reviewed, the file tools have no facts,
            and the stock policy asks about their calls.
    """
    # what its sub-agent does is decided call by call
    task = {"access_kinds": [], "read_only": True, "result_trust": "free_text"}
    facts: dict[str, GovernOptions] = {"task": cast(GovernOptions, task)}
    parts = _parts(backend)
    bases = _bases(parts)
    if bases is None:
        return facts
    on_disk = any(base != NOWHERE for base in bases.values())
    # the files of a store outlive the thread
    lasts = on_disk or any(type(part) is StoreBackend for part in parts.values())
    for name in (*_READING, *_WRITING):
        # grep of / looks into the directories of all routes, and not of / alone
        if len(bases) == 1 or not on_disk or name not in _ACROSS_ROUTES:
            facts[name] = _file_tool(name, bases, on_disk=on_disk, lasts=lasts)
    shell = parts["/"]
    # a relative path in a command is read from this process's directory
    if type(shell) is LocalShellBackend and Path(shell.cwd) == Path.cwd():
        facts["execute"] = _shell()
    return facts


def _parts(backend: Any) -> dict[str, Any]:
    """Return the back ends by the beginnings of their paths."""
    if type(backend) is CompositeBackend:
        return {**backend.routes, "/": backend.default}
    return {"/": backend}


def _bases(parts: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the directories by the beginnings of paths; ``None`` where one is not known."""
    bases: dict[str, str] = {}
    for prefix, part in parts.items():
        base = _base(part)
        if base is None:
            return None
        bases[prefix] = base
    return bases


def _base(backend: Any) -> str | None:
    # a subclass may open any other file
    if type(backend) in (StateBackend, StoreBackend):
        return NOWHERE
    if type(backend) in (FilesystemBackend, LocalShellBackend):
        return str(backend.cwd) if backend.virtual_mode else "/"
    return None


def _file_tool(name: str, bases: Mapping[str, str], *, on_disk: bool, lasts: bool) -> GovernOptions:
    writes = name in _WRITING
    kind = "file_operation"
    # the stock policy asks about a file tool whose call names no file of this machine
    if NOWHERE in bases.values():
        kind = "artifact_operation" if writes else "retrieval"
    options: dict[str, Any] = {
        "tool_kind": kind,
        "read_only": not writes,
        "path_base": bases,
        "path_args": [_PATH.get(name, "file_path")],
        "access_kinds": [],
    }
    if on_disk:
        options["access_kinds"] = ["file_read", "file_write"] if writes else ["file_read"]
        options["validate"] = partial(_check, name)
    if writes:
        options["write_effects"] = ["local_persistent" if lasts else "local_draft"]
        options["destructive"] = name == "delete"
    return cast(GovernOptions, options)


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that deepagents may take for another file than the one decided about."""
    argument = _PATH.get(name, "file_path")
    path = arguments.get(argument)
    if not path:
        raise ValueError(f"{argument} is needed: without it all files are meant")
    if not _is_plain(path):
        raise ValueError(f"{argument} has to be written plainly, as /notes/a.txt")
    pattern = arguments.get(_PATTERN.get(name, ""))
    # {"path": "/site", "pattern": "../*"}
    if isinstance(pattern, str) and ".." in pattern:
        raise ValueError("the pattern must not leave the directory")


def _is_plain(path: str) -> bool:
    r"""Return whether a path leads where it seems to: by ``//notes/a`` deepagents opens no file of the
    route ``/notes/``, by ``/./notes/a`` and ``\notes\a`` it does.
    """
    if path == "/":
        return True
    parts = path.removeprefix("/").removesuffix("/").split("/")
    return "\\" not in path and not any(part in ("", ".", "..") for part in parts)


def _shell() -> GovernOptions:
    return {
        "tool_kind": "shell_command",
        "access_kinds": ["file_read", "file_write", "code_execution"],
        "command_args": ["command"],
        "read_only": cast(Any, "classifier:command_read_only"),
        "destructive": cast(Any, "classifier:command_destructive"),
    }
