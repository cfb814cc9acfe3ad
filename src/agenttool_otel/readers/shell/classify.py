"""The proof that one simple command only reads: every word is accounted for by the tables, or there
is none.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import cast

from agenttool_otel.readers.shell import programs, tables
from agenttool_otel.readers.shell.actions import describe
from agenttool_otel.readers.shell.compounds import Redirect, Simple
from agenttool_otel.readers.shell.devices import START, joined
from agenttool_otel.readers.shell.effects import (
    MAX_WRAPPERS,
    Refused,
    Touch,
    Verdict,
    base_name,
    effects_of,
    is_harmless_assignment,
    is_harmless_variable,
    redirect_writes,
    refuse_if,
    script_of,
)
from agenttool_otel.readers.shell.listing import listed_by
from agenttool_otel.readers.shell.operands import free_values, free_words, list_globs, prove_words
from agenttool_otel.readers.shell.options import AMOUNT, check_file
from agenttool_otel.readers.shell.secrets import (
    aims_at_secret,
    names_secret,
    surface_words,
    wide_root,
)
from agenttool_otel.readers.shell.tables import (
    HASH,
    NUMBER,
    TEXT,
    Spec,
    effects,
    ends_names_with_nul,
    of_index,
    prints,
    read_only,
    with_commands,
)
from agenttool_otel.readers.shell.words import Word

_CMD_SWITCH = re.compile(r"/[A-Za-z?](?::.*)?\Z")
_WIDE = re.compile(r"%[-+ #_^0]*[0-9]{5}|%\(align:[^)]*[0-9]{5}")
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?\Z")
_FOUND = "{}"
_HIDDEN = re.compile(r"(?:^|[/:=,])\.(?!\.{1,2}[A-Za-z@])")  # but not ..HEAD
_BELOW = re.compile(r"\w[\w-]*/")
_GONE = str.maketrans("", "", NUMBER + HASH)


def classify(command: Simple, directories: tuple[str, ...] = START) -> Verdict:
    """Judges one command that the guard read."""
    if directories in command.verdicts:
        return cast("Verdict", command.verdicts[directories])
    verdict = command.verdicts[directories] = Verdict(directories=directories)
    try:
        _prove(command, verdict)
        verdict.category = "reader"
        _check_redirects(command.redirects, verdict)
        verdict.read_only = True
    except Refused as refused:
        verdict.reason = str(refused)
    writes = next(
        (r for r in command.redirects if redirect_writes(r.operator, r.target.text)), None
    )
    if verdict.category == "reader" and writes is not None:
        verdict.category, verdict.read_only = "writer", False
        verdict.reason = f"redirection {writes.operator}"
    elif not verdict.read_only:
        _add_effects(command, verdict)
    _add_redirects(command.redirects, verdict)
    return verdict


def _prove(command: Simple, verdict: Verdict) -> None:
    refuse_if(verdict.depth > MAX_WRAPPERS, "wrappers nested too deep")
    words = command.words
    if any(_CMD_SWITCH.match(word.text) for word in words[1:] if not word.quoted):
        verdict.foreign |= bool(words) and base_name(words[0].text) in effects().lists["known"]
        raise Refused("option of the Windows command interpreter")
    if command.local:
        verdict.reason = "sets variables, or calls a function, of this line"
        return
    if command.assignments and not (words and all(map(is_harmless_assignment, command.values))):
        raise Refused("assignment before a command" if words else "assignment")
    refuse_if(not words, "redirection without a command")
    first = words[0]
    odd = (
        first.text != base_name(first.text) or first.text in tables.programs()["shell"]["keywords"]
    )
    refuse_if(
        first.glob or first.substitution or (first.quoted and odd),
        "command name is not a plain word",
    )
    name = base_name(first.text)
    if name in with_commands():
        name, words = _command_of(name, words, verdict.depth)
        verdict.repository = name.startswith("git ")
        verdict.touches.extend([Touch(".", "list")] if verdict.repository else ())
    if (spec := read_only().get(name)) is None:
        raise Refused(f"{name[:60]!r} is not known to only read")
    refuse_if(
        spec.builtin and "/" in first.text and name not in ("[", "test", "echo", "printf"),
        "builtin with a path",
    )
    verdict.sensitive = verdict.sensitive or spec.sensitive
    arguments = words[1:]
    # to diff .. is the directory above
    ranges = name in ("git log", "git show", "git rev-list", "git shortlog")
    others = any(_may_become_other(word, ranges=ranges) for word in arguments)
    refuse_if(spec.program != "echo" and others, "number that may not be there")
    refuse_if(any(_WIDE.search(word.text) for word in arguments), "width without a bound")
    if spec.operands == "version":
        if [word.text for word in arguments] not in (
            ["--version"],
            *([f"-{letter}"] for letter in spec.short),
        ):
            raise Refused(f"{name} is only known to tell its version")
        verdict.reason = f"{name} tells its version"
        return
    if (
        spec.builtin is False
        and len(arguments) == 1
        and arguments[0].text in ("--help", "--version")
    ):
        verdict.reason = f"{name} prints its help"
        return
    arguments = _without_texts(name, spec, arguments)
    words = [*words[:1], *arguments]
    unknown = [
        w for w in arguments if TEXT in w.text or (HASH in w.text and spec.operands != "revisions")
    ]
    vanishing = [
        word
        for word in arguments
        if word.empty and not word.quoted and not word.text.translate(_GONE)
    ]
    harmless = spec.program in ("echo", "printf", "test") or (
        spec.operands == "text" and spec.glob_first
    )
    for word in unknown if name == "for" else ():
        if word.split and not prints(word.source, "number", "numbers"):
            _add_listed(Touch(_FOUND, "list", split=True), word.source or [], verdict, bare=True)
    refuse_if(len(vanishing) > 2, "words that may not be there")
    # a number that is not printed leaves no word behind
    for gone in vanishing if not harmless else ():
        kept = [word for word in command.words if word is not gone]
        _prove(Simple(words=kept, input=command.input, redirects=command.redirects), verdict)
    split = any(word.split and not word.quoted for word in unknown)
    if unknown and (split or not harmless) and name not in ("for", "case"):
        refuse_if(" " in name, "word that is only known when the line runs")
        _of_names(words, unknown, verdict)
    elif spec.operands == "special":
        _special(name, spec, arguments, command, verdict)
    else:
        prove_words(spec, arguments, verdict)
    if not verdict.reason:
        verdict.reason = f"{name} only reads with these words"


def _without_texts(name: str, spec: Spec, arguments: list[Word]) -> list[Word]:
    """Puts letters for what is only known when the line runs and can be nothing but any text."""
    if name == "git grep":  # a commit to search in, or nothing
        behind = zip([None, *arguments], arguments, strict=False)
        arguments = [
            w for before, w in behind if w.text != HASH or before is None or before.text[:1] == "-"
        ]
    if spec.program == "awk":
        return free_values(arguments)
    if any(TEXT in w.text or HASH in w.text for w in arguments) and not (
        spec.program or spec.sensitive_value
    ):
        return free_words(name, spec, arguments)
    return arguments


def _may_become_other(word: Word, *, ranges: bool) -> bool:
    """Whether a number that may be nothing leaves an option, one that takes the next word, a hidden
    or secret name.
    """
    left = word.text.translate(_GONE) if word.empty or HASH in word.text else word.text
    if left == word.text or (ranges and word.text in (f"{HASH}..{HASH}", f"{HASH}...{HASH}")):
        return False
    lacks = (
        left[:1] == "-" and left[1:2] != "-" and len(left) > 1 and word.text[-1:] in (NUMBER, HASH)
    )
    hidden = bool(_HIDDEN.search(left)) > bool(_HIDDEN.search(word.text)) or left.count(
        ".."
    ) > word.text.count("..")
    secret = names_secret(left.rpartition("=")[2]) or aims_at_secret(left)
    return (left[:1] == "-" and word.text[:1] != "-") or lacks or hidden or secret


def _command_of(name: str, words: list[Word], depth: int) -> tuple[str, list[Word]]:
    """The command of git and the like as the tables name it, and the words from its last one on."""
    texts, start = [word.text for word in words], 1
    refuse_if(name == "set" and depth, "builtin behind another command")
    if name == "git":
        start = 3 if texts[1:2] == ["-C"] and depth == 0 else 1  # Directories knows where it goes
        named = any(word.names_files for word in words[3:])
        refuse_if(start == 3 and named, "names of files for git elsewhere")
        start += (
            2 if " ".join(texts[start : start + 2]) in tables.programs()["git"]["settings"] else 0
        )
        start += texts[start : start + 1] in (["--no-pager"], ["-P"])
    both = " ".join([*texts, *(text.translate(_GONE) for text in texts)])
    refuse_if(
        re.search(r"%[-+ ]?G|(?:%|--sort[= ])\S*signature", both) is not None,
        "git that checks signatures",
    )
    two = " ".join([name, *texts[start : start + 2]])
    if two in read_only():
        return two, words[start + 1 :]
    return " ".join([name, *texts[start : start + 1]]), words[start:]


def _check_redirects(redirects: list[Redirect], verdict: Verdict) -> None:
    for redirect in redirects:
        if (
            redirect.operator == "<"
            and redirect.target.unknown
            and redirect.target.source is not None
        ):
            _add_listed(Touch(_FOUND, "read", split=True), redirect.target.source, verdict)
        elif redirect.operator == "<":
            check_file(redirect.target, verdict)
        elif redirect.operator == "<&":
            raise Refused(f"redirection {redirect.operator}")


def _special(
    name: str, spec: Spec, arguments: list[Word], command: Simple, verdict: Verdict
) -> None:
    if spec.program in ("echo", "printf"):
        refuse_if(spec.program == "printf" and programs.printf_words(arguments))
        places = [
            joined(base, word.text)
            for base in verdict.directories
            for word in arguments
            if word.glob
        ]
        list_globs(arguments, verdict)
        verdict.sensitive |= any(names_secret(place, glob=True) for place in places)
    elif spec.program == "test":
        refuse_if(
            any(word.unknown and word.split for word in arguments),
            "words that are only known when the line runs",
        )
        reason, files = programs.test_words(name, arguments)
        refuse_if(reason)
        for word in files:
            source = word.source if word.origin is None else word.origin
            if word.unknown and source is not None:
                _add_listed(Touch(_FOUND, "list", split=True), source, verdict)
            elif not (
                word.unknown and _BELOW.match(word.text)
            ):  # what is there tells next to nothing
                check_file(word, verdict, contents=False)
    elif spec.program == "find":
        _find(arguments, verdict)
    elif spec.program == "xargs":
        _xargs(arguments, command, verdict)
    elif spec.program == "command" and [word.text for word in arguments[:1] if not word.quoted] in (
        ["-v"],
        ["-V"],
    ):
        refuse_if(len(arguments) < 2 or any(word.glob for word in arguments), "glob")
    elif spec.program in ("command", "wrapper"):
        _wrapped(name, arguments, command, verdict)
    else:
        # A shell's -c: exactly one script, which the caller reads in turn.
        if (
            len(arguments) != 2
            or arguments[0].text != "-c"
            or arguments[1].glob
            or arguments[1].substitution
        ):
            raise Refused(f"{name} runs more than a literal script")
        verdict.script = arguments[1].text
        verdict.reason = f"{name} runs a script that only reads"


def _find(arguments: list[Word], verdict: Verdict) -> None:
    found = programs.find_words(arguments)
    refuse_if(found.reason)
    starts = found.starts or [Word(".", 0, 0)]
    links = not {"-L", "-follow"}.isdisjoint(word.text for word in arguments)
    for word in starts:
        check_file(
            word, verdict, recursive=links, contents=False, follow=links, names=found.file_names
        )
    for word in found.compared:
        check_file(word, verdict, contents=False)
    # The names alone show that a credential is looked for; the tree of a whole system or home holds
    # some.
    verdict.sensitive |= any(aims_at_secret(word.text) for word in found.names)
    places = [joined(directory, word.text) for directory in verdict.directories for word in starts]
    unlimited = not any(word.text.strip("*?") for word in found.names)
    verdict.sensitive |= bool(unlimited or found.commands) and any(map(wide_root, places))
    for words in found.commands:
        # a name that begins with a directory's is no assignment for awk
        named = not any(word.glob or "=" in word.text for word in starts)
        for touch, word in product(_of_files(words, verdict, awk=named), starts):
            reads = touch.operation == "read"
            names = () if touch.recursive else found.file_names
            follow = links or touch.recursive or "named"
            below = Touch(word.text, touch.operation, recursive=reads, names=names, follow=follow)
            verdict.touches.append(below)


def _xargs(arguments: list[Word], command: Simple, verdict: Verdict) -> None:
    """Proves ``xargs COMMAND`` for commands that no file name can be a harmful option of."""
    split, files = True, [Word("{}", 0, 0)]
    words = list(arguments)
    while words and words[0].text.startswith("-"):
        option = words.pop(0).text
        if option in ("-0", "--null"):
            split = False
        elif option == "-I{}":
            files = []
        elif option[:2] == "-n" and AMOUNT.match(
            option[2:] or (words.pop(0).text if words else "")
        ):
            continue
        elif option not in ("-r", "--no-run-if-empty"):
            raise Refused("xargs with options")
    pipeline = (
        [] if any("<" in redirect.operator for redirect in command.redirects) else command.input
    )
    if words and words[0].text == "git" and prints(pipeline, "hashes"):
        put = [replace(word, text=word.text.replace("{}", HASH)) for word in words]
        _prove_within(put if not files else [*put, Word(HASH, 0, 0)], verdict)
        return
    spec = read_only().get(base_name(words[0].text) if words else "echo")
    if spec is not None and spec.program == "echo" and not any(word.glob for word in words):
        return
    if spec is None or not spec.takes_files:
        raise Refused("xargs of a command that takes options")
    verdict.exposed |= not spec.glob_first
    refuse_if(not split and not ends_names_with_nul(pipeline), "xargs -0 of lines")
    for touch in _of_files([*words, *files], verdict):
        _add_listed(touch._replace(split=split), pipeline, verdict)


def _of_names(words: list[Word], unknown: list[Word], verdict: Verdict) -> None:
    """Proves a command among whose operands are names that pipelines print."""
    spec = read_only().get(base_name(words[0].text))
    if (
        spec is None
        or not spec.takes_files
        or spec.operands == "text"
        or any(w.source is None for w in unknown)
    ):
        raise Refused("word that is only known when the line runs")
    verdict.exposed |= not spec.glob_first
    named = [Word(_FOUND, 0, 0) if TEXT in word.text else word for word in words]
    for touch in _of_files(named, verdict):
        for source in {id(word.source): word.source for word in unknown}.values():
            _add_listed(touch._replace(split=True), source or [], verdict)


def _add_listed(
    touch: Touch, pipeline: list[Simple], verdict: Verdict, *, bare: bool = False
) -> None:
    """Adds the trees that a pipeline lists in the place of the names that it prints."""
    exposed = verdict.exposed and of_index(pipeline)
    judged = ((command, classify(command, verdict.directories)) for command in reversed(pipeline))
    sources = [] if exposed else listed_by(judged, bare=bare)
    verdict.complete = verdict.complete and bool(sources)
    deep = touch.recursive
    # without any name it reads the directory
    verdict.touches += [touch._replace(word=".", glob=False)] * deep
    # who is given the name of a link opens what it leads to
    listed = [
        one._replace(
            operation=touch.operation,
            recursive=True,
            names=() if deep else one.names,
            follow=deep or one.follow or "named",
            split=touch.split,
        )
        for one in sources
    ]
    verdict.touches = list(dict.fromkeys([*verdict.touches, *listed]))


def _of_files(words: list[Word], verdict: Verdict, *, awk: bool = False) -> list[Touch]:
    """Proves a command that gets ``{}`` for the names of files; returns what it does to those."""
    spec = read_only().get(base_name(words[0].text))
    only_text = spec is not None and spec.operands == "text" and spec.glob_first
    known = spec is not None and (only_text or spec.operands in ("paths", "pattern"))
    if (
        spec is None
        or spec.builtin
        or not known
        or spec.splits
        or spec.program == "cd"
        or (spec.program == "awk" and not awk)
    ):
        raise Refused("command for each file that is not known to only read")
    files = [touch for touch in _prove_within(words, verdict) if touch.word == "{}"]
    named = len(files) == sum("{}" in word.text for word in words)
    refuse_if(not (named or only_text), "name of a file as a pattern or option")
    return files


def _prove_within(words: list[Word], verdict: Verdict) -> list[Touch]:
    """Proves a command that another one runs; returns all that it touches, and adds what is no file
    of a list.
    """
    inner = Verdict(directories=verdict.directories, depth=verdict.depth + 1)
    _prove(Simple(words=words), inner)
    verdict.touches.extend(touch for touch in inner.touches if touch.word != "{}")
    verdict.repository = verdict.repository or inner.repository
    verdict.sensitive = verdict.sensitive or inner.sensitive
    return inner.touches


def _wrapped(name: str, arguments: list[Word], command: Simple, verdict: Verdict) -> None:
    """Proves the command behind ``env``, ``timeout``, ``nice`` or ``command``, without options that
    change more.
    """
    index = 0
    if name == "timeout":
        refuse_if(not arguments or not _DURATION.match(arguments[0].text), "timeout with options")
        index = 1
    elif (
        name == "nice"
        and len(arguments) > 1
        and arguments[0].text == "-n"
        and AMOUNT.match(arguments[1].text)
    ):
        index = 2
    elif name == "env" and not arguments:
        verdict.reason, verdict.sensitive = "env prints the environment", True
        return
    while (
        name == "env"
        and index < len(arguments) - 1
        and is_harmless_assignment(arguments[index].text)
    ):
        refuse_if(
            arguments[index].glob or arguments[index].unknown, "env with options or assignments"
        )
        index += 1
    inner = arguments[index:]
    if (
        not inner
        or inner[0].text.startswith("-")
        or "=" in inner[0].text
        or any(w.substitution for w in inner)
    ):
        raise Refused(f"{name} with options or assignments")
    moving = ("cd", "pushd", "popd", "[[", "type", "command", ":", "read", "for", "shopt")
    refuse_if(inner[0].text in moving, f"{name} in front of a builtin")
    verdict.depth += 1
    _prove(Simple(words=inner, input=command.input, redirects=command.redirects), verdict)


def _add_effects(command: Simple, verdict: Verdict) -> None:
    words = [word.text for word in command.words]
    verdict.script = script_of(words)
    verdict.touches = []
    effects_of(words, verdict)
    assigned = command.assignments
    if len(command.values) == len(assigned):  # CI=1 CI=./x assigns twice
        pairs = zip(assigned, command.values, strict=True)
        assigned = [name for name, text in pairs if not is_harmless_assignment(text)]
    describe(command.words, assigned, verdict)
    # PATH, LD_PRELOAD, PAGER and the like name what is run
    verdict.executes |= not all(map(is_harmless_variable, assigned))
    verdict.sensitive = verdict.sensitive or any(
        map(names_secret, surface_words(" ".join(command.values)))
    )
    for word in command.words[1:]:
        value = word.text.partition("=")[2] if word.text.startswith("-") else word.text
        verdict.sensitive |= (
            bool(value) and not word.substitution and names_secret(value, glob=word.glob)
        )


def _add_redirects(redirects: list[Redirect], verdict: Verdict) -> None:
    for redirect in redirects:
        target = redirect.target.text
        if redirect.operator == "<" and not verdict.read_only:
            verdict.touches.append(Touch(target, "read"))
        if redirect_writes(redirect.operator, target):
            append = redirect.operator in (">>", "&>>")
            verdict.touches.append(Touch(target, "append" if append else "overwrite"))
            verdict.destructive |= redirect.operator in (">", ">|", "&>", ">&")
            verdict.sensitive |= names_secret(target)
        if target.startswith(("/dev/tcp/", "/dev/udp/")):
            verdict.network = verdict.sensitive = True
