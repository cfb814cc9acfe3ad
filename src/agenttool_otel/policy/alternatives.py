"""Safer calls in place of a shell command (openboa, "permissions_check": read-first alternatives).

A command that only reads a file, a range of it, a listing, a find or a grep is answered with the
governed tool that does just that; a command that writes only by one of its words is answered with
the form that reads. A suggestion is never a permission: the suggested call is decided like any
other. Read-only forms are proven before they are offered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

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
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        value: str | None = ""
        if not re.fullmatch(flags, word):
            value = _value_of(word, values, rest)
        if value is None:
            return None
        options.append((word, value))
    return options, operands


def _value_of(word: str, values: str, rest: Iterator[str]) -> str | None:
    """Return the value of an option: ``5`` of ``-n5`` and of ``-n 5``; ``None`` where the option is
    none of those that take one.
    """
    match = re.fullmatch(values, word)
    if match is None:
        return None
    attached = match[1] if match.re.groups else None
    return next(rest, None) if attached is None else attached


def _call(tool: _Tool, arguments: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"tool": tool.name, "arguments": arguments, "reason": reason}


class _Lines(NamedTuple):
    """Which lines of a file a command shows; all of them where nothing is set."""

    first: int | None = None  # the first line
    last: int | None = None  # the last line
    tail: int | None = None  # so many lines from the end


def _read(name: str, options: _Options, files: list[str], tool: _Tool) -> list[dict[str, Any]]:
    if name == "sed":  # sed -n 5,10p FILE
        if not files or not options:
            return []
        lines = _sed_lines(files[0])
        files = files[1:]
    else:
        lines = _head_or_tail_lines(name, options)
    if lines is None or not _are_plain_files(files):
        return []
    span, text = _span(tool, lines)
    several = tool.argument("paths")
    single = tool.argument("path")
    if several is not None and (len(files) > 1 or single is None):
        return [_call(tool, {several: files, **span}, f"reads {text} with the file tool")]
    if single is None:
        return []
    calls: list[dict[str, Any]] = []
    for item in files:
        reason = f"reads {text} of {item[:200]} with the file tool"
        calls.append(_call(tool, {single: item, **span}, reason))
    return calls


def _sed_lines(script: str) -> _Lines | None:
    bounds = _RANGE.match(script)
    if bounds is None:
        return None
    first, last = bounds.groups()
    return _Lines(first=int(first), last=int(last or first))


def _head_or_tail_lines(name: str, options: _Options) -> _Lines | None:
    """Return the lines that head or tail shows; all for a command that has no such option."""
    lines = _Lines()
    if name not in ("head", "tail"):
        return lines
    for _, number in options or [("-n", "10")]:
        if not _COUNT.match(number):
            return None
        if name == "head":
            lines = lines._replace(first=1, last=int(number))
        elif number.startswith("+"):  # tail -n +5: from the fifth line on
            lines = lines._replace(first=max(1, int(number)))
        else:
            lines = lines._replace(tail=int(number))
    return lines


def _are_plain_files(files: list[str]) -> bool:
    """Return whether there are a few names, none of which a shell would expand or read as an
    option.
    """
    if not files or len(files) > _MAX_FILES:
        return False
    return not any(_GLOB.search(item) or item[0] in "~-" for item in files if item)


def _span(tool: _Tool, lines: _Lines) -> tuple[dict[str, Any], str]:
    """Return the arguments that choose lines, as far as the tool has such, and the lines in words."""
    first, last, tail = lines
    if tail is not None:
        name = tool.argument("tail")
        if name is None:
            return {}, f"the text (last {tail} lines asked)"
        return {name: tail}, f"the last {tail} lines"
    if first is None:
        return {}, "the text"
    start = tool.argument("start")
    if last is None:
        span = {start: first} if start else {}
        return span, f"lines {first} and following"
    return _range_span(tool, first, last)


def _range_span(tool: _Tool, first: int, last: int) -> tuple[dict[str, Any], str]:
    start = tool.argument("start")
    end = tool.argument("end")
    limit = tool.argument("limit")
    wanted = f"lines {first} to {last}"
    if start and end:
        return {start: first, end: last}, wanted
    if limit and (start or first == 1):
        count = max(0, last - first + 1)
        if start and first > 1:
            return {start: first, limit: count}, wanted
        return {limit: count}, wanted
    if end and first == 1:
        return {end: last}, wanted
    return {}, f"the text ({wanted} asked)"


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
    if where.startswith("~"):
        return []
    directory = tool.argument("directory")
    matches = tool.argument("pattern")
    if matches is None or matches == directory:
        if kind is not None or pattern not in ("*", "**/*"):
            return []
        arguments = _listing(tool, where, recursive=recursive)
    elif directory is None:
        prefix = "" if where in (".", "./") else where.rstrip("/") + "/"
        arguments = {matches: prefix + pattern}
    else:
        arguments = {directory: where, matches: pattern}
    if arguments is None:
        return []
    if kind is not None:
        name = tool.argument("kind")
        if name is None:
            return []
        arguments[name] = kind
    return [_call(tool, arguments, f"lists {pattern[:100]} below {where[:200]} with the file tool")]


def _listing(tool: _Tool, where: str, *, recursive: bool) -> dict[str, Any] | None:
    """Return the arguments of a tool that lists a directory; ``None`` where it can't."""
    directory = tool.argument("directory")
    if directory is None:
        return None
    if not recursive:
        return {directory: where}
    flag = tool.argument("recursive")
    if flag is None:
        return None
    return {directory: where, flag: True}


def _grep(_name: str, options: _Options, operands: list[str], tool: _Tool) -> list[dict[str, Any]]:
    query = tool.argument("query")
    if query is None or len(operands) not in (1, 2):
        return []
    where = operands[1] if len(operands) == 2 else "."
    if not _are_plain_files([where]):
        return []
    arguments: dict[str, Any] = {query: operands[0]}
    directory = tool.argument("directory", "path")
    if directory is not None and directory != query:
        arguments[directory] = where
    elif where not in (".", "./"):
        return []
    if any(_ignores_case(option) for option, _ in options):
        insensitive = tool.argument("ignore_case")
        sensitive = tool.argument("case")
        if insensitive is not None:
            arguments[insensitive] = True
        elif sensitive is not None:
            arguments[sensitive] = False
        else:
            return []
    included = [value for option, value in options if option.startswith(_INCLUDES)]
    if included:
        key = tool.argument("include", besides=query)
        if key is None:
            return []
        arguments[key] = included[-1]
    return [_call(tool, arguments, f"searches {where[:200]} with the search tool")]


_INCLUDES = ("--include=", "-g", "--glob")


def _ignores_case(option: str) -> bool:
    """Return whether an option is ``--ignore-case`` or has an ``i`` among its letters: ``-rin``."""
    if option == "--ignore-case":
        return True
    return option[1] != "-" and "i" in option


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
