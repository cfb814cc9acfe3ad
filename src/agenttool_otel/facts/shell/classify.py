"""The proof that one simple command only reads: every word is accounted for by the tables, or there is none."""

from __future__ import annotations

import re
from dataclasses import replace

from agenttool_otel.facts.shell import programs
from agenttool_otel.facts.shell.actions import describe
from agenttool_otel.facts.shell.devices import START, joined
from agenttool_otel.facts.shell.effects import (
    Refused,
    Touch,
    Verdict,
    effects_of,
    is_harmless_assignment,
    is_harmless_variable,
    redirect_writes,
    refuse,
    script_of,
)
from agenttool_otel.facts.shell.guard import Redirect, Simple
from agenttool_otel.facts.shell.options import check_file, globs_value, long_option, short_option
from agenttool_otel.facts.shell.secrets import aims_at_secret, asks_for_secret, names_secret, searches_secret, wide_root
from agenttool_otel.facts.shell.tables import Spec, effects, read_only
from agenttool_otel.facts.shell.words import Word

_TRUSTED_DIRECTORIES = ("/bin/", "/usr/bin/")
_LEGACY_NUMBER = re.compile(r"-[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?[0-9]+[A-Za-z]{0,3}\Z")
_CMD_SWITCH = re.compile(r"/[A-Za-z?](?::.*)?\Z")
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?\Z")
_MAX_WRAPPERS = 4
FOUND = "{}"
"""Stands for the files that xargs gets from its input."""


def base_name(name: str) -> str:
    """The command's name without a system directory; other paths are kept, for anything may lie there."""
    for directory in _TRUSTED_DIRECTORIES:
        if name.startswith(directory) and "/" not in name[len(directory) :]:
            return name[len(directory) :]
    return name


def classify(command: Simple, directories: tuple[str, ...] = START) -> Verdict:
    """Judges one command that the guard read."""
    verdict = Verdict()
    try:
        _prove(command, verdict, directories, depth=0)
        verdict.category = "reader"
        _check_redirects(command.redirects, verdict, directories)
        verdict.read_only = True
    except Refused as refused:
        verdict.reason = str(refused)
    writes = next((r for r in command.redirects if redirect_writes(r.operator, r.target.text)), None)
    if verdict.category == "reader" and writes is not None:
        verdict.category, verdict.read_only = "writer", False
        verdict.reason = f"redirection {writes.operator}"
    elif not verdict.read_only:
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
    if not words:
        raise Refused("redirection without a command")
    first = words[0]
    if first.glob or first.substitution or (first.quoted and first.text != base_name(first.text)):
        raise Refused("command name is not a plain word")
    name = base_name(first.text)
    if name == "git":
        name, words = _git_command(words)
        verdict.touches.append(Touch(".", "list"))
        verdict.repository = True
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


def _git_command(words: list[Word]) -> tuple[str, list[Word]]:
    """Git's command as the tables name it, and the words from its last one on."""
    texts = [word.text for word in words]
    start = 2 if texts[1:2] in (["--no-pager"], ["-P"]) else 1
    if any("%G" in text for text in texts):
        raise Refused("git that checks signatures")
    two = " ".join(["git", *texts[start : start + 2]])
    if two in read_only():
        return two, words[start + 1 :]
    return " ".join(["git", *texts[start : start + 1]]), words[start:]


def _check_revisions(operands: list[Word], verdict: Verdict, directories: tuple[str, ...]) -> None:
    """Accounts for words that git takes for a revision, a file, or a file of a revision."""
    for word in operands:
        text = word.text
        if names_secret(text.rpartition(":")[2]):
            verdict.sensitive = True
        outside = text.startswith(("/", "~", "..")) or "/.." in text
        if outside or word.glob or ("/" in text and not any(char in text for char in "~^:@")):
            check_file(word, verdict, directories)


def _check_redirects(redirects: list[Redirect], verdict: Verdict, directories: tuple[str, ...]) -> None:
    for redirect in redirects:
        if redirect.operator == "<":
            check_file(redirect.target, verdict, directories)
        elif redirect.operator == "<&":
            raise Refused(f"redirection {redirect.operator}")


def _ordinary(name: str, spec: Spec, arguments: list[Word], verdict: Verdict, directories: tuple[str, ...]) -> None:
    operands: list[Word] = []
    files: list[Word] = []
    patterns: list[Word] = []
    options: set[str] = set()
    names: list[str] = []
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
        if spec.max_operands is not None and len(operands) >= spec.max_operands:
            raise Refused("option behind the last operand")  # where options end at the first operand, it names a file
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
        if option in spec.name_options:
            names.append(value.text)
        if _asks_for_secret(spec, option, value.text):
            verdict.sensitive = True
        if option in spec.path_options:
            files.append(value)
        elif option in spec.pattern_options:
            patterns.append(value)
        elif spec.program == "awk":
            refuse(programs.awk_program(value.text.replace("|", "")))
    if spec.operands == "revisions":
        _check_revisions(operands, verdict, directories)
    else:
        _roles(name, spec, operands, files, patterns, options, verdict)
    _check_files(spec, files, options, names, verdict, directories)


def _asks_for_secret(spec: Spec, option: str, value: str) -> bool:
    """Whether an option's value chooses files or fields that hold credentials or the environment."""
    return (
        (option in spec.name_options and aims_at_secret(value))
        or (option in spec.suffix_options and names_secret(f"x.{value}"))
        or (spec.sensitive_value is not None and spec.sensitive_value.search(value) is not None)
    )


def _check_files(
    spec: Spec, files: list[Word], options: set[str], names: list[str], verdict: Verdict, directories: tuple[str, ...]
) -> None:
    """Accounts for the files that a command reads, and for the current directory where it takes that by itself."""
    recursive = "always" in spec.recursive or bool(options & spec.recursive)
    enters = spec.program == "cd"
    if enters and any(word.text == "-" for word in files):
        verdict.complete = False  # where the line came from, nobody knows
    if not files and (recursive or spec.lists_current):
        files = [Word(".", 0, 0)]
    for word in files:
        check_file(
            word,
            verdict,
            directories,
            recursive=recursive,
            contents=not spec.describes and not enters,
            names=() if any(name.startswith("!") for name in names) else tuple(names),
            hidden=not spec.skips_hidden or bool(options & spec.skips_hidden),
            follow=bool(options & spec.follows),
        )
    if enters:
        verdict.touches = [replace(touch, operation="enter") for touch in verdict.touches]
        if not files:
            verdict.touches.append(Touch("~/", "enter"))


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
        verdict.touches.extend(Touch(word.text, "list", glob=True) for word in operands if word.glob)
    elif spec.operands == "paths":
        files.extend(operands)
    else:
        if not options & spec.pattern_options:
            if not operands:
                if spec.pattern_optional:
                    return
                raise Refused(f"{name} without a program or pattern")
            patterns.append(operands[0])
            if operands[0].glob:
                if spec.program:
                    raise Refused("glob as a program")
                verdict.touches.append(Touch(operands[0].text, "list", glob=True))
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
        verdict.touches.extend(Touch(word.text, "list", glob=True) for word in arguments if word.glob)
        if any(names_secret(place, glob=True) for place in places):
            verdict.sensitive = True
    elif spec.program == "test":
        reason, files = programs.test_words(name, arguments)
        refuse(reason)
        for word in files:
            check_file(word, verdict, directories, contents=False)
    elif spec.program == "find":
        _find(arguments, verdict, directories, depth)
    elif spec.program == "xargs":
        _xargs(arguments, verdict, directories, depth)
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


def _find(arguments: list[Word], verdict: Verdict, directories: tuple[str, ...], depth: int) -> None:
    found = programs.find_words(arguments)
    refuse(found.reason)
    starts = found.starts or [Word(".", 0, 0)]
    for word in [*starts, *found.compared]:
        check_file(word, verdict, directories, contents=False)
    # The names alone show that a credential is looked for; the tree of a whole system or home holds some.
    if any(aims_at_secret(word.text) for word in found.names):
        verdict.sensitive = True
    places = [joined(directory, word.text) for directory in directories for word in starts]
    unlimited = not any(word.text.strip("*?") for word in found.names)
    if (unlimited or found.commands) and any(map(wide_root, places)):
        verdict.sensitive = True
    for words in found.commands:
        for touch in _of_files(words, verdict, directories, depth):
            for word in starts:
                reads = touch.operation == "read"
                verdict.touches.append(Touch(word.text, touch.operation, recursive=reads, names=found.file_names))


def _xargs(arguments: list[Word], verdict: Verdict, directories: tuple[str, ...], depth: int) -> None:
    """Proves ``xargs COMMAND`` for commands that no file name can be a harmful option of."""
    split = True
    words = list(arguments)
    while words and words[0].text.startswith("-"):
        option = words.pop(0).text
        if option in ("-0", "--null"):
            split = False
        elif option == "-n" and words and _NUMBER.match(words[0].text):
            words.pop(0)
        elif option not in ("-r", "--no-run-if-empty"):
            raise Refused("xargs with options")
    spec = read_only().get(base_name(words[0].text)) if words else None
    if spec is None or not spec.glob_first:
        raise Refused("xargs of a command that takes options")
    for touch in _of_files([*words, Word("{}", 0, 0)], verdict, directories, depth):
        verdict.touches.append(replace(touch, word=FOUND, split=split))


def _of_files(words: list[Word], verdict: Verdict, directories: tuple[str, ...], depth: int) -> list[Touch]:
    """Proves a command that gets ``{}`` for the names of files; returns what it does to those."""
    spec = read_only().get(base_name(words[0].text))
    if spec is None or spec.builtin or spec.operands not in ("paths", "pattern") or spec.program in ("awk", "cd"):
        raise Refused("command for each file that is not known to only read")
    inner = Verdict()
    _prove(Simple(words=words), inner, directories, depth + 1)
    files = [touch for touch in inner.touches if touch.word == "{}"]
    if len(files) != sum("{}" in word.text for word in words):
        raise Refused("name of a file as a pattern or option")
    verdict.touches.extend(touch for touch in inner.touches if touch.word != "{}")
    verdict.repository = verdict.repository or inner.repository
    verdict.sensitive = verdict.sensitive or inner.sensitive
    return files


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
    verdict.touches = []
    effects_of(words, verdict)
    describe(command.words, command.assignments, verdict)
    if not all(map(is_harmless_variable, command.assignments)):
        verdict.executes = True  # PATH, LD_PRELOAD, PAGER and the like name what is run
    for word in command.words[1:]:
        text = word.text
        if not text:
            continue
        value = text.partition("=")[2] if text.startswith("-") else text
        if value and not word.substitution and names_secret(value, glob=word.glob):
            verdict.sensitive = True


def _add_redirects(redirects: list[Redirect], verdict: Verdict) -> None:
    for redirect in redirects:
        target = redirect.target.text
        if redirect.operator == "<" and not verdict.read_only:
            verdict.touches.append(Touch(target, "read"))
        if redirect_writes(redirect.operator, target):
            append = redirect.operator in (">>", "&>>")
            verdict.touches.append(Touch(target, "append" if append else "overwrite"))
            if redirect.operator in (">", ">|", "&>", ">&"):
                verdict.destructive = True
            if names_secret(target):
                verdict.sensitive = True
        if target.startswith(("/dev/tcp/", "/dev/udp/")):
            verdict.network = verdict.sensitive = True
