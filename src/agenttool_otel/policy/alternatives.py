"""Safer calls in place of a shell command (openboa, "permissions_check": read-first alternatives).

A command that only reads a file, a range of it, a listing, a find or a grep is answered with the
governed tool that does just that; a command that writes only by one of its words is answered with
the form that reads. A suggestion is never a permission: the suggested call is decided like any
other. Read-only forms are proven before they are offered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from agenttool_otel.names import AccessKind, ToolKind
from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.shell.tables import effects
from agenttool_otel.readers.types import ShellCommand, ShellFact
from agenttool_otel.values.tables import load_table

_MAX_FILES = 5
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_RANGE = re.compile(r"([0-9]{1,9})(?:,([0-9]{1,9}))?p\Z")
_COUNT = re.compile(r"[+]?[0-9]{1,9}\Z")
_GLOB = re.compile(r"[*?\[]")
_UNSAFE_ACCESS = frozenset(map(str, AccessKind)) - {str(AccessKind.FILE_READ)}
_READING_KINDS = frozenset({ToolKind.FILE_OPERATION, ToolKind.RETRIEVAL, ToolKind.NATIVE_TOOL})

_Options = list[tuple[str, str]]


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = load_table("agenttool_otel.policy", "data/alternatives.json")
    return table


class _Tool:
    """One available tool with its argument names."""

    def __init__(self, name: str, described: Mapping[str, Any]) -> None:
        self.name = name
        self.kind = str(described.get("kind") or "")
        access = described.get("access_kinds") or ()
        self.access = (
            {str(item) for item in access}
            if isinstance(access, (Sequence, set, frozenset))
            else {"unknown"}
        )
        names = described.get("argument_names") or ()
        self.arguments = (
            {_plain(str(item)): str(item) for item in names} if not isinstance(names, str) else {}
        )
        self.words = [word.lower() for word in _WORD.findall(re.split(r"__|[./:]", name)[-1])]

    def argument(self, *roles: str, besides: str | None = None) -> str | None:
        """The tool's name for an argument: the most usual one that it has."""
        wanted = (name for role in roles for name in _table()["arguments"][role])
        return next(
            (
                found
                for name in wanted
                if (found := self.arguments.get(name)) not in (None, besides)
            ),
            None,
        )

    @property
    def reads_only(self) -> bool:
        if self.access & _UNSAFE_ACCESS or "unknown" in self.access:
            return False
        return AccessKind.FILE_READ in self.access or (
            not self.access and self.kind in _READING_KINDS
        )

    def does(self, job: str) -> int | None:
        """How well the name fits a job (smaller is better), or None."""
        words = set(self.words)
        runs = self.kind in (ToolKind.SHELL_COMMAND, ToolKind.CODE_EXECUTION)
        listing = job == "grep" and {"search", "files"} <= words
        if runs or listing or not self.reads_only or words & set(_table()["other_jobs"]):
            return None
        rank = next(
            (i for i, wanted in enumerate(_table()["tools"][job]) if words.issuperset(wanted)), None
        )
        return None if rank is None else rank * 10 + len(self.words)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def shell_alternatives(
    fact: ShellFact, *, available: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Names governed calls that do what a shell command does, with less power. Pure, never
    raises.
    """
    try:
        return _alternatives(
            fact, [_Tool(name, described) for name, described in available.items()]
        )
    except Exception:
        # a suggestion is a courtesy; a malformed fact or tool description just has none
        return []


def _alternatives(fact: ShellFact, tools: list[_Tool]) -> list[dict[str, Any]]:
    if fact["sensitive_read"] or len(fact["commands"]) != 1:
        return []
    command = fact["commands"][0]
    found: list[dict[str, Any]] = []
    proven = fact["read_only"] and fact["parsed"]
    if proven and not command["redirects"]:
        found = _dedicated(command["name"], command["argv"][1:], tools)
    form = shlex.join(command["argv"]) if proven else _read_only_form(fact, command)
    shell = _shell_tool(fact, tools, weaker=fact["read_only"])
    if form and shell is not None:
        name, argument = shell
        reason = (
            "this form of the command only reads"
            if not fact["read_only"]
            else "this shell only reads"
        )
        found.append({"tool": name, "arguments": {argument: form}, "reason": reason})
    return found


def _dedicated(name: str, words: list[str], tools: list[_Tool]) -> list[dict[str, Any]]:
    """The calls of the tool that does the command's very job."""
    if name == "wc" and words[:1] not in (["-l"], ["--lines"]):
        return []
    job, answer = _JOBS.get(name, ("", _read))
    ranked = [
        (rank, tool.name, tool) for tool in tools if job and (rank := tool.does(job)) is not None
    ]
    read = _options(name, words) if ranked else None
    return [] if read is None else answer(name, *read, min(ranked)[2])


def _options(name: str, words: list[str]) -> tuple[_Options, list[str]] | None:
    """Read a command's words: options with their values, and operands; ``None`` at an option that
    says more.
    """
    flags, values = _table()["options"][name]
    options: _Options = []
    operands: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        elif re.fullmatch(flags, word):
            options.append((word, ""))
        else:
            match = re.fullmatch(values, word)
            attached = match[1] if match is not None and match.re.groups else None
            value = attached if attached is not None or match is None else next(rest, None)
            if value is None:
                return None
            options.append((word, value))
    return options, operands


def _call(tool: _Tool, arguments: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"tool": tool.name, "arguments": arguments, "reason": reason}


def _read(name: str, options: _Options, files: list[str], tool: _Tool) -> list[dict[str, Any]]:
    first = last = tail = None
    if name == "sed":
        bounds = _RANGE.match(files[0]) if files and options else None
        if not bounds:
            return []
        first, last, files = int(bounds[1]), int(bounds[2] or bounds[1]), files[1:]
    elif name in ("head", "tail"):
        for _, number in options or [("-n", "10")]:
            if not _COUNT.match(number):
                return []
            if name == "head":
                first, last = 1, int(number)
            elif number.startswith("+"):
                first = max(1, int(number))
            else:
                tail = int(number)
    if (
        not files
        or len(files) > _MAX_FILES
        or any(_GLOB.search(item) or item[0] in "~-" for item in files if item)
    ):
        return []
    span, text = _span(tool, first, last, tail)
    several, single = tool.argument("paths"), tool.argument("path")
    if several is not None and (len(files) > 1 or single is None):
        return [_call(tool, {several: files, **span}, f"reads {text} with the file tool")]
    if single is None:
        return []
    return [
        _call(tool, {single: item, **span}, f"reads {text} of {item[:200]} with the file tool")
        for item in files
    ]


def _span(
    tool: _Tool, first: int | None, last: int | None, tail: int | None
) -> tuple[dict[str, Any], str]:
    start, end, limit = tool.argument("start"), tool.argument("end"), tool.argument("limit")
    if tail is not None:
        name = tool.argument("tail")
        return (
            ({name: tail}, f"the last {tail} lines")
            if name
            else ({}, f"the text (last {tail} lines asked)")
        )
    if first is None:
        return {}, "the text"
    if last is None:
        return ({start: first} if start else {}), f"lines {first} and following"
    wanted = f"lines {first} to {last}"
    if start and end:
        return {start: first, end: last}, wanted
    if limit and (start or first == 1):
        span = {limit: max(0, last - first + 1)}
        return ({start: first, **span} if start and first > 1 else span), wanted
    return ({end: last}, wanted) if end and first == 1 else ({}, f"the text ({wanted} asked)")


def _list(_name: str, options: _Options, operands: list[str], tool: _Tool) -> list[dict[str, Any]]:
    if len(operands) > 1:
        return []
    recursive = any("R" in option or option == "--recursive" for option, _ in options)
    where = operands[0] if operands else "."
    pattern = "**/*" if recursive else "*"
    if _GLOB.search(where):
        directory, _, pattern = where.rpartition("/")
        if _GLOB.search(directory):
            directory, pattern = ".", where
        where = directory or "."
    return _glob_call(tool, where, pattern, None, recursive=recursive)


def _find(_name: str, options: _Options, starts: list[str], tool: _Tool) -> list[dict[str, Any]]:
    wanted = dict(options)
    kind, name = wanted.get("-type"), wanted.get("-name")
    if (
        len(wanted) < len(options)
        or len(starts) > 1
        or kind not in (None, "f", "d")
        or not (starts or kind or name)
    ):
        return []
    if wanted.get("-maxdepth", "1") != "1":
        return []
    depth_one = "-maxdepth" in wanted
    pattern = (name or "*") if depth_one else f"**/{name or '*'}"
    words = {"f": "file", "d": "directory"}
    return _glob_call(
        tool, starts[0] if starts else ".", pattern, kind and words[kind], recursive=not depth_one
    )


def _glob_call(
    tool: _Tool, where: str, pattern: str, kind: str | None, *, recursive: bool
) -> list[dict[str, Any]]:
    directory, matches = tool.argument("directory"), tool.argument("pattern")
    if where.startswith("~"):
        return []
    if matches == directory:
        matches = None
    arguments: dict[str, Any] = {}
    if matches is None:
        if directory is None or pattern not in ("*", "**/*") or kind is not None:
            return []
        flag = tool.argument("recursive")
        if recursive and flag is None:
            return []
        arguments = {directory: where, **({flag: True} if recursive and flag else {})}
    elif directory is None:
        prefix = "" if where in (".", "./") else where.rstrip("/") + "/"
        arguments = {matches: prefix + pattern}
    else:
        arguments = {directory: where, matches: pattern}
    if kind is not None:
        if (name := tool.argument("kind")) is None:
            return []
        arguments[name] = kind
    return [_call(tool, arguments, f"lists {pattern[:100]} below {where[:200]} with the file tool")]


def _grep(_name: str, options: _Options, operands: list[str], tool: _Tool) -> list[dict[str, Any]]:
    query = tool.argument("query")
    where = operands[1] if len(operands) == 2 else "."
    if (
        query is None
        or not 1 <= len(operands) <= 2
        or _GLOB.search(where)
        or where.startswith(("~", "-"))
    ):
        return []
    arguments: dict[str, Any] = {query: operands[0]}
    directory = tool.argument("directory", "path")
    if directory is not None and directory != query:
        arguments[directory] = where
    elif where not in (".", "./"):
        return []
    if any(
        option == "--ignore-case" or (option[1] != "-" and "i" in option) for option, _ in options
    ):
        insensitive, sensitive = tool.argument("ignore_case"), tool.argument("case")
        if insensitive is None and sensitive is None:
            return []
        arguments[insensitive or str(sensitive)] = insensitive is not None
    for value in [
        value for option, value in options if option.startswith(("--include=", "-g", "--glob"))
    ][-1:]:
        if (key := tool.argument("include", besides=query)) is None:
            return []
        arguments[key] = value
    return [_call(tool, arguments, f"searches {where[:200]} with the search tool")]


_JOBS = {
    **dict.fromkeys(("cat", "head", "tail", "sed", "nl", "wc"), ("read", _read)),
    **dict.fromkeys(("grep", "egrep", "rg"), ("grep", _grep)),
    "ls": ("glob", _list),
    "find": ("glob", _find),
}


def _read_only_form(fact: ShellFact, command: ShellCommand) -> str | None:
    """The command without the words that write, when that is all that keeps it from being proven to
    only read.
    """
    argv = command["argv"]
    if not argv or command["assignments"] or any(char in word for word in argv for char in "$`"):
        return None
    words = _without_writing(command["name"], argv)
    fed = any(row["operator"].endswith(("<", "<<", "<<<")) for row in command["redirects"])
    if (
        fed
        or not words
        or (words == argv and not any(row["writes"] for row in command["redirects"]))
    ):
        return None
    # A glob lost its quotes' absence in argv: quoting it again would ask for a file of that very
    # name.
    if command["name"] != "find" and any(_GLOB.search(word) for word in words):
        return None
    form = shlex.join(words)
    proven = shell_fact(form, argument=fact["argument"])
    return form if proven["read_only"] and not proven["sensitive_read"] else None


def _without_writing(name: str, argv: list[str]) -> list[str]:
    """The words of a command without those that make it write, each with what belongs to it."""
    if (taking := _table()["writing_words"].get(name)) is None:
        return argv
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if name == "find" and word in effects().lists["find_actions"]:
            next((inner for inner in rest if inner in (";", "+")), None)
        elif word in taking:
            for _ in range(taking[word]):
                next(rest, None)
        elif name != "sort" or not word.startswith(("-o", "--output=")):
            words.append(word)
    return words


def _shell_tool(fact: ShellFact, tools: list[_Tool], *, weaker: bool) -> tuple[str, str] | None:
    """The shell tool for the form: the one that was asked, or, for a command that reads, one that
    can only read.
    """
    asked = _plain(fact["argument"].rsplit("/", 1)[-1])
    for wanted in (asked, *_table()["arguments"]["command"]):
        for tool in tools:
            strong = weaker and (tool.access - {str(AccessKind.FILE_READ)} or not tool.access)
            if (
                tool.kind == ToolKind.SHELL_COMMAND
                and wanted
                and wanted in tool.arguments
                and not strong
            ):
                return tool.name, tool.arguments[wanted]
    return None
