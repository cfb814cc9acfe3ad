"""What a shell command means: facts that never guess (design section 5).

``read_only`` is a proof. It needs four agreements: the lexical guard reads every character (``guard``), a real bash
grammar cuts the line into the same words (``grammar``), the tables know the command and each of its words
(``classify``, ``data/``), and small languages such as sed scripts are read too (``programs``). Anything else is not
proven, which is not the same as dangerous: the other facts tell what is known.

``network`` and ``executes`` are true unless known to be false. ``destructive`` and ``sensitive_read`` are true when
something was seen: on text that could not be read they are no promise, and ``parsed`` says so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from agenttool_otel.facts.shell.classify import base_name, classify
from agenttool_otel.facts.shell.effects import Verdict, effects_of, is_harmless_variable, redirect_writes, script_of
from agenttool_otel.facts.shell.grammar import disagreement, survey
from agenttool_otel.facts.shell.guard import MAX_LENGTH, Simple, Unproven, Word, read, read_uncommented
from agenttool_otel.facts.shell.places import MAX_DIRECTORIES, START, entered
from agenttool_otel.facts.shell.secrets import names_secret
from agenttool_otel.facts.shell.surface import surface_words
from agenttool_otel.facts.types import ShellCommand, ShellFact

__all__ = ["shell_fact"]

_MAX_NESTED = 4
_MAX_PATHS = 200
_MAX_ARGV = 256
# Names where a command may stand, for text that no parser reads: only ever used to warn.
_NAMES = re.compile(r"(?:^|[\n;&|({`]|\b(?:do|then|else|sudo|xargs)\b)\s{0,20}([A-Za-z0-9_./+-]{1,80})")
_WORDS = re.compile(r"[^\s'\"`;|&<>(){}$=]{2,200}")
_SCAN = 65536
_WINDOWS = re.compile(r"(?i)\$env:|%[A-Za-z_]{3,40}%|(?:^|[\s\"'=])[A-Za-z]:\\|\\\\[A-Za-z0-9_.-]+\\|\|\s*%\s*\{")


def shell_fact(command: object, *, argument: str, inferred: bool = False) -> ShellFact:
    """Says what a shell command means. Pure, never raises, bounded work on any input.

    Args:
        command: the command line, or a sequence of words (as ``subprocess`` takes it). Anything else is unparsed.
        argument: JSON pointer of the value within the input.
        inferred: the kind of the argument was guessed.

    Returns:
        The fact. ``read_only`` is true only when proven for bash, sh and zsh with the usual tools. Where it is false,
        ``commands`` lists what was found even when the line as a whole could not be read.
    """
    try:
        if isinstance(command, str):
            text = command
        elif isinstance(command, Sequence) and not isinstance(command, (bytes, bytearray, memoryview)):
            if len(command) > _MAX_ARGV or not all(isinstance(word, str) for word in command):
                return _unreadable("", argument, inferred, "not_text")
            if not command:
                return _unreadable("", argument, inferred, "empty")
            text = shlex.join(command)
        else:
            return _unreadable("", argument, inferred, "not_text")
        return _fact(text, argument, inferred, 0, START)
    except Exception:  # a parser's bug must read as "not proven", never as an error in a tool call
        return _unreadable("", argument, inferred, "internal")


def _fact(text: str, argument: str, inferred: bool, depth: int, directories: tuple[str, ...]) -> ShellFact:
    try:
        commands = read(text)
    except Unproven as unproven:
        return _unproven(text, argument, inferred, unproven.construct, depth)
    if _WINDOWS.search(text):
        return _unproven(text, argument, inferred, "windows", depth)
    difference = disagreement(text, commands)
    if difference:
        return _unproven(text, argument, inferred, difference, depth)
    fact = _empty(argument, inferred)
    fact["parsed"] = True
    proven = True
    foreign = False
    for command in commands:
        verdict = classify(command, directories)
        row = _row(command, verdict)
        _merge(fact, verdict)
        foreign = foreign or verdict.foreign
        nested_ok = True
        if verdict.script is not None:
            nested_ok = _merge_script(fact, verdict.script, depth, directories)
            row["read_only"] = row["read_only"] and nested_ok
            if verdict.read_only and not nested_ok:
                row["reason"] = "runs a script that is not proven to only read"
                effects_of(row["argv"], verdict)
                _merge(fact, verdict)
        fact["commands"].append(row)
        proven = proven and verdict.read_only and nested_ok
        if verdict.read_only and command.words and command.words[0].text == "cd":
            target = next((w.text for w in command.words[1:] if not w.text.startswith("-")), "")
            directories = entered(directories, target)
            if len(directories) > MAX_DIRECTORIES:
                return _unproven(text, argument, inferred, "too_many_directories", depth)
    if proven and not _comments_are_harmless(text, depth, directories):
        return _unproven(text, argument, inferred, "comment", depth)
    if foreign:
        fact["parsed"], fact["unparsed"], proven = False, "windows", False
        for row in fact["commands"]:
            row["read_only"] = False
    fact["read_only"] = proven
    fact["writes"] = not proven
    return fact


def _comments_are_harmless(text: str, depth: int, directories: tuple[str, ...]) -> bool:
    """Whether the line only reads where ``#`` begins no comment, as in an interactive zsh: ``ls # ; touch x``."""
    try:
        commands = read_uncommented(text)
    except Unproven:
        return False
    for command in commands:
        if command.words and command.words[0].text.startswith("#"):
            # No such program; but its redirections are made.
            if any(redirect_writes(redirect.operator, redirect.target.text) for redirect in command.redirects):
                return False
            continue
        verdict = classify(command, directories)
        if not verdict.read_only:
            return False
        if verdict.script is not None and not _fact(verdict.script, "", False, depth + 1, directories)["read_only"]:
            return False
    return True


def _merge_script(fact: ShellFact, script: str, depth: int, directories: tuple[str, ...] = START) -> bool:
    """Reads a nested script into the same fact; whether it is proven to only read."""
    if depth >= _MAX_NESTED:
        fact["executes"] = fact["network"] = True
        return False
    nested = _fact(script, "", False, depth + 1, directories)
    fact["commands"].extend(nested["commands"])
    fact["paths"] = list(dict.fromkeys([*fact["paths"], *nested["paths"]]))[:_MAX_PATHS]
    fact["sensitive_read"] = fact["sensitive_read"] or nested["sensitive_read"]
    fact["network"] = fact["network"] or nested["network"]
    fact["executes"] = fact["executes"] or nested["executes"]
    fact["destructive"] = fact["destructive"] or nested["destructive"]
    if not nested["parsed"]:
        fact["parsed"], fact["unparsed"] = False, nested["unparsed"]
    return nested["read_only"]


def _unproven(text: str, argument: str, inferred: bool, construct: str, depth: int) -> ShellFact:
    """The facts of a line that could not be read as a whole: what a tolerant reading finds, never less."""
    fact = _unreadable(text, argument, inferred, construct)
    if construct in ("empty", "too_long"):
        return fact
    found, _complete = survey(text)
    scripts: list[str] = []
    for item in found:
        verdict = Verdict(reason=f"the line holds {construct}")
        effects_of(item.words, verdict)
        for operator, target in item.redirects:
            verdict.destructive = verdict.destructive or (
                operator in (">", ">|", "&>") and redirect_writes(operator, target)
            )
            verdict.network = verdict.network or target.startswith(("/dev/tcp/", "/dev/udp/"))
            if redirect_writes(operator, target):
                verdict.paths.append(target)
        verdict.executes = verdict.executes or not all(map(is_harmless_variable, item.assignments))
        literal = [word for word, plain in zip(item.words, item.literal, strict=True) if plain]
        verdict.paths.extend(word for word in literal[1:] if word and not word.startswith("-"))
        script = script_of(item.words)
        if script is not None:
            scripts.append(script)
        _merge(fact, verdict)
        if item.words or item.assignments:
            fact["commands"].append(
                {
                    "name": item.words[0] if item.words else "",
                    "argv": item.words,
                    "assignments": item.assignments,
                    "redirects": [
                        {"operator": operator, "target": target, "writes": redirect_writes(operator, target)}
                        for operator, target in item.redirects
                    ],
                    "read_only": False,
                    "reason": verdict.reason,
                }
            )
    for script in scripts[:8]:
        if depth < _MAX_NESTED and script != text:
            _merge_script(fact, script, depth)
    fact["parsed"], fact["unparsed"] = False, construct
    return fact


def _unreadable(text: str, argument: str, inferred: bool, construct: str) -> ShellFact:
    """The facts of text that is not read: everything may be, and names that look dangerous are reported."""
    fact = _empty(argument, inferred)
    fact["unparsed"] = construct
    fact["writes"] = fact["executes"] = fact["network"] = True
    head = text[:_SCAN]
    for match in _NAMES.finditer(head):
        verdict = Verdict()
        effects_of([match[1]], verdict)
        fact["destructive"] = fact["destructive"] or verdict.destructive
    words = dict.fromkeys([*_WORDS.findall(head[:MAX_LENGTH]), *surface_words(head[:MAX_LENGTH])])
    fact["sensitive_read"] = any(names_secret(word) for word in words)
    return fact


def _empty(argument: str, inferred: bool) -> ShellFact:
    return {
        "argument": argument,
        "parsed": False,
        "unparsed": None,
        "read_only": False,
        "sensitive_read": False,
        "writes": True,
        "network": False,
        "executes": False,
        "destructive": False,
        "commands": [],
        "paths": [],
        "inferred": inferred,
    }


def _merge(fact: ShellFact, verdict: Verdict) -> None:
    fact["sensitive_read"] = fact["sensitive_read"] or verdict.sensitive
    fact["network"] = fact["network"] or verdict.network
    fact["executes"] = fact["executes"] or verdict.executes
    fact["destructive"] = fact["destructive"] or verdict.destructive
    if verdict.paths:
        fact["paths"] = list(dict.fromkeys([*fact["paths"], *verdict.paths]))[:_MAX_PATHS]


def _row(command: Simple, verdict: Verdict) -> ShellCommand:
    words: list[Word] = command.words
    return {
        "name": base_name(words[0].text) if words else "",
        "argv": [word.text for word in words],
        "assignments": list(command.assignments),
        "redirects": [
            {
                "operator": redirect.fd + redirect.operator,
                "target": redirect.target.text,
                "writes": redirect_writes(redirect.operator, redirect.target.text),
            }
            for redirect in command.redirects
        ],
        "read_only": verdict.read_only,
        "reason": verdict.reason,
    }
