"""The proof that one simple command only reads.

Every word has to be accounted for by the tables, or there is no proof.
"""

from __future__ import annotations

import re

from agenttool_otel.readers.shell.actions import describe
from agenttool_otel.readers.shell.builtins import check_printf, tested_files
from agenttool_otel.readers.shell.devices import joined
from agenttool_otel.readers.shell.effects import (
    MAX_WRAPPERS,
    add_effects,
    base_name,
    is_harmless_assignment,
    is_harmless_variable,
    script_of,
)
from agenttool_otel.readers.shell.files import add_file
from agenttool_otel.readers.shell.find import find_words
from agenttool_otel.readers.shell.listing import (
    Pipeline,
    ends_names_with_nul,
    listed_by,
    lists_index,
)
from agenttool_otel.readers.shell.operands import list_globs, prove_words
from agenttool_otel.readers.shell.options import AMOUNT
from agenttool_otel.readers.shell.secrets import (
    aims_at_secret,
    names_secret,
    surface_words,
    wide_root,
)
from agenttool_otel.readers.shell.syntax import Redirect, Simple, Word
from agenttool_otel.readers.shell.tables import (
    Spec,
    effects,
    programs,
    read_only,
    with_commands,
)
from agenttool_otel.readers.shell.verdict import (
    START,
    FileAccess,
    Follow,
    Refused,
    Tree,
    Verdict,
)

# dir /s, type x /A:R
_CMD_SWITCH = re.compile(r"/[A-Za-z?](?::.*)?\Z")
# git log --format=%<(99999), which makes wide texts
_WIDE = re.compile(r"%[-+ #_^0]*[0-9]{5}|%\(align:[^)]*[0-9]{5}")
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?\Z")
# %GK and --sort=signature
_CHECKS_SIGNATURES = re.compile(r"%[-+ ]?G|(?:%|--sort[= ])\S*signature")
_FOUND = "{}"
"""What find and xargs replace by the name of a file."""

_PATH_INDEPENDENT_BUILTINS = ("[", "test", "echo", "printf")
"""Builtins that are also programs: ``/bin/echo``."""

_NOT_WRAPPED = frozenset(
    ("cd", "pushd", "popd", "[[", "type", "command", ":", "read", "for", "shopt")
)
"""What is no program, or does something else behind a wrapper."""


def classify(
    command: Simple,
    directories: tuple[str, ...] = START,
    pipeline: Pipeline = (),
) -> Verdict:
    """Judge one command.

    Args:
        command: the command.
        directories: the directories that it may run in, by the text of the line.
        pipeline: the commands that feed it.
    """
    verdict = Verdict(directories=directories)
    try:
        _Proof(command, verdict, pipeline).run()
        verdict.category = "reader"
        _check_redirects(command.redirects, verdict)
        verdict.read_only = True
    except Refused as refused:
        verdict.reason = str(refused)
    written = [redirect for redirect in command.redirects if redirect.writes]
    if verdict.category == "reader" and written:
        verdict.category = "writer"
        verdict.read_only = False
        verdict.reason = f"redirection {written[0].operator}"
    elif not verdict.read_only:
        _add_effects(command, verdict)
    _add_redirects(command.redirects, verdict)
    return verdict


def _check_redirects(redirects: list[Redirect], verdict: Verdict) -> None:
    for redirect in redirects:
        if redirect.operator == "<":
            add_file(redirect.target, verdict)
        elif redirect.operator == "<&":
            raise Refused(f"redirection {redirect.operator}")


class _Proof:
    """The proof of one command, in the place of which another one may stand behind a wrapper."""

    def __init__(self, command: Simple, verdict: Verdict, pipeline: Pipeline) -> None:
        self._command = command
        self._verdict = verdict
        self._pipeline = pipeline

    def run(self) -> None:
        """Prove that the command only reads, or raise ``Refused``."""
        command = self._command
        if self._verdict.wrappers > MAX_WRAPPERS:
            raise Refused("wrappers nested too deep")
        self._refuse_cmd_switches()
        if command.assignments:
            if not command.words:
                raise Refused("assignment")
            texts = [assignment.text for assignment in command.assignments]
            if not all(map(is_harmless_assignment, texts)):
                raise Refused("assignment before a command")
        if not command.words:
            raise Refused("redirection without a command")
        self._refuse_odd_name(command.words[0])
        name, spec, words = self._table_row()
        self._verdict.warnings.sensitive |= spec.sensitive
        self._prove_words(name, spec, words[1:])
        if not self._verdict.reason:
            self._verdict.reason = f"{name} only reads with these words"

    def _refuse_cmd_switches(self) -> None:
        words = self._command.words
        for word in words[1:]:
            if word.quoted or not _CMD_SWITCH.match(word.text):
                continue
            if base_name(words[0].text) in effects().lists["known"]:
                self._verdict.warnings.other_shell = True
            raise Refused("option of the Windows command interpreter")

    def _refuse_odd_name(self, first: Word) -> None:
        if first.glob:
            raise Refused("command name is not a plain word")
        if not first.quoted:
            return
        is_path = first.text != base_name(first.text)
        is_keyword = first.text in programs()["shell"]["keywords"]
        if is_path or is_keyword:
            raise Refused("command name is not a plain word")

    def _table_row(self) -> tuple[str, Spec, list[Word]]:
        """Return the command as the tables name it, its row, and its words from its name on."""
        words = self._command.words
        verdict = self._verdict
        name = base_name(words[0].text)
        if name == "set" and verdict.wrappers:
            raise Refused("builtin behind another command")
        if name in with_commands():
            name, words = self._sub_command(name, words)
            verdict.runs_git = name.startswith("git ")
            if verdict.runs_git:
                verdict.accesses.append(FileAccess(".", "list"))
        spec = read_only().get(name)
        if spec is None:
            raise Refused(f"{name[:60]!r} is not known to only read")
        has_path = "/" in self._command.words[0].text
        if spec.builtin and has_path and name not in _PATH_INDEPENDENT_BUILTINS:
            raise Refused("builtin with a path")
        return name, spec, words

    def _sub_command(self, name: str, words: list[Word]) -> tuple[str, list[Word]]:
        """Return the command of git and the like, and the words from its last one on."""
        texts = [word.text for word in words]
        start = self._behind_git_options(words) if name == "git" else 1
        if _CHECKS_SIGNATURES.search(" ".join(texts)):
            raise Refused("git that checks signatures")
        # git remote get-url origin
        two_words = " ".join([name, *texts[start : start + 2]])
        if two_words in read_only():
            return two_words, words[start + 1 :]
        one_word = " ".join([name, *texts[start : start + 1]])
        return one_word, words[start:]

    def _behind_git_options(self, words: list[Word]) -> int:
        """Return where git's sub-command stands, behind options that change nothing."""
        texts = [word.text for word in words]
        start = 1
        # git -C src log: Directories follows it there
        if texts[1:2] == ["-C"] and self._verdict.wrappers == 0:
            if any(word.glob for word in words[3:]):
                raise Refused("names of files for git elsewhere")
            start = 3
        # git -c color.ui=never log
        setting = " ".join(texts[start : start + 2])
        if setting in programs()["git"]["settings"]:
            start += 2
        following = texts[start : start + 1]
        if following in (["--no-pager"], ["-P"]):
            start += 1
        return start

    def _prove_words(self, name: str, spec: Spec, arguments: list[Word]) -> None:
        texts = [word.text for word in arguments]
        if any(map(_WIDE.search, texts)):
            raise Refused("width without a bound")
        if spec.operands == "version":
            options = ["--version"]
            for letter in spec.syntax.short:
                options.append(f"-{letter}")
            if len(texts) != 1 or texts[0] not in options:
                raise Refused(f"{name} is only known to print its version")
            self._verdict.reason = f"{name} prints its version"
        elif not spec.builtin and texts in (["--help"], ["--version"]):
            self._verdict.reason = f"{name} prints its help"
        elif spec.operands == "special":
            self._prove_special(name, spec, arguments)
        else:
            prove_words(spec, arguments, self._verdict)

    def _prove_special(self, name: str, spec: Spec, arguments: list[Word]) -> None:
        """Prove a command that reads its words in a way of its own."""
        if spec.program in ("echo", "printf"):
            if spec.program == "printf":
                check_printf(arguments)
            self._print(arguments)
        elif spec.program == "test":
            for word in tested_files(name, arguments):
                # that a file is there is hardly a secret
                add_file(word, self._verdict, contents=False)
        elif spec.program == "find":
            self._find(arguments)
        elif spec.program == "xargs":
            self._xargs(arguments)
        elif spec.program == "command" and _asks_for_command(arguments):
            if len(arguments) < 2 or any(word.glob for word in arguments):
                raise Refused("glob")
        elif spec.program in ("command", "wrapper"):
            self._wrapped(name, arguments)
        else:
            self._script(name, arguments)

    def _print(self, arguments: list[Word]) -> None:
        list_globs(arguments, self._verdict)
        for word in arguments:
            if not word.glob:
                continue
            # echo ~/.ssh/*
            for directory in self._verdict.directories:
                if names_secret(joined(directory, word.text), glob=True):
                    self._verdict.warnings.sensitive = True

    def _script(self, name: str, arguments: list[Word]) -> None:
        """Take the one script of ``sh -c``, which the caller reads in turn."""
        if len(arguments) != 2 or arguments[0].text != "-c" or arguments[1].glob:
            raise Refused(f"{name} runs more than a literal script")
        self._verdict.script = arguments[1].text
        self._verdict.reason = f"{name} runs a script that only reads"

    def _find(self, arguments: list[Word]) -> None:
        verdict = self._verdict
        found = find_words(arguments)
        starts = found.starts or [Word(".")]
        follows = any(word.text in ("-L", "-follow") for word in arguments)
        tree = Tree(names=found.file_names, follow=Follow.ALL if follows else Follow.NONE)
        for word in starts:
            add_file(word, verdict, contents=False, recursive=follows, tree=tree)
        for word in found.compared:
            add_file(word, verdict, contents=False)
        # The names alone show that a credential is looked for; the tree of a whole system or home
        # holds some.
        if any(aims_at_secret(word.text) for word in found.names):
            verdict.warnings.sensitive = True
        any_name = not any(word.text.strip("*?") for word in found.names)
        if (any_name or found.commands) and self._starts_wide(starts):
            verdict.warnings.sensitive = True
        # a name that begins with a directory's is no assignment for awk
        for_awk = not any(word.glob or "=" in word.text for word in starts)
        for words in found.commands:
            for access in self._accesses_of_files(words, for_awk=for_awk):
                for start in starts:
                    verdict.accesses.append(_below(start, access, tree))

    def _starts_wide(self, starts: list[Word]) -> bool:
        for directory in self._verdict.directories:
            if any(wide_root(joined(directory, word.text)) for word in starts):
                return True
        return False

    def _xargs(self, arguments: list[Word]) -> None:
        """Prove ``xargs COMMAND`` for commands that no file name can be a harmful option of."""
        options = _XargsOptions(list(arguments))
        words = options.words
        spec = read_only().get(base_name(words[0].text) if words else "echo")
        if spec is not None and spec.program == "echo" and not any(word.glob for word in words):
            return
        if spec is None or not spec.takes_files:
            raise Refused("xargs of a command that takes options")
        verdict = self._verdict
        if not spec.glob_first:
            verdict.names_may_be_options = True
        pipeline = () if self._command.reads_redirect else self._pipeline
        if not options.splits and not ends_names_with_nul(pipeline):
            raise Refused("xargs -0 of lines")
        files = [] if options.replaces else [Word(_FOUND)]
        for access in self._accesses_of_files([*words, *files]):
            self._add_listed(access._replace(splits_names=options.splits), pipeline)

    def _add_listed(self, access: FileAccess, pipeline: Pipeline) -> None:
        """Add the trees that a pipeline lists in the place of the names that it prints."""
        verdict = self._verdict
        exposed = verdict.names_may_be_options and lists_index(pipeline)
        listed = [] if exposed else listed_by(pipeline)
        if not listed:
            verdict.complete = False
        found = list(verdict.accesses)
        if access.tree is not None:
            # grep -r without any name reads the directory
            found.append(access._replace(path=".", glob=False))
        for source in listed:
            tree = _opened_tree(source.tree or Tree(), deep=access.tree is not None)
            found.append(
                source._replace(
                    operation=access.operation,
                    tree=tree,
                    splits_names=access.splits_names,
                )
            )
        verdict.accesses = list(dict.fromkeys(found))

    def _accesses_of_files(self, words: list[Word], *, for_awk: bool = False) -> list[FileAccess]:
        """Prove a command that gets ``{}`` for the names of files.

        Returns what it does to those files, and adds all else to the verdict.
        """
        name = base_name(words[0].text)
        spec = read_only().get(name)
        if spec is None or not _takes_names(spec):
            raise Refused("command for each file that is not known to only read")
        if spec.program == "awk" and not for_awk:
            raise Refused("command for each file that is not known to only read")
        verdict = self._verdict
        inner = Verdict(directories=verdict.directories, wrappers=verdict.wrappers + 1)
        _Proof(Simple(words=words), inner, ()).run()
        files = []
        for access in inner.accesses:
            if access.path == _FOUND:
                files.append(access)
            else:
                verdict.accesses.append(access)
        verdict.runs_git |= inner.runs_git
        verdict.complete &= inner.complete
        # find . -exec sort *.py {} +, beside a file "-o.py"
        verdict.names_may_be_options |= inner.names_may_be_options
        verdict.warnings.sensitive |= inner.warnings.sensitive
        # grep {} a.py takes a name for a pattern, which may be an option
        placeholders = sum(_FOUND in word.text for word in words)
        if len(files) != placeholders and not _only_prints(spec):
            raise Refused("name of a file as a pattern or option")
        return files

    def _wrapped(self, name: str, arguments: list[Word]) -> None:
        """Prove the command behind ``env``, ``timeout``, ``nice`` or ``command``."""
        if name == "env" and not arguments:
            self._verdict.reason = "env prints the environment"
            self._verdict.warnings.sensitive = True
            return
        start = _end_of_wrapper(name, arguments)
        inner = arguments[start:]
        if not inner:
            raise Refused(f"{name} with options or assignments")
        first = inner[0].text
        if first.startswith("-") or "=" in first:
            raise Refused(f"{name} with options or assignments")
        if first in _NOT_WRAPPED:
            raise Refused(f"{name} in front of a builtin")
        self._verdict.wrappers += 1
        command = Simple(words=inner, redirects=self._command.redirects)
        _Proof(command, self._verdict, self._pipeline).run()


class _XargsOptions:
    """The options in front of the command that xargs runs."""

    def __init__(self, words: list[Word]) -> None:
        self.words = words
        """The command."""
        self.splits = True
        """Names are split at blanks, for lack of ``-0``."""
        self.replaces = False
        """``{}`` stands among the words, for ``-I{}``."""
        while words and words[0].text.startswith("-"):
            self._read(words.pop(0).text)

    def _read(self, option: str) -> None:
        if option in ("-0", "--null"):
            self.splits = False
        elif option == "-I{}":
            self.replaces = True
        elif option.startswith("-n"):
            amount = option[2:]
            # xargs -n 1 grep x
            if not amount and self.words:
                amount = self.words.pop(0).text
            if not AMOUNT.match(amount):
                raise Refused("xargs with options")
        elif option not in ("-r", "--no-run-if-empty"):
            raise Refused("xargs with options")


def _asks_for_command(arguments: list[Word]) -> bool:
    """Whether it is ``command -v NAME``."""
    if not arguments or arguments[0].quoted:
        return False
    return arguments[0].text in ("-v", "-V")


def _takes_names(spec: Spec) -> bool:
    """Whether a program may be given the names of files that another one finds."""
    if spec.builtin or spec.splits or spec.program == "cd":
        return False
    if _only_prints(spec):
        return True
    return spec.operands in ("paths", "pattern")


def _only_prints(spec: Spec) -> bool:
    """Whether names of files are no more than text to a program: ``basename {}``."""
    return spec.operands == "text" and spec.glob_first


def _below(start: Word, access: FileAccess, tree: Tree) -> FileAccess:
    """Return what a command does to the files that find finds below a directory."""
    if access.operation != "read":
        return FileAccess(start.text, access.operation)
    if access.tree is not None:
        return FileAccess(start.text, "read", tree=Tree(follow=Follow.ALL))
    # who is given the name of a link opens what it leads to
    follow = Follow.ALL if tree.follow is Follow.ALL else Follow.NAMED
    return FileAccess(start.text, "read", tree=Tree(names=tree.names, follow=follow))


def _opened_tree(tree: Tree, *, deep: bool) -> Tree:
    """Return how a tree is read by a command that is given the names of its files."""
    if deep:
        return tree._replace(names=(), follow=Follow.ALL)
    follow = Follow.ALL if tree.follow is Follow.ALL else Follow.NAMED
    return tree._replace(follow=follow)


def _end_of_wrapper(name: str, arguments: list[Word]) -> int:
    """Return where the command behind a wrapper begins."""
    texts = [word.text for word in arguments]
    if name == "timeout":
        if not texts or not _DURATION.match(texts[0]):
            raise Refused("timeout with options")
        return 1
    if name == "nice" and texts[:1] == ["-n"] and len(texts) > 1 and AMOUNT.match(texts[1]):
        return 2
    index = 0
    if name == "env":
        while index < len(texts) - 1 and is_harmless_assignment(texts[index]):
            if arguments[index].glob:
                raise Refused("env with options or assignments")
            index += 1
    return index


def _add_effects(command: Simple, verdict: Verdict) -> None:
    """Add what is known of a command that is not proven to only read."""
    warnings = verdict.warnings
    verdict.script = script_of(command.texts)
    verdict.accesses = []
    add_effects(command.texts, warnings)
    # CI=1 CI=./x assigns twice
    assigned = []
    for assignment in command.assignments:
        if not is_harmless_assignment(assignment.text):
            assigned.append(assignment.name)
    describe(command.words, assigned, verdict)
    # PATH, LD_PRELOAD, PAGER and the like name what is run
    if not all(map(is_harmless_variable, assigned)):
        warnings.executes = True
    values = " ".join(assignment.text for assignment in command.assignments)
    if any(map(names_secret, surface_words(values))):
        warnings.sensitive = True
    for word in command.words[1:]:
        value = word.text
        # --key-file=id_rsa
        if value.startswith("-"):
            value = value.partition("=")[2]
        if value and names_secret(value, glob=word.glob):
            warnings.sensitive = True


def _add_redirects(redirects: list[Redirect], verdict: Verdict) -> None:
    warnings = verdict.warnings
    for redirect in redirects:
        target = redirect.target.text
        if redirect.operator == "<" and not verdict.read_only:
            verdict.accesses.append(FileAccess(target, "read"))
        if redirect.writes:
            operation = "append" if redirect.appends else "overwrite"
            verdict.accesses.append(FileAccess(target, operation))
            warnings.destructive |= redirect.truncates
            warnings.sensitive |= names_secret(target)
        if redirect.connects:
            warnings.network = warnings.connects = True
            warnings.sensitive = True
