"""The proof that one simple command only reads: every word is accounted for by the tables, or there is none."""

from __future__ import annotations

import re

from agenttool_otel.facts.shell import programs
from agenttool_otel.facts.shell.effects import (
    Verdict,
    effects_of,
    is_harmless_assignment,
    is_harmless_variable,
    redirect_writes,
    script_of,
)
from agenttool_otel.facts.shell.files import check_file
from agenttool_otel.facts.shell.guard import Redirect, Simple, Word
from agenttool_otel.facts.shell.options import globs_value, long_option, short_option
from agenttool_otel.facts.shell.places import START, joined
from agenttool_otel.facts.shell.refused import Refused, refuse
from agenttool_otel.facts.shell.secrets import aims_at_secret, asks_for_secret, names_secret, searches_secret, wide_root
from agenttool_otel.facts.shell.tables import Spec, effects, read_only

__all__ = ["base_name", "classify"]

_TRUSTED_DIRECTORIES = ("/bin/", "/usr/bin/")
_LEGACY_NUMBER = re.compile(r"-[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?[0-9]+[A-Za-z]{0,3}\Z")
_CMD_SWITCH = re.compile(r"/[A-Za-z?](?::.*)?\Z")
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?\Z")
_MAX_WRAPPERS = 4


def base_name(name: str) -> str:
    """The command's name without a system directory; other paths are kept, for anything may lie there."""
    for directory in _TRUSTED_DIRECTORIES:
        if name.startswith(directory) and "/" not in name[len(directory) :]:
            return name[len(directory) :]
    return name


def classify(command: Simple, directories: tuple[str, ...] = START) -> Verdict:
    """Judges one command that the guard read.

    Args:
        command: words, assignments and redirections.
        directories: where the line may stand (``places.entered``).

    Returns:
        The verdict; ``read_only`` only when every word is accounted for.
    """
    verdict = Verdict()
    try:
        _prove(command, verdict, directories, depth=0)
        verdict.read_only = True
    except Refused as refused:
        verdict.reason = str(refused)
    if not verdict.read_only:
        _add_effects(command, verdict)
    _add_redirects(command.redirects, verdict)
    return verdict


def _prove(command: Simple, verdict: Verdict, directories: tuple[str, ...], depth: int) -> None:
    if depth > _MAX_WRAPPERS:
        raise Refused("wrappers nested too deep")
    words = command.words
    if any(_CMD_SWITCH.match(word.text) for word in words[1:] if not word.quoted):
        if words and base_name(words[0].text) in effects().known:
            verdict.foreign = True
        raise Refused("option of the Windows command interpreter")
    if command.assignments and not (words and all(map(is_harmless_assignment, command.values))):
        raise Refused("assignment before a command" if words else "assignment")
    _check_redirects(command.redirects, verdict, directories)
    if not words:
        raise Refused("redirection without a command")
    first = words[0]
    if first.glob or first.substitution or (first.quoted and first.text != base_name(first.text)):
        raise Refused("command name is not a plain word")
    name = base_name(first.text)
    spec = read_only().get(name)
    if spec is None:
        raise Refused(f"{name[:60]!r} is not known to only read")
    if spec.builtin and "/" in first.text and name not in ("[", "test", "echo", "printf"):
        raise Refused("builtin with a path")
    verdict.sensitive = verdict.sensitive or spec.sensitive
    arguments = words[1:]
    if spec.operands == "version":
        if [word.text for word in arguments] not in (["--version"], *([f"-{letter}"] for letter in spec.short)):
            raise Refused(f"{name} is only known to tell its version")
        verdict.reason = f"{name} tells its version"
        return
    if spec.builtin is False and len(arguments) == 1 and arguments[0].text in ("--help", "--version"):
        verdict.reason = f"{name} prints its help"
        return
    if spec.operands == "special":
        _special(name, spec, arguments, command, verdict, directories, depth)
    else:
        _ordinary(name, spec, arguments, verdict, directories)
    if not verdict.reason:
        verdict.reason = f"{name} only reads with these words"


def _check_redirects(redirects: list[Redirect], verdict: Verdict, directories: tuple[str, ...]) -> None:
    for redirect in redirects:
        target = redirect.target.text
        if redirect_writes(redirect.operator, target):
            raise Refused(f"redirection {redirect.operator}")
        if redirect.operator == "<":
            check_file(redirect.target, verdict, directories)
        elif redirect.operator in ("<&", "<>"):
            raise Refused(f"redirection {redirect.operator}")


def _ordinary(name: str, spec: Spec, arguments: list[Word], verdict: Verdict, directories: tuple[str, ...]) -> None:
    operands: list[Word] = []
    files: list[Word] = []
    patterns: list[Word] = []
    options: set[str] = set()
    index, ended = 0, False
    while index < len(arguments):
        word = arguments[index]
        index += 1
        text = word.text
        if word.glob_first and not ended and not spec.glob_first:
            raise Refused("unquoted glob that may become an option")
        if ended or not text.startswith("-") or text == "-":
            if operands and text.startswith("-") and (spec.max_operands is not None or not spec.permute):
                raise Refused("option behind an operand")
            operands.append(word)
            ended = ended or not spec.permute
            continue
        if word.glob and not globs_value(spec, text):
            raise Refused("glob in an option")
        if text == "--":
            ended = True
            continue
        following = arguments[index] if index < len(arguments) else None
        if text.startswith("--"):
            option, value, used = long_option(spec, text, following)
        elif spec.number and _LEGACY_NUMBER.match(text):
            continue
        else:
            option, value, used = short_option(spec, text, following, options)
        if operands and spec.program and option in spec.pattern_options:
            # With POSIXLY_CORRECT, and in BSD, options end here and the first operand is the program.
            raise Refused("program behind an operand")
        index += used
        if index > len(arguments):
            raise Refused(f"option --{option} without its values")
        options.add(option)
        if value is None:
            continue
        options.update(row for row in spec.recursive if f"{option}={value.text}".startswith(row) and "=" in row)
        if option in spec.name_options and aims_at_secret(value.text):
            verdict.sensitive = True
        if option in spec.suffix_options and names_secret(f"x.{value.text}"):
            verdict.sensitive = True
        if spec.sensitive_value is not None and spec.sensitive_value.search(value.text):
            verdict.sensitive = True
        if option in spec.path_options:
            files.append(value)
        elif option in spec.pattern_options:
            patterns.append(value)
        elif spec.program == "awk":
            refuse(programs.awk_program(value.text.replace("|", "")))
    _roles(name, spec, operands, files, patterns, options, verdict)
    recursive = "always" in spec.recursive or bool(options & spec.recursive)
    for word in files:
        check_file(word, verdict, directories, recursive=recursive, contents=not spec.describes)
    if recursive and not files and not spec.describes and any(map(wide_root, directories)):
        verdict.sensitive = True


def _roles(
    name: str,
    spec: Spec,
    operands: list[Word],
    files: list[Word],
    patterns: list[Word],
    options: set[str],
    verdict: Verdict,
) -> None:
    """Says which operands are files, and checks patterns and programs."""
    if spec.max_operands is not None and (
        len(operands) > spec.max_operands or (spec.max_operands == 1 and any(word.glob for word in operands))
    ):
        raise Refused(f"{name} with more operands")
    if spec.operands == "none":
        if operands:
            raise Refused(f"{name} with an operand")
    elif spec.operands == "text":
        if spec.operand_pattern is not None and not all(spec.operand_pattern.fullmatch(w.text) for w in operands):
            raise Refused(f"operand of {name}")
        if any(names_secret(word.text) for word in operands):
            verdict.sensitive = True
    elif spec.operands == "paths":
        files.extend(operands)
    else:
        if not options & spec.pattern_options:
            if not operands:
                if spec.pattern_optional:
                    return
                raise Refused(f"{name} without a program or pattern")
            patterns.append(operands[0])
            if operands[0].glob and spec.program:
                raise Refused("glob as a program")
            operands = operands[1:]
        files.extend(operands)
        _check_patterns(name, spec, patterns, verdict)
        if name in ("awk", "gawk", "mawk", "nawk") and any("=" in word.text for word in files):
            raise Refused("assignment among the operands of awk")


def _check_patterns(name: str, spec: Spec, patterns: list[Word], verdict: Verdict) -> None:
    for word in patterns:
        text = word.text
        if word.substitution:
            raise Refused("program from a substitution")
        reason = ""
        if spec.program == "sed":
            reason = programs.sed_program(text)
        elif spec.program == "awk":
            reason = programs.awk_program(text)
        elif spec.program == "jq":
            reason = programs.jq_program(text)
        elif name in ("fd", "fdfind") and aims_at_secret(text):
            verdict.sensitive = True
        if searches_secret(text) or (spec.program == "jq" and asks_for_secret(text)):
            verdict.sensitive = True
        refuse(reason)


def _special(
    name: str,
    spec: Spec,
    arguments: list[Word],
    command: Simple,
    verdict: Verdict,
    directories: tuple[str, ...],
    depth: int,
) -> None:
    if spec.program in ("echo", "printf"):
        if spec.program == "printf":
            refuse(programs.printf_words(arguments))
        places = [joined(base, word.text) for base in directories for word in arguments if word.glob]
        if any(names_secret(place, glob=True) for place in places):
            verdict.sensitive = True
    elif spec.program == "test":
        reason, files = programs.test_words(name, arguments)
        refuse(reason)
        for word in files:
            check_file(word, verdict, directories)
    elif spec.program == "find":
        reason, starts, names, compared = programs.find_words(arguments)
        refuse(reason)
        for word in [*starts, *compared]:
            check_file(word, verdict, directories)
        # The names alone show that a credential is looked for; the tree of a whole system or home holds some.
        if any(aims_at_secret(word.text) for word in names):
            verdict.sensitive = True
        places = [joined(directory, word.text) for directory in directories for word in starts] or list(directories)
        if not any(word.text.strip("*?") for word in names) and any(map(wide_root, places)):
            verdict.sensitive = True
    elif spec.program == "command":
        if len(arguments) < 2 or arguments[0].text not in ("-v", "-V") or arguments[0].quoted:
            _wrapped(name, arguments, command, verdict, directories, depth)
        elif any(word.glob for word in arguments):
            raise Refused("glob")
    elif spec.program == "wrapper":
        _wrapped(name, arguments, command, verdict, directories, depth)
    else:
        # A shell's -c: exactly one script, which the caller reads in turn.
        if len(arguments) != 2 or arguments[0].text != "-c" or arguments[1].glob or arguments[1].substitution:
            raise Refused(f"{name} runs more than a literal script")
        verdict.script = arguments[1].text
        verdict.reason = f"{name} runs a script that only reads"


def _wrapped(
    name: str, arguments: list[Word], command: Simple, verdict: Verdict, directories: tuple[str, ...], depth: int
) -> None:
    """Proves the command behind ``env``, ``timeout``, ``nice`` or ``command``, without options that change more."""
    index = 0
    if name == "timeout":
        if not arguments or not _DURATION.match(arguments[0].text):
            raise Refused("timeout with options")
        index = 1
    elif name == "nice" and len(arguments) > 1 and arguments[0].text == "-n" and _NUMBER.match(arguments[1].text):
        index = 2
    elif name == "env" and not arguments:
        verdict.reason, verdict.sensitive = "env prints the environment", True
        return
    inner = arguments[index:]
    if not inner or inner[0].text.startswith("-") or "=" in inner[0].text or any(w.substitution for w in inner):
        raise Refused(f"{name} with options or assignments")
    wrapped = read_only().get(base_name(inner[0].text))
    if wrapped is not None and wrapped.builtin and inner[0].text in ("cd", "[[", "type", "command", ":"):
        raise Refused(f"{name} in front of a builtin")
    _prove(Simple(words=inner), verdict, directories, depth + 1)


def _add_effects(command: Simple, verdict: Verdict) -> None:
    words = [word.text for word in command.words]
    verdict.script = script_of(words)
    effects_of(words, verdict)
    if not all(map(is_harmless_variable, command.assignments)):
        verdict.executes = True  # PATH, LD_PRELOAD, PAGER and the like name what is run
    for word in command.words[1:]:
        text = word.text
        if not text:
            continue
        value = text.partition("=")[2] if text.startswith("-") else text
        if value and not word.substitution:
            if value not in verdict.paths and not text.startswith("-"):
                verdict.paths.append(value)
            if names_secret(value, glob=word.glob):
                verdict.sensitive = True


def _add_redirects(redirects: list[Redirect], verdict: Verdict) -> None:
    for redirect in redirects:
        target = redirect.target.text
        if redirect_writes(redirect.operator, target):
            if target not in verdict.paths:
                verdict.paths.append(target)
            if redirect.operator in (">", ">|", "&>", ">&"):
                verdict.destructive = True
            if names_secret(target):
                verdict.sensitive = True
        if target.startswith(("/dev/tcp/", "/dev/udp/")):
            verdict.network = verdict.sensitive = True
