"""One shell command argument, as a fact."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Sequence
from functools import cache

from agenttool_otel.readers.shell.actions import describe
from agenttool_otel.readers.shell.classify import classify
from agenttool_otel.readers.shell.compounds import Simple
from agenttool_otel.readers.shell.devices import MAX_DIRECTORIES, START, entered
from agenttool_otel.readers.shell.directories import Directories, Where, start_of
from agenttool_otel.readers.shell.downloads import fetches, runs_download
from agenttool_otel.readers.shell.effects import (
    Touch,
    Verdict,
    base_name,
    effects_of,
    is_harmless_variable,
    redirect_writes,
    script_of,
)
from agenttool_otel.readers.shell.git import (
    compares_files,
    is_top,
    names_of_repository,
    unsafe_repository,
)
from agenttool_otel.readers.shell.grammar import Found, disagreement, survey
from agenttool_otel.readers.shell.guard import MAX_LENGTH, read
from agenttool_otel.readers.shell.places import Places
from agenttool_otel.readers.shell.secrets import names_secret, surface_words
from agenttool_otel.readers.shell.spellings import plain_words, runs_one_script, spellings
from agenttool_otel.readers.shell.tables import HASH, NUMBER, TEXT
from agenttool_otel.readers.shell.words import Unproven, Word
from agenttool_otel.readers.types import ShellCommand, ShellFact, Surroundings, unestablished

_MAX_NESTED = 4
_MAX_ARGV = 256
_MAX_SCRIPTS = 8
# Names where a command may stand, for text that no parser reads: only ever used to warn.
_NAMES = re.compile(
    r"(?:^|[\n;&|({`]|\b(?:do|then|else|sudo|xargs)\b)\s{0,20}([A-Za-z0-9_./+-]{1,80})"
)
_WORDS = re.compile(r"[^\s'\"`;|&<>(){}$=]{2,200}")
_SCANNED_CHARS = 65536
_GIT = frozenset(("git", "git.exe", "gitk", "tig", "lazygit"))
_MOVING = frozenset(
    (
        "-execdir",
        "-okdir",
        "-C",
        "-D",
        "--chdir",
        "--directory",
        "--cwd",
        "--working-dir",
        "--workdir",
    )
)
_WINDOWS = re.compile(
    r"(?i)\$env:|%(?!C[a-z]{3,5}%)[A-Za-z_]{3,40}%|(?:^|[\s\"'=])[A-Za-z]:\\|\\\\[A-Za-z0-9_.-]+\\|\|\s*%\s*\{"
)
# quoted: it may fail
_TO_TOP = re.compile(r'\A[ \t\n]*cd "\$\(git rev-parse --show-toplevel\)"(?=[ \t]*(?:&&|[;\n]))')
_KNOWN_LATER = re.compile(f"[{TEXT}{NUMBER}{HASH}]")
_VARIABLE = re.compile(r"\$(?:\{(PWD|HOME)\}|(PWD|HOME)(?![A-Za-z0-9_]))")


def shell_fact(
    command: object,
    argument: str = "",
    surroundings: Surroundings | None = None,
    *,
    inferred: bool = False,
) -> ShellFact:
    """Return what a shell command means; never raises, and takes bounded time on any value.

    Args:
        command: a line of a POSIX shell, or the words of one command.
        argument: the JSON pointer of the command, which the fact repeats.
        surroundings: the directory that it starts in, the roots, home and what is protected; the
            process's own directory and home where they are not given.
        inferred: whether nobody stated that this text is a command; the fact repeats it.

    Returns:
        What is uncertain is dangerous: a line that every shell does not read alike has ``parsed``
        false and ``unparsed`` with the construct, and ``read_only`` and ``complete`` are true only
        where that is proven. Values that are no text have ``unparsed`` "not_text".
    """
    try:
        argv = [command] if isinstance(command, str) else command
        if (
            not isinstance(argv, Sequence)
            or len(argv) > _MAX_ARGV
            or not all(isinstance(word, str) for word in argv)
        ):
            return _unreadable("", argument, inferred, "not_text")
        text = command if isinstance(command, str) else shlex.join(argv)
        reading = _Reading(argument, inferred, surroundings or Surroundings())
        start = start_of(reading.env)
        if _TO_TOP.match(text) and reading.env.touch_file_system and is_top(start):
            text = _TO_TOP.sub("cd .", text)
        fact = reading.fact(text, 0, START, start)
        if reading.unspelled and fact["parsed"]:
            fact["parsed"], fact["unparsed"] = False, "too_many_readings"
            fact["read_only"], fact["writes"] = False, True
        return fact
    except Exception:  # a parser's bug must read as "not proven", never as an error in a tool call
        return _unreadable("", argument, inferred, "internal")


class _Reading:
    """The reading of one argument, with the scripts that it runs."""

    def __init__(self, argument: str, inferred: bool, env: Surroundings) -> None:
        self.env = env
        self._argument = argument
        self._inferred = inferred
        self._places = Places(argument, env)
        self._unsafe_repository = cache(unsafe_repository)
        self.unspelled = False  # a command's words can be read in too many ways

    def fact(self, text: str, depth: int, directories: tuple[str, ...], where: Where) -> ShellFact:
        """Reads a line, or a script within one."""
        try:
            commands = read(text)
        except Unproven as unproven:
            return self._unproven(text, unproven.construct, depth, where)
        if set("%$\\") & set(text) and _WINDOWS.search(_without_bodies(text, commands)):
            return self._unproven(text, "windows", depth, where)
        if difference := disagreement(text, commands):
            return self._unproven(text, difference, depth, where)
        fact: ShellFact = unestablished("shell", self._argument, inferred=self._inferred)
        fact["parsed"] = fact["complete"] = True
        fact["runs_download"] = fetches(text) and runs_download(survey(text, MAX_LENGTH))
        proven, foreign = True, False
        shell = Directories(where, self.env)
        named = any(HASH in word.text for command in commands for word in command.words)
        for command in commands:
            here = shell.enter(command)
            verdict = classify(command, directories)
            if (
                verdict.read_only
                and verdict.repository
                and (reason := self._unsafe_repository(here, named))
            ):
                verdict.read_only, verdict.category, verdict.reason = (
                    False,
                    "vcs_local",
                    f"git in a {reason}",
                )
            if (
                verdict.repository
                and "diff" in (w.text for w in command.words)
                and compares_files(here, command.words)
            ):
                verdict.read_only, verdict.complete, verdict.reason = (
                    False,
                    False,
                    "git diff of two files",
                )
            row = self._row(command, verdict, here)
            _merge(fact, verdict)
            foreign = foreign or verdict.foreign
            fact["commands"].append(row)
            if verdict.script is not None:
                self._merge_script(fact, row, verdict, depth, here)
            shell.changed(command)
            fact["complete"] = fact["complete"] and row["complete"]
            proven = proven and row["read_only"]
            if verdict.read_only and command.words and command.words[0].text in ("cd", "pushd"):
                target = next((w.text for w in command.words[1:] if not w.text.startswith("-")), "")
                directories = entered(directories, target)
                if len(directories) > MAX_DIRECTORIES:
                    return self._unproven(text, "too_many_directories", depth, where)
        if commands[0].construct and not (proven and fact["complete"]):
            return self._unproven(text, commands[0].construct, depth, where)
        if foreign:
            fact["parsed"], fact["unparsed"], proven = False, "windows", False
            for row in fact["commands"]:
                row["read_only"] = False
        fact["read_only"] = proven
        fact["writes"] = not proven
        fact["sensitive_read"] = fact["sensitive_read"] or self._places.secret
        return fact

    def _row(self, command: Simple, verdict: Verdict, here: Where) -> ShellCommand:
        words: list[Word] = command.words
        redirects = [
            (r.fd + r.operator, r.target.text, redirect_writes(r.operator, r.target.text))
            for r in command.redirects
        ]
        places, complete = self._places.of(verdict.touches, here)
        if verdict.exposed and not (complete and verdict.complete):
            verdict.read_only, verdict.reason = False, "names of files that may be options"
        argv = [_KNOWN_LATER.sub("{}", word.text) for word in words]
        readings = spellings(argv)
        self.unspelled = self.unspelled or readings is None
        plain = (
            plain_words(argv, command.values)
            if len(command.values) == len(command.assignments)
            else []
        )
        literal = not any(word.glob or word.unknown or word.substitution for word in words)
        carries = literal and verdict.script is not None and runs_one_script(plain)
        unreviewed = [] if verdict.read_only or carries else verdict.unreviewed
        return {
            "name": base_name(words[0].text) if words else "",
            "argv": argv,
            "spellings": [argv] if readings is None else readings,
            "plain": plain,
            "repository": self._doubt(readings or [argv], plain, verdict, here),
            "carries": carries,
            "assignments": list(command.assignments),
            "redirects": [{"operator": o, "target": t, "writes": w} for o, t, w in redirects],
            "category": verdict.category,
            "directory": here.paths[0] if here.known and len(here.paths) == 1 else None,
            "places": places,
            "complete": complete and verdict.complete,
            "unreviewed": [_KNOWN_LATER.sub("{}", word) for word in unreviewed],
            "read_only": verdict.read_only,
            "reason": verdict.reason,
        }

    def _doubt(
        self, readings: list[list[str]], plain: list[str], verdict: Verdict, here: Where
    ) -> str | None:
        """Say why the repository in which a command runs git, by any reading of it, is none to run
        git in.
        """
        in_git = [
            reading for reading in readings if reading and posixpath.basename(reading[0]) in _GIT
        ]
        if not in_git or verdict.script is not None:
            return None  # the commands of a script have facts of their own
        direct = posixpath.basename(readings[0][0]) == "git"
        if not (direct or verdict.read_only or plain[:1] == ["git"]):
            return "repository that is not known"  # what runs git may go elsewhere before
        for reading in in_git:
            named = names_of_repository(reading)
            if named[1:] or (named and (not direct or named != ["-C"] or reading[1] != "-C")):
                return "repository that is not known"
        category = "" if verdict.read_only else verdict.category
        return self._unsafe_repository(here, False, category) or None

    def _merge_script(
        self, fact: ShellFact, row: ShellCommand | None, verdict: Verdict, depth: int, where: Where
    ) -> None:
        """Reads a nested script into the same fact."""
        if depth >= _MAX_NESTED or verdict.script is None:
            fact["executes"] = fact["network"] = True
            fact["complete"] = False
            # nobody has seen the commands in it, which a list may deny
            fact["parsed"], fact["unparsed"] = False, fact["unparsed"] or "nested_too_deep"
            if row is not None:
                row["read_only"] = False
            return
        if row is not None and _MOVING.intersection(word.partition("=")[0] for word in row["argv"]):
            where = where._replace(known=False)  # the script runs elsewhere: find -execdir, env -C
        nested = self.fact(verdict.script, depth + 1, verdict.directories, where)
        fact["commands"].extend(nested["commands"])
        for member in ("sensitive_read", "network", "executes", "destructive", "runs_download"):
            fact[member] = fact[member] or nested[member]
        fact["complete"] = fact["complete"] and nested["complete"]
        if not nested["parsed"]:
            fact["parsed"], fact["unparsed"] = False, nested["unparsed"]
        if row is None:
            return
        row["complete"] = row["complete"] and nested["complete"]
        if verdict.read_only and not nested["read_only"]:
            row["read_only"], row["category"] = False, "runner"
            row["reason"] = "runs a script that is not proven to only read"
            effects_of(row["argv"], verdict)
            _merge(fact, verdict)

    def _unproven(self, text: str, construct: str, depth: int, where: Where) -> ShellFact:
        """The facts of a line that could not be read as a whole: what a tolerant reading finds,
        never less.
        """
        fact = _unreadable(text, self._argument, self._inferred, construct)
        if construct in ("empty", "too_long"):
            return fact
        found = survey(text)
        fact["runs_download"] = runs_download(found)
        shell = Directories(where, self.env)
        scripts: list[Verdict] = []
        for item in found:
            command = self._simple(item, where)
            here = shell.enter(command)
            verdict = self._seen(item, command, construct)
            shell.changed(command)
            if verdict.script is not None:
                scripts.append(verdict)
            _merge(fact, verdict)
            if item.words or item.assignments or item.redirects:
                row = self._row(command, verdict, here)
                row["name"] = item.words[0] if item.words else ""
                row["complete"] = False
                fact["commands"].append(row)
        for verdict in scripts[:_MAX_SCRIPTS]:
            if depth < _MAX_NESTED and verdict.script != text:
                self._merge_script(fact, None, verdict, depth, where)
        fact["parsed"], fact["unparsed"], fact["complete"] = False, construct, False
        return fact

    def _simple(self, item: Found, where: Where) -> Simple:
        """A command of a tolerant reading, with the directories put in for their variables."""
        home = self.env.home if self.env.home is not None else os.path.expanduser("~")
        known = {"PWD": where.paths[0] if where.paths else "$PWD", "HOME": home}

        def word(raw: str, literal: bool) -> Word:
            text = (
                raw
                if literal
                else _VARIABLE.sub(lambda match: known[match[1] or match[2]], raw.replace('"', ""))
            )
            return Word(text, 0, 0, quoted=not literal, glob=any(char in text for char in "*?["))

        words = [word(raw, literal) for raw, literal in zip(item.words, item.literal, strict=True)]
        return Simple(words=words, assignments=item.assignments, joint=";")

    def _seen(self, item: Found, command: Simple, construct: str) -> Verdict:
        verdict = Verdict(reason=f"the line holds {construct}")
        effects_of(item.words, verdict)
        if command.words:
            describe(command.words, command.assignments, verdict)
        for operator, target in item.redirects:
            if redirect_writes(operator, target):
                verdict.destructive = verdict.destructive or operator in (">", ">|", "&>")
                verdict.touches.append(
                    Touch(target, "append" if operator in (">>", "&>>") else "overwrite")
                )
            verdict.network = verdict.network or target.startswith(("/dev/tcp/", "/dev/udp/"))
        # A word that still holds something to expand names no place that is known.
        verdict.touches = [touch for touch in verdict.touches if not set("$`") & set(touch.word)]
        verdict.executes = verdict.executes or not all(map(is_harmless_variable, item.assignments))
        verdict.script = script_of(item.words)
        return verdict


def _without_bodies(text: str, commands: Sequence[Simple]) -> str:
    """The text of a line's commands, without the quoted heredocs that they get: those are data."""
    parts: list[str] = []
    for command in commands:
        spans = [(w.start, w.end) for w in (*command.words, *(r.target for r in command.redirects))]
        start, end = min(spans, default=(0, 0))[0], max((end for _, end in spans), default=0)
        parts += [command.joint, text[start:end]]
    return " ".join(parts)


def _unreadable(text: str, argument: str, inferred: bool, construct: str) -> ShellFact:
    """The facts of text that is not read: everything may be, and names that look dangerous are
    reported.
    """
    fact: ShellFact = unestablished("shell", argument, inferred=inferred, unparsed=construct)
    fact["writes"] = fact["executes"] = fact["network"] = True
    head = text[:_SCANNED_CHARS]
    for match in _NAMES.finditer(head):
        verdict = Verdict()
        effects_of([match[1]], verdict)
        fact["destructive"] = fact["destructive"] or verdict.destructive
    words = dict.fromkeys([*_WORDS.findall(head[:MAX_LENGTH]), *surface_words(head[:MAX_LENGTH])])
    fact["sensitive_read"] = any(names_secret(word) for word in words)
    return fact


def _merge(fact: ShellFact, verdict: Verdict) -> None:
    fact["sensitive_read"] = fact["sensitive_read"] or verdict.sensitive
    fact["network"] = fact["network"] or verdict.network
    fact["executes"] = fact["executes"] or verdict.executes
    fact["destructive"] = fact["destructive"] or verdict.destructive
