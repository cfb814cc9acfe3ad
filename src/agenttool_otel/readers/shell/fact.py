"""One shell command argument, as a fact."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from functools import cache

from agenttool_otel.readers.shell.actions import describe
from agenttool_otel.readers.shell.classify import classify
from agenttool_otel.readers.shell.devices import MAX_DIRECTORIES, entered
from agenttool_otel.readers.shell.directories import (
    Directories,
    WorkingDirectory,
    home_of,
    start_of,
)
from agenttool_otel.readers.shell.downloads import fetches, runs_download
from agenttool_otel.readers.shell.effects import (
    add_effects,
    base_name,
    is_harmless_variable,
    script_of,
)
from agenttool_otel.readers.shell.git import (
    compares_files,
    names_of_repository,
    unsafe_repository,
)
from agenttool_otel.readers.shell.places import Places
from agenttool_otel.readers.shell.secrets import names_secret, surface_words
from agenttool_otel.readers.shell.spellings import plain_words, runs_one_script, spellings
from agenttool_otel.readers.shell.structure import read
from agenttool_otel.readers.shell.survey import Found, survey
from agenttool_otel.readers.shell.syntax import Assignment, Redirect, Simple, Unproven, Word
from agenttool_otel.readers.shell.tokens import MAX_LENGTH
from agenttool_otel.readers.shell.verdict import START, FileAccess, Verdict, Warnings
from agenttool_otel.readers.types import ShellCommand, ShellFact, Surroundings, unestablished

_MAX_NESTED = 4
_MAX_ARGV = 256
_MAX_SCRIPTS = 8
_SCANNED_CHARS = 65536

# Names where a command may stand, for text that no parser reads: only ever used to warn.
_BEFORE_NAME = r"(?:^|[\n;&|({`]|\b(?:do|then|else|sudo|xargs)\b)"
_NAMES = re.compile(rf"{_BEFORE_NAME}\s{{0,20}}([A-Za-z0-9_./+-]{{1,80}})")
_WORDS = re.compile(r"[^\s'\"`;|&<>(){}$=]{2,200}")
_GIT = frozenset(("git", "git.exe", "gitk", "tig", "lazygit"))
# options with which a script runs elsewhere: find -execdir, env -C
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
_POWERSHELL_VARIABLE = r"\$env:"
_CMD_VARIABLE = r"%(?!C[a-z]{3,5}%)[A-Za-z_]{3,40}%"  # but not git's %Cred%
_DRIVE = r"(?:^|[\s\"'=])[A-Za-z]:\\"
_UNC = r"\\\\[A-Za-z0-9_.-]+\\"
_FOR_EACH = r"\|\s*%\s*\{"
_WINDOWS = re.compile(
    "(?i)" + "|".join((_POWERSHELL_VARIABLE, _CMD_VARIABLE, _DRIVE, _UNC, _FOR_EACH))
)
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
        command: a line of a POSIX shell, or the words of one command as ``subprocess.run`` takes
          them.
        argument: the JSON pointer of the command, which the fact repeats.
        surroundings: the directory that it starts in, the roots, home, what is protected, and
          whether the file system may be looked at; the process's own directory and home where they
          are not given.
        inferred: whether no declaration names this text as a command; the fact repeats it.

    Returns:
        What is uncertain is dangerous: a line that holds more than literal commands, or that every
        shell does not read alike, has ``parsed`` false and ``unparsed`` with the construct, and
        ``read_only`` and ``complete`` are true only where that is proven. Values that are no text
        have ``unparsed`` "not_text".

    Example:
        >>> shell_fact("ls src | wc -l")["read_only"]
        True
        >>> shell_fact("for f in *; do rm $f; done")["unparsed"]
        'expansion'
    """
    try:
        text = _text_of(command)
        if text is None:
            return _unreadable("", argument, inferred, "not_text")
        reading = _Reading(argument, inferred, surroundings or Surroundings())
        fact = reading.fact(text, 0, START, start_of(reading.env))
        if reading.unspelled and fact["parsed"]:
            _mark_unparsed(fact, "too_many_readings")
        return fact
    except Exception:  # a parser's bug must read as "not proven", never as an error in a tool call
        return _unreadable("", argument, inferred, "internal")


def _text_of(command: object) -> str | None:
    """Return the command line; ``None``: it is no text and no sequence of words."""
    if isinstance(command, str):
        return command
    if not isinstance(command, Sequence) or len(command) > _MAX_ARGV:
        return None
    words = [word for word in command if isinstance(word, str)]
    return shlex.join(words) if len(words) == len(command) else None


def _mark_unparsed(fact: ShellFact, construct: str) -> None:
    fact["parsed"] = False
    fact["unparsed"] = construct
    fact["read_only"] = False
    fact["writes"] = True


class _Reading:
    """The reading of one argument, with the scripts that it runs."""

    def __init__(self, argument: str, inferred: bool, env: Surroundings) -> None:
        self.env = env
        self._argument = argument
        self._inferred = inferred
        self._places = Places(argument, env)
        self._unsafe_repository = cache(unsafe_repository)
        self.unspelled = False
        """A command's words can be read in too many ways."""

    def fact(
        self, text: str, depth: int, directories: tuple[str, ...], current: WorkingDirectory
    ) -> ShellFact:
        """Read a line, or a script within one.

        Args:
            text: the line.
            depth: how many scripts it stands in.
            directories: the directories that it may run in, by the text of the lines around it.
            current: the same, as absolute paths.
        """
        try:
            commands = read(text)
        except Unproven as unproven:
            return self._unproven(text, unproven.construct, depth, current)
        if set("%$\\") & set(text) and _WINDOWS.search(_without_bodies(text, commands)):
            return self._unproven(text, "windows", depth, current)
        line = _Line(self, text, depth, directories, current)
        for command in commands:
            line.add(command)
            if len(line.directories) > MAX_DIRECTORIES:
                return self._unproven(text, "too_many_directories", depth, current)
        return line.finish()

    def new_fact(self) -> ShellFact:
        """Return a fact that nothing was established for."""
        fact: ShellFact = unestablished("shell", self._argument, inferred=self._inferred)
        return fact

    @property
    def reads_secret(self) -> bool:
        """Whether a tree that is read holds a key or a credential."""
        return self._places.secret

    def judge(
        self,
        command: Simple,
        here: WorkingDirectory,
        directories: tuple[str, ...],
        pipeline: Sequence[tuple[Simple, Verdict]],
    ) -> Verdict:
        """Judge one command, also by the repository that it runs git in."""
        verdict = classify(command, directories, pipeline)
        if verdict.read_only and verdict.runs_git:
            reason = self._unsafe_repository(here)
            if reason:
                verdict.read_only = False
                verdict.category = "vcs_local"
                verdict.reason = f"git in a {reason}"
        if verdict.runs_git and "diff" in command.texts and compares_files(here, command.words):
            verdict.read_only = False
            verdict.complete = False
            verdict.reason = "git diff of two files"
        return verdict

    def row(self, command: Simple, verdict: Verdict, here: WorkingDirectory) -> ShellCommand:
        """Return the row of one command. What its places show may end its proof."""
        words, argv = command.words, command.texts
        places, complete = self._places.of(verdict.accesses, here)
        complete = complete and verdict.complete
        if verdict.names_may_be_options and not complete:
            verdict.read_only = False
            verdict.reason = "names of files that may be options"
        readings = spellings(argv)
        if readings is None:
            self.unspelled = True
            readings = [argv]
        plain = plain_words(argv, [assignment.text for assignment in command.assignments])
        literal = not any(word.glob for word in words)
        carries = literal and verdict.script is not None and runs_one_script(plain)
        reviewed = verdict.read_only or carries
        return {
            "name": base_name(argv[0]) if argv else "",
            "argv": argv,
            "spellings": readings,
            "plain": plain,
            "repository": self._unsafe_git(readings, plain, verdict, here),
            "carries": carries,
            "assignments": [assignment.name for assignment in command.assignments],
            "redirects": [
                {
                    "operator": redirect.fd + redirect.operator,
                    "target": redirect.target.text,
                    "writes": redirect.writes,
                }
                for redirect in command.redirects
            ],
            "category": verdict.category,
            "directory": here.paths[0] if here.known and len(here.paths) == 1 else None,
            "places": places,
            "complete": complete,
            "unreviewed": [] if reviewed else list(verdict.unreviewed),
            "read_only": verdict.read_only,
            "reason": verdict.reason,
        }

    def _unsafe_git(
        self, readings: list[list[str]], plain: list[str], verdict: Verdict, here: WorkingDirectory
    ) -> str | None:
        """Return why the repository is none to run git in, by any reading of a command."""
        if verdict.script is not None:
            return None  # the commands of a script have facts of their own
        in_git = [words for words in readings if words and posixpath.basename(words[0]) in _GIT]
        if not in_git:
            return None
        direct = posixpath.basename(readings[0][0]) == "git"
        if not (direct or verdict.read_only or plain[:1] == ["git"]):
            return "repository that is not known"  # what runs git may go elsewhere before
        for words in in_git:
            named = names_of_repository(words)
            # git -C src status: Directories follows it there
            followed = direct and named == ["-C"] and words[1] == "-C"
            if named and not followed:
                return "repository that is not known"
        category = "" if verdict.read_only else verdict.category
        return self._unsafe_repository(here, category) or None

    def merge_script(
        self,
        fact: ShellFact,
        row: ShellCommand | None,
        verdict: Verdict,
        depth: int,
        current: WorkingDirectory,
    ) -> None:
        """Read the script that a command runs into the same fact.

        Args:
            fact: the fact of the line.
            row: the command's row; ``None``: the line is not proven.
            verdict: what is known of the command.
            depth: how many scripts the line stands in.
            current: the directory of the command.
        """
        if depth >= _MAX_NESTED or verdict.script is None:
            _mark_nested_too_deep(fact, row)
            return
        if row is not None and _MOVING.intersection(w.partition("=")[0] for w in row["argv"]):
            current = current._replace(known=False)
        nested = self.fact(verdict.script, depth + 1, verdict.directories, current)
        fact["commands"].extend(nested["commands"])
        fact["sensitive_read"] |= nested["sensitive_read"]
        fact["network"] |= nested["network"]
        fact["connects"] |= nested["connects"]
        fact["executes"] |= nested["executes"]
        fact["destructive"] |= nested["destructive"]
        fact["runs_download"] |= nested["runs_download"]
        fact["complete"] &= nested["complete"]
        if not nested["parsed"]:
            fact["parsed"] = False
            fact["unparsed"] = nested["unparsed"]
        if row is None:
            return
        row["complete"] &= nested["complete"]
        if verdict.read_only and not nested["read_only"]:
            row["read_only"] = False
            row["category"] = "runner"
            row["reason"] = "runs a script that is not proven to only read"
            add_effects(row["argv"], verdict.warnings)
            _merge(fact, verdict.warnings)

    def _unproven(
        self, text: str, construct: str, depth: int, current: WorkingDirectory
    ) -> ShellFact:
        """Return what a tolerant reading finds in a line that could not be read as a whole."""
        fact = _unreadable(text, self._argument, self._inferred, construct)
        if construct in ("empty", "too_long"):
            return fact
        found = survey(text)
        fact["runs_download"] = runs_download(found)
        shell = Directories(current, self.env)
        scripts: list[Verdict] = []
        for item in found:
            command = self._simple(item, current)
            here = shell.enter(command)
            verdict = _warned_of(item, command, construct)
            shell.changed(command)
            if verdict.script is not None:
                scripts.append(verdict)
            _merge(fact, verdict.warnings)
            if item.words or item.assignments or item.redirects:
                row = self.row(command, verdict, here)
                row["name"] = item.words[0] if item.words else ""
                row["complete"] = False
                fact["commands"].append(row)
        for verdict in scripts[:_MAX_SCRIPTS]:
            if depth < _MAX_NESTED and verdict.script != text:
                self.merge_script(fact, None, verdict, depth, current)
        fact["parsed"] = fact["complete"] = False
        fact["unparsed"] = construct
        return fact

    def _simple(self, item: Found, current: WorkingDirectory) -> Simple:
        """Return a command of a tolerant reading, with the directories for their variables."""
        known = {
            "PWD": current.paths[0] if current.paths else "$PWD",
            "HOME": home_of(self.env),
        }
        words = []
        for raw, literal in zip(item.words, item.literal, strict=True):
            text = raw
            if not literal:
                text = _VARIABLE.sub(
                    lambda match: known[match[1] or match[2]], raw.replace('"', "")
                )
            glob = any(char in text for char in "*?[")
            words.append(Word(text, quoted=not literal, glob=glob))
        return Simple(
            words=words,
            assignments=[Assignment(name, "") for name in item.assignments],
            joint=";",
        )


class _Line:
    """Puts the facts of a line's commands together."""

    def __init__(
        self,
        reading: _Reading,
        text: str,
        depth: int,
        directories: tuple[str, ...],
        current: WorkingDirectory,
    ) -> None:
        self._reading = reading
        self._depth = depth
        self._shell = Directories(current, reading.env)
        self._pipeline: list[tuple[Simple, Verdict]] = []
        """The commands that feed the next one, if a pipe stands in front of it."""
        self._other_shell = False
        self._read_only = True
        self.directories = directories
        self._fact = reading.new_fact()
        self._fact["parsed"] = self._fact["complete"] = True
        self._fact["runs_download"] = fetches(text) and runs_download(survey(text, MAX_LENGTH))

    def add(self, command: Simple) -> None:
        """Judge the next command."""
        fact, here = self._fact, self._shell.enter(command)
        if not self._is_fed(command):
            self._pipeline = []
        verdict = self._reading.judge(command, here, self.directories, self._pipeline)
        self._pipeline.append((command, verdict))
        row = self._reading.row(command, verdict, here)
        _merge(fact, verdict.warnings)
        self._other_shell |= verdict.warnings.other_shell
        fact["commands"].append(row)
        if verdict.script is not None:
            self._reading.merge_script(fact, row, verdict, self._depth, here)
        self._shell.changed(command)
        fact["complete"] &= row["complete"]
        self._read_only &= row["read_only"]
        if verdict.read_only and command.texts[:1] in (["cd"], ["pushd"]):
            self.directories = entered(self.directories, _target(command))

    def _is_fed(self, command: Simple) -> bool:
        """Whether the command before, and no group of commands, feeds a command."""
        if command.joint != "|" or not self._pipeline:
            return False
        return self._pipeline[-1][0].group == command.group

    def finish(self) -> ShellFact:
        """Return the fact of the line."""
        fact = self._fact
        if self._other_shell:
            fact["parsed"] = self._read_only = False
            fact["unparsed"] = "windows"
            for row in fact["commands"]:
                row["read_only"] = False
        fact["read_only"] = self._read_only
        fact["writes"] = not self._read_only
        fact["sensitive_read"] |= self._reading.reads_secret
        return fact


def _target(command: Simple) -> str:
    """Return where ``cd`` goes, by its text; empty: home."""
    for text in command.texts[1:]:
        if not text.startswith("-"):
            return text
    return ""


def _mark_nested_too_deep(fact: ShellFact, row: ShellCommand | None) -> None:
    """Mark a script whose commands have not been read, which a list may deny."""
    fact["executes"] = fact["network"] = fact["connects"] = True
    fact["complete"] = fact["parsed"] = False
    fact["unparsed"] = fact["unparsed"] or "nested_too_deep"
    if row is not None:
        row["read_only"] = False


def _warned_of(item: Found, command: Simple, construct: str) -> Verdict:
    """Return what is known of a command in a line that is not proven."""
    verdict = Verdict(reason=f"the line holds {construct}")
    warnings = verdict.warnings
    add_effects(item.words, warnings)
    if command.words:
        describe(command.words, item.assignments, verdict)
    for operator, target in item.redirects:
        redirect = Redirect("", operator, Word(target))
        if redirect.writes:
            # >& is mostly 2>&1
            warnings.destructive |= redirect.truncates and operator != ">&"
            operation = "append" if redirect.appends else "overwrite"
            verdict.accesses.append(FileAccess(target, operation))
        if redirect.connects:
            warnings.network = warnings.connects = True
    # A word that still holds something to expand names no place that is known.
    known = []
    for access in verdict.accesses:
        if not set("$`") & set(access.path):
            known.append(access)
    verdict.accesses = known
    if not all(map(is_harmless_variable, item.assignments)):
        warnings.executes = True
    verdict.script = script_of(item.words)
    return verdict


def _without_bodies(text: str, commands: Sequence[Simple]) -> str:
    """Return the text of a line's commands, without here-documents: those are data."""
    parts: list[str] = []
    for command in commands:
        words = [*command.words, *(redirect.target for redirect in command.redirects)]
        start = min((word.start for word in words), default=0)
        end = max((word.end for word in words), default=0)
        parts += [command.joint, text[start:end]]
    return " ".join(parts)


def _unreadable(text: str, argument: str, inferred: bool, construct: str) -> ShellFact:
    """Return the fact of text that is not read.

    Everything may be, and names that look dangerous are reported.
    """
    fact: ShellFact = unestablished("shell", argument, inferred=inferred, unparsed=construct)
    fact["writes"] = fact["executes"] = fact["network"] = True
    head = text[:_SCANNED_CHARS]
    for match in _NAMES.finditer(head):
        warnings = Warnings()
        add_effects([match[1]], warnings)
        fact["destructive"] |= warnings.destructive
        fact["connects"] |= warnings.connects
    start = head[:MAX_LENGTH]
    words = dict.fromkeys([*_WORDS.findall(start), *surface_words(start)])
    fact["sensitive_read"] = any(map(names_secret, words))
    return fact


def _merge(fact: ShellFact, warnings: Warnings) -> None:
    fact["sensitive_read"] |= warnings.sensitive
    fact["network"] |= warnings.network
    fact["connects"] |= warnings.connects
    fact["executes"] |= warnings.executes
    fact["destructive"] |= warnings.destructive
