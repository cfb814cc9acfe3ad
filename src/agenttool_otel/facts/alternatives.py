"""Safer calls in place of a shell command (openboa, "permissions_check": read-first alternatives).

A command that only reads a file, a range of it, a listing, a find or a grep is answered with the governed tool that
does just that; a command that writes only by one of its words is answered with the form that reads. A suggestion is
never a permission: the suggested call is decided like any other. Read-only forms are proven before they are offered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from agenttool_otel.facts.shell import shell_fact
from agenttool_otel.facts.types import ShellCommand, ShellFact
from agenttool_otel.names import AccessKind, ToolKind

_MAX_FILES = 5
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_RANGE = re.compile(r"([0-9]{1,9})(?:,([0-9]{1,9}))?p\Z")
_GLOB = re.compile(r"[*?\[]")
_UNSAFE_ACCESS = frozenset(AccessKind) - {AccessKind.FILE_READ}
_READING_KINDS = frozenset({ToolKind.FILE_OPERATION, ToolKind.RETRIEVAL, ToolKind.NATIVE_TOOL})

# How tools are called that do one thing, as words of their names.
_TOOL_WORDS: dict[str, tuple[frozenset[str], ...]] = {
    "read": tuple(map(frozenset, (["read"], ["view"], ["cat"], ["open", "file"], ["get", "file"], ["load", "file"]))),
    "glob": tuple(
        map(
            frozenset,
            (
                ["glob"],
                ["ls"],
                ["list", "dir"],
                ["list", "directory"],
                ["list", "files"],
                ["search", "files"],
                ["find"],
            ),
        )
    ),
    "grep": tuple(map(frozenset, (["grep"], ["ripgrep"], ["search"]))),
}
# Words that tell of another job than reading files.
_OTHER_WORDS = frozenset(
    {"write", "edit", "delete", "create", "remove", "update", "web", "http", "url", "message", "mail", "database"}
    | {"sql", "memory", "history", "skill", "skills", "session", "version"}
)

# What the arguments of such tools are called, most usual first; compared without case and separators.
_PATH = ("path", "filepath", "file", "filename", "targetfile", "absolutepath", "relativepath", "relativeworkspacepath")
_PATHS = ("paths", "files", "filepaths", "filenames")
_DIRECTORY = ("path", "directory", "dir", "root", "rootdir", "cwd", "basepath", "folder", "searchpath", "dirpath")
_PATTERN = ("pattern", "glob", "globpattern", "namepattern", "name", "query", "include")
_QUERY = ("pattern", "query", "regex", "regexp", "text", "search", "needle", "searchtext", "q")
_START = ("startline", "start", "linestart", "fromline", "firstline", "offset", "lineoffset", "begin", "from")
_END = ("endline", "end", "lineend", "toline", "lastline", "endlineinclusive", "to")
_LIMIT = ("limit", "maxlines", "linecount", "numlines", "lines", "linelimit", "head", "count")
_TAIL = ("tail", "taillines", "last", "lastlines")
_KIND = ("kind", "type", "entrytype", "filetype")
_IGNORE_CASE = ("ignorecase", "caseinsensitive", "i", "insensitive", "nocase")
_CASE = ("casesensitive", "matchcase")
_INCLUDE = ("include", "glob", "fileglob", "filepattern", "includepattern", "includes")
_RECURSIVE = ("recursive", "recurse")
_COMMAND = ("command", "cmd", "script", "commandline", "shellcommand", "code", "input")


class _Tool:
    """One available tool with its argument names."""

    def __init__(self, name: str, described: Mapping[str, Any]) -> None:
        self.name = name
        self.kind = str(described.get("kind") or "")
        access = described.get("access_kinds") or ()
        self.access = {str(item) for item in access} if isinstance(access, (Sequence, set, frozenset)) else {"unknown"}
        names = described.get("argument_names") or ()
        self.arguments = {_plain(str(item)): str(item) for item in names} if not isinstance(names, str) else {}
        self.words = [word.lower() for word in _WORD.findall(re.split(r"__|[./:]", name)[-1])]

    def argument(self, wanted: Sequence[str]) -> str | None:
        return next((self.arguments[name] for name in wanted if name in self.arguments), None)

    @property
    def reads_only(self) -> bool:
        if self.access & {str(item) for item in _UNSAFE_ACCESS} or "unknown" in self.access:
            return False
        return AccessKind.FILE_READ in self.access or (not self.access and self.kind in _READING_KINDS)

    def does(self, job: str) -> int | None:
        """How well the name fits a job (smaller is better), or None."""
        words = set(self.words)
        if self.kind in (ToolKind.SHELL_COMMAND, ToolKind.CODE_EXECUTION) or words & _OTHER_WORDS:
            return None
        if not self.reads_only or (job == "grep" and {"search", "files"} <= words):
            return None
        rank = next((i for i, wanted in enumerate(_TOOL_WORDS[job]) if wanted <= words), None)
        return None if rank is None else rank * 10 + len(self.words)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def shell_alternatives(fact: ShellFact, *, available: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Names governed calls that do what a shell command does, with less power. Pure, never raises."""
    try:
        return _alternatives(fact, [_Tool(name, described) for name, described in available.items()])
    except Exception:  # a suggestion is a courtesy; a malformed fact or tool description just has none
        return []


def _alternatives(fact: ShellFact, tools: list[_Tool]) -> list[dict[str, Any]]:
    if fact["sensitive_read"] or len(fact["commands"]) != 1:
        return []
    command = fact["commands"][0]
    found: list[dict[str, Any]] = []
    if fact["read_only"] and fact["parsed"] and not command["redirects"]:
        found = _dedicated(command, tools)
    form = shlex.join(command["argv"]) if fact["read_only"] and fact["parsed"] else _read_only_form(fact, command)
    shell = _shell_tool(fact, tools, weaker=fact["read_only"])
    if form and shell is not None:
        name, argument = shell
        reason = "this form of the command only reads" if not fact["read_only"] else "this shell only reads"
        found.append({"tool": name, "arguments": {argument: form}, "reason": reason})
    return found


def _best(tools: list[_Tool], job: str) -> _Tool | None:
    ranked = sorted((rank, tool.name) for tool in tools if (rank := tool.does(job)) is not None)
    return next((tool for tool in tools if ranked and tool.name == ranked[0][1]), None)


def _dedicated(command: ShellCommand, tools: list[_Tool]) -> list[dict[str, Any]]:
    name, words = command["name"], command["argv"][1:]
    if name in ("cat", "head", "tail", "sed", "nl") or (name == "wc" and words[:1] in (["-l"], ["--lines"])):
        tool = _best(tools, "read")
        return [] if tool is None else _read(name, words, tool)
    if name in ("ls", "find"):
        tool = _best(tools, "glob")
        call = None if tool is None else (_list(words, tool) if name == "ls" else _find(words, tool))
    elif name in ("grep", "egrep", "rg"):
        tool = _best(tools, "grep")
        call = None if tool is None else _grep(name, words, tool)
    else:
        return []
    return [] if call is None else [call]


def _call(tool: _Tool, arguments: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"tool": tool.name, "arguments": arguments, "reason": reason}


# --- read -------------------------------------------------------------------------------------------------------------


def _read(name: str, words: list[str], tool: _Tool) -> list[dict[str, Any]]:
    first = last = tail = None
    files: list[str] = []
    index = 0
    script_seen = False
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--":
            files += words[index:]
            break
        if not word.startswith("-") or word == "-":
            if name == "sed" and not script_seen:
                bounds = _RANGE.match(word)
                if not bounds or "-n" not in words:
                    return []
                first, last, script_seen = int(bounds[1]), int(bounds[2] or bounds[1]), True
            else:
                files.append(word)
            continue
        if name in ("cat", "nl") and word in ("-n", "-A", "-e", "-t", "-v", "-b"):
            continue
        if (name == "sed" and word == "-n") or (name == "wc" and word in ("-l", "--lines")):
            continue
        if name not in ("head", "tail"):
            return []
        match = re.match(r"(?:-n|--lines=|-)([+]?[0-9]{1,9})\Z", word)
        if match:
            number = match[1]
        elif word in ("-n", "--lines") and index < len(words) and re.match(r"[+]?[0-9]{1,9}\Z", words[index]):
            number = words[index]
            index += 1
        else:
            return []
        if name == "head":
            first, last = 1, int(number)
        elif number.startswith("+"):
            first = max(1, int(number))
        else:
            tail = int(number)
    if name == "head" and last is None:
        first, last = 1, 10
    if name == "tail" and first is None and tail is None:
        tail = 10
    if not files or len(files) > _MAX_FILES or any(_GLOB.search(item) or item[0] in "~-" for item in files if item):
        return []
    span, text = _span(tool, first, last, tail)
    several = tool.argument(_PATHS)
    single = tool.argument(_PATH)
    if single is None and several is None:
        return []
    if several is not None and (len(files) > 1 or single is None):
        return [_call(tool, {several: files, **span}, f"reads {text} with the file tool")]
    return [
        _call(tool, {str(single): item, **span}, f"reads {text} of {item[:200]} with the file tool") for item in files
    ]


def _span(tool: _Tool, first: int | None, last: int | None, tail: int | None) -> tuple[dict[str, Any], str]:
    start, end, limit = tool.argument(_START), tool.argument(_END), tool.argument(_LIMIT)
    if tail is not None:
        name = tool.argument(_TAIL)
        return ({name: tail}, f"the last {tail} lines") if name else ({}, f"the text (last {tail} lines asked)")
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
    if end and first == 1:
        return {end: last}, wanted
    return {}, f"the text ({wanted} asked)"


# --- glob -------------------------------------------------------------------------------------------------------------


def _list(words: list[str], tool: _Tool) -> dict[str, Any] | None:
    operands: list[str] = []
    recursive = False
    for word in words:
        if word.startswith("-") and len(word) > 1:
            if not re.match(r"-[laAhpFGgo1ntrSR]+\Z|--(?:all|almost-all|human-readable|recursive)\Z", word):
                return None
            recursive = recursive or "R" in word or word == "--recursive"
        else:
            operands.append(word)
    if len(operands) > 1 or any(item.startswith("~") for item in operands):
        return None
    where = operands[0] if operands else "."
    pattern = "**/*" if recursive else "*"
    if _GLOB.search(where):
        directory, _, pattern = where.rpartition("/")
        if _GLOB.search(directory):
            directory, pattern = ".", where
        where = directory or "."
    return _glob_call(tool, where, pattern, None, recursive=recursive)


def _find(words: list[str], tool: _Tool) -> dict[str, Any] | None:
    starts: list[str] = []
    index = 0
    while index < len(words) and not words[index].startswith("-"):
        starts.append(words[index])
        index += 1
    name = kind = None
    depth_one = False
    while index + 1 < len(words):
        key, value = words[index], words[index + 1]
        index += 2
        if key == "-name" and name is None:
            name = value
        elif key == "-type" and value in ("f", "d") and kind is None:
            kind = "file" if value == "f" else "directory"
        elif key == "-maxdepth" and value == "1":
            depth_one = True
        else:
            return None
    if index != len(words) or len(starts) > 1 or (starts and starts[0].startswith("~")):
        return None
    if name is None and kind is None and not starts:
        return None
    pattern = (name or "*") if depth_one else f"**/{name or '*'}"
    return _glob_call(tool, starts[0] if starts else ".", pattern, kind, recursive=not depth_one)


def _glob_call(tool: _Tool, where: str, pattern: str, kind: str | None, *, recursive: bool) -> dict[str, Any] | None:
    directory, matches = tool.argument(_DIRECTORY), tool.argument(_PATTERN)
    if matches == directory:
        matches = None
    arguments: dict[str, Any] = {}
    if matches is None:
        if directory is None or pattern not in ("*", "**/*") or kind is not None:
            return None
        flag = tool.argument(_RECURSIVE)
        if recursive and flag is None:
            return None
        arguments = {directory: where, **({flag: True} if recursive and flag else {})}
    elif directory is None:
        prefix = "" if where in (".", "./") else where.rstrip("/") + "/"
        arguments = {matches: prefix + pattern}
    else:
        arguments = {directory: where, matches: pattern}
    if kind is not None:
        name = tool.argument(_KIND)
        if name is None:
            return None
        arguments[name] = kind
    return _call(tool, arguments, f"lists {pattern[:100]} below {where[:200]} with the file tool")


# --- grep -------------------------------------------------------------------------------------------------------------


def _grep(name: str, words: list[str], tool: _Tool) -> dict[str, Any] | None:
    operands: list[str] = []
    include = None
    ignore_case = False
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--":
            operands += words[index:]
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
        elif word.startswith("--include=") and name != "rg":
            include = word.partition("=")[2]
        elif word in ("-g", "--glob") and name == "rg" and index < len(words):
            include = words[index]
            index += 1
        elif re.match(r"-[nirRHEI]+\Z" if name != "rg" else r"-[niNH]+\Z", word):
            ignore_case = ignore_case or "i" in word
        elif word == "--ignore-case":
            ignore_case = True
        elif word not in ("--line-number", "--recursive", "--extended-regexp"):
            return None
    if not operands or len(operands) > 2:
        return None
    query = tool.argument(_QUERY)
    where = operands[1] if len(operands) == 2 else "."
    if query is None or _GLOB.search(where) or where.startswith(("~", "-")):
        return None
    arguments: dict[str, Any] = {query: operands[0]}
    directory = tool.argument([*_DIRECTORY, *_PATH])
    if directory is not None and directory != query:
        arguments[directory] = where
    elif where not in (".", "./"):
        return None
    if ignore_case:
        insensitive, sensitive = tool.argument(_IGNORE_CASE), tool.argument(_CASE)
        if insensitive is None and sensitive is None:
            return None
        arguments[insensitive or str(sensitive)] = insensitive is not None
    if include is not None:
        key = tool.argument([item for item in _INCLUDE if tool.arguments.get(item) != query])
        if key is None:
            return None
        arguments[key] = include
    return _call(tool, arguments, f"searches {where[:200]} with the search tool")


# --- the same shell, only reading -------------------------------------------------------------------------------------

_ACTIONS_WITH_VALUE = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def _read_only_form(fact: ShellFact, command: ShellCommand) -> str | None:
    """The command without the words that write, when that is all that keeps it from being proven to only read."""
    argv = command["argv"]
    if not argv or command["assignments"] or any(char in word for word in argv for char in "$`"):
        return None
    words = _without_actions(argv) if command["name"] == "find" else argv
    if command["name"] == "sort":
        words = _without_output(argv)
    if not words or (words == argv and not any(row["writes"] for row in command["redirects"])):
        return None
    if any(row["operator"].endswith(("<", "<<", "<<<")) for row in command["redirects"]):
        return None
    # A glob lost its quotes' absence in argv: quoting it again would ask for a file of that very name.
    if command["name"] != "find" and any(_GLOB.search(word) for word in words):
        return None
    form = shlex.join(words)
    proven = shell_fact(form, argument=fact["argument"])
    return form if proven["read_only"] and not proven["sensitive_read"] else None


def _without_actions(argv: list[str]) -> list[str]:
    words: list[str] = []
    index = 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if word == "-delete":
            continue
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            while index < len(argv) and argv[index] not in (";", "+"):
                index += 1
            index += 1
        elif word in _ACTIONS_WITH_VALUE:
            index += _ACTIONS_WITH_VALUE[word]
        else:
            words.append(word)
    return words


def _without_output(argv: list[str]) -> list[str]:
    words: list[str] = []
    index = 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if word in ("-o", "--output"):
            index += 1
        elif not word.startswith(("-o", "--output=")):
            words.append(word)
    return words


def _shell_tool(fact: ShellFact, tools: list[_Tool], *, weaker: bool) -> tuple[str, str] | None:
    """The shell tool for the form: the one that was asked, or, for a command that reads, one that can only read."""
    asked = _plain(fact["argument"].rsplit("/", 1)[-1])
    for wanted in (asked, *_COMMAND):
        for tool in tools:
            if tool.kind != ToolKind.SHELL_COMMAND or not wanted or wanted not in tool.arguments:
                continue
            if weaker and (tool.access - {str(AccessKind.FILE_READ)} or not tool.access):
                continue
            return tool.name, tool.arguments[wanted]
    return None
