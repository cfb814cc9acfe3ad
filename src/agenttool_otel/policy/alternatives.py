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
        self.access = {"unknown"}
        access = described.get("access_kinds") or ()
        if isinstance(access, (Sequence, set, frozenset)):
            self.access = set(map(str, access))
        self.arguments: dict[str, str] = {}
        names = described.get("argument_names") or ()
        if not isinstance(names, str):
            for argument in map(str, names):
                self.arguments[_plain(argument)] = argument
        # "mcp__files__readFile" -> read, file
        short = re.split(r"__|[./:]", name)[-1]
        self.words = [word.lower() for word in _WORD.findall(short)]

    def argument(self, *roles: str, besides: str | None = None) -> str | None:
        """The tool's name for an argument: the most usual one that it has."""
        for role in roles:
            for name in _table()["arguments"][role]:
                found = self.arguments.get(name)
                if found is not None and found != besides:
                    return found
        return None

    @property
    def reads_only(self) -> bool:
        if self.access & _UNSAFE_ACCESS or "unknown" in self.access:
            return False
        if AccessKind.FILE_READ in self.access:
            return True
        return not self.access and self.kind in _READING_KINDS

    def does(self, job: str) -> int | None:
        """How well the name fits a job (smaller is better), or None."""
        if not self.reads_only or self.kind in (ToolKind.SHELL_COMMAND, ToolKind.CODE_EXECUTION):
            return None
        words = set(self.words)
        if words & set(_table()["other_jobs"]):
            return None
        if job == "grep" and {"search", "files"} <= words:
            return None  # search_files finds files by name
        for rank, wanted in enumerate(_table()["tools"][job]):
            if words.issuperset(wanted):
                return rank * 10 + len(self.words)
        return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def shell_alternatives(
    fact: ShellFact, *, available: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Names governed calls that do what a shell command does, with less power. Pure, never
    raises.

    Args:
        fact: what the command does.
        available: by name, each tool's ``kind``, ``access_kinds`` and ``argument_names``.
    """
    try:
        tools = [_Tool(name, described) for name, described in available.items()]
        return _alternatives(fact, tools)
    except Exception:
        # a suggestion is a courtesy; a malformed fact or tool description just has none
        return []


def _alternatives(fact: ShellFact, tools: list[_Tool]) -> list[dict[str, Any]]:
    if fact["sensitive_read"] or len(fact["commands"]) != 1:
        return []
    command = fact["commands"][0]
    found: list[dict[str, Any]] = []
    form: str | None
    if fact["read_only"] and fact["parsed"]:
        form = shlex.join(command["argv"])
        if not command["redirects"]:
            found = _dedicated(command["name"], command["argv"][1:], tools)
    else:
        form = _read_only_form(fact, command)
    shell = _shell_tool(fact, tools, weaker=fact["read_only"])
    if form and shell is not None:
        name, argument = shell
        reason = "this form of the command only reads"
        if fact["read_only"]:
            reason = "this shell only reads"
        found.append({"tool": name, "arguments": {argument: form}, "reason": reason})
    return found


def _dedicated(name: str, words: list[str], tools: list[_Tool]) -> list[dict[str, Any]]:
    """The calls of the tool that does the command's very job."""
    if name not in _JOBS:
        return []
    if name == "wc" and words[:1] not in (["-l"], ["--lines"]):
        return []
    job, answer = _JOBS[name]
    ranked: list[tuple[int, str, _Tool]] = []
    for tool in tools:
        rank = tool.does(job)
        if rank is not None:
            ranked.append((rank, tool.name, tool))
    if not ranked:
        return []
    read = _options(name, words)
    if read is None:
        return []
    options, operands = read
    _, _, best = min(ranked)
    return answer(name, options, operands, best)


def _options(name: str, words: list[str]) -> tuple[_Options, list[str]] | None:
    """Read a command's words: options with their values, and operands; ``None`` at an option that
    asks for more.
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
    count = max(0, last - first + 1)
    if start and end:
        return {start: first, end: last}, wanted
    if limit and first == 1:
        return {limit: count}, wanted
    if limit and start:
        if first > 1:
            return {start: first, limit: count}, wanted
        return {limit: count}, wanted
    if end and first == 1:
        return {end: last}, wanted
    return {}, f"the text ({wanted} asked)"


def _list(_name: str, options: _Options, operands: list[str], tool: _Tool) -> list[dict[str, Any]]:
    if len(operands) > 1:
        return []
    recursive = any("R" in option or option == "--recursive" for option, _ in options)
    directory = operands[0] if operands else "."
    pattern = "**/*" if recursive else "*"
    if _GLOB.search(directory):
        # "ls src/*.py" lists *.py of src, "ls */*.py" the whole pattern below "."
        whole = directory
        directory, _, pattern = whole.rpartition("/")
        if _GLOB.search(directory):
            directory = "."
            pattern = whole
        directory = directory or "."
    return _glob_call(tool, directory, pattern, None, recursive=recursive)


def _find(_name: str, options: _Options, starts: list[str], tool: _Tool) -> list[dict[str, Any]]:
    wanted = dict(options)
    kind = wanted.get("-type")
    name = wanted.get("-name")
    is_repeated = len(wanted) < len(options)
    if is_repeated or len(starts) > 1:
        return []
    if kind not in (None, "f", "d"):
        return []
    if not starts and not kind and not name:
        return []
    recursive = "-maxdepth" not in wanted
    if wanted.get("-maxdepth", "1") != "1":
        return []
    pattern = name or "*"
    if recursive:
        pattern = f"**/{pattern}"
    word = None if kind is None else {"f": "file", "d": "directory"}[kind]
    directory = starts[0] if starts else "."
    return _glob_call(tool, directory, pattern, word, recursive=recursive)


def _glob_call(
    tool: _Tool, directory: str, pattern: str, kind: str | None, *, recursive: bool
) -> list[dict[str, Any]]:
    if directory.startswith("~"):
        return []
    of_directory = tool.argument("directory")
    of_pattern = tool.argument("pattern")
    if of_pattern is None or of_pattern == of_directory:
        if kind is not None or pattern not in ("*", "**/*"):
            return []
        arguments = _listing(tool, directory, recursive=recursive)
    elif of_directory is not None:
        arguments = {of_directory: directory, of_pattern: pattern}
    elif directory in (".", "./"):
        arguments = {of_pattern: pattern}
    else:
        arguments = {of_pattern: f"{directory.rstrip('/')}/{pattern}"}
    if arguments is None:
        return []
    if kind is not None:
        name = tool.argument("kind")
        if name is None:
            return []
        arguments[name] = kind
    reason = f"lists {pattern[:100]} below {directory[:200]} with the file tool"
    return [_call(tool, arguments, reason)]


def _listing(tool: _Tool, directory: str, *, recursive: bool) -> dict[str, Any] | None:
    """Return the arguments of a tool that lists a directory; ``None`` where it can't."""
    name = tool.argument("directory")
    if name is None:
        return None
    if not recursive:
        return {name: directory}
    flag = tool.argument("recursive")
    if flag is None:
        return None
    return {name: directory, flag: True}


def _grep(_name: str, options: _Options, operands: list[str], tool: _Tool) -> list[dict[str, Any]]:
    query = tool.argument("query")
    if query is None or len(operands) not in (1, 2):
        return []
    place = operands[1] if len(operands) == 2 else "."
    if not _are_plain_files([place]):
        return []
    arguments: dict[str, Any] = {query: operands[0]}
    directory = tool.argument("directory", "path")
    if directory is not None and directory != query:
        arguments[directory] = place
    elif place not in (".", "./"):
        return []
    if any(_ignores_case(option) for option, _ in options):
        case = _without_case(tool)
        if case is None:
            return []
        arguments.update(case)
    included = [value for option, value in options if option.startswith(_INCLUDES)]
    if included:
        key = tool.argument("include", besides=query)
        if key is None:
            return []
        arguments[key] = included[-1]
    return [_call(tool, arguments, f"searches {place[:200]} with the search tool")]


def _without_case(tool: _Tool) -> dict[str, bool] | None:
    """Return the argument that lets a search ignore case; ``None`` where the tool has none."""
    insensitive = tool.argument("ignore_case")
    if insensitive is not None:
        return {insensitive: True}
    sensitive = tool.argument("case")
    if sensitive is not None:
        return {sensitive: False}
    return None


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
    if not argv or command["assignments"] or _is_expanded(argv):
        return None
    redirects = command["redirects"]
    if any(redirect["operator"].endswith("<") for redirect in redirects):
        return None  # it is fed by a file or a here document
    words = _without_writing(command["name"], argv)
    if not words:
        return None
    writes = any(redirect["writes"] for redirect in redirects)
    if words == argv and not writes:
        return None
    # A glob lost its quotes' absence in argv: quoting it again would ask for a file of that very
    # name.
    if command["name"] != "find" and any(_GLOB.search(word) for word in words):
        return None
    form = shlex.join(words)
    proven = shell_fact(form, argument=fact["argument"])
    if not proven["read_only"] or proven["sensitive_read"]:
        return None
    return form


def _is_expanded(argv: list[str]) -> bool:
    return any("$" in word or "`" in word for word in argv)


def _without_writing(name: str, argv: list[str]) -> list[str]:
    """The words of a command without those that make it write, each with what belongs to it."""
    taking = _table()["writing_words"].get(name)
    if taking is None:
        return argv
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if name == "find" and word in effects().lists["find_actions"]:
            _skip_action(rest)
        elif word in taking:
            for _ in range(taking[word]):
                next(rest, None)
        elif name != "sort" or not word.startswith(("-o", "--output=")):
            words.append(word)
    return words


def _skip_action(rest: Iterator[str]) -> None:
    # find . -exec rm {} + -print: on behind the "+"
    for word in rest:
        if word in (";", "+"):
            return


def _shell_tool(fact: ShellFact, tools: list[_Tool], *, weaker: bool) -> tuple[str, str] | None:
    """The shell tool for the form: the one that was asked, or, for a command that reads, one that
    can only read.
    """
    asked = _plain(fact["argument"].rsplit("/", 1)[-1])
    for wanted in (asked, *_table()["arguments"]["command"]):
        if not wanted:
            continue
        for tool in tools:
            if tool.kind != ToolKind.SHELL_COMMAND or wanted not in tool.arguments:
                continue
            if weaker and tool.access != {str(AccessKind.FILE_READ)}:
                continue
            return tool.name, tool.arguments[wanted]
    return None
