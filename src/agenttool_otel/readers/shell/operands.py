"""The words of a command that the tables describe: options, files, patterns and programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agenttool_otel.readers.shell.awk import awk_program
from agenttool_otel.readers.shell.braces import alternatives
from agenttool_otel.readers.shell.files import add_file
from agenttool_otel.readers.shell.find import narrowing
from agenttool_otel.readers.shell.jq import jq_program
from agenttool_otel.readers.shell.options import BEHIND_OPERAND, Option, read_words
from agenttool_otel.readers.shell.secrets import (
    aims_at_secret,
    asks_for_secret,
    names_secret,
    searches_secret,
)
from agenttool_otel.readers.shell.sed import sed_program
from agenttool_otel.readers.shell.syntax import Word
from agenttool_otel.readers.shell.tables import Spec, programs
from agenttool_otel.readers.shell.verdict import FileAccess, Follow, Refused, Tree, Verdict

PROGRAM_CHECKS: Final[dict[str, Callable[[str], str]]] = {
    "sed": sed_program,
    "awk": awk_program,
    "jq": jq_program,
}
"""The check of each small language."""

_MAY_NAME_RESPONSE_FILE: Final = frozenset("@*?[{")
_MAX_DIGITS: Final = 8
# a name in git's pathspecs is outside of the directory, or may be
_REVISION_SIGNS: Final = ("~", "^", ":", "@", "..")


def prove_words(spec: Spec, arguments: list[Word], verdict: Verdict) -> None:
    """Account for every word behind a command's name.

    Raises:
        Refused: the table does not account for a word.
    """
    if spec.response_files and any(w.text[:1] in _MAY_NAME_RESPONSE_FILE for w in arguments):
        raise Refused("file of further words")
    if not spec.glob_first and any(word.glob_first for word in arguments):
        verdict.names_may_be_options = True
    _WordsProof(spec, arguments, verdict).run()


def list_globs(words: list[Word], verdict: Verdict) -> None:
    """Add the names that globs among words without files match."""
    for word in words:
        if word.glob:
            verdict.accesses.append(FileAccess(word.text, "list", glob=True))


class _WordsProof:
    """Accounts for the words of one command."""

    def __init__(self, spec: Spec, arguments: list[Word], verdict: Verdict) -> None:
        self._spec = spec
        self._arguments = arguments
        self._verdict = verdict
        found, self._operands = read_words(spec, arguments)
        self._found = found
        self._options = {option.name for option in found}
        self._files: list[Word] = []
        self._patterns: list[Word] = []
        self._names: list[str] = []
        """Patterns of the names that are looked at."""

    def run(self) -> None:
        for option in self._found:
            if option.value is not None:
                self._option(option, option.value)
        if self._spec.operands == "revisions":
            self._check_revisions()
        else:
            self._sort_operands()
            self._check_files()

    def _option(self, option: Option, value: Word) -> None:
        self._refuse_wide(option.name, value.text)
        self._note_recursion(option.name, value.text)
        self._note_names(option.name, value.text)
        self._note_secret(option.name, value.text)
        self._use_value(option.name, value)

    def _refuse_wide(self, option: str, value: str) -> None:
        is_wide = value.lstrip("+-").isdigit() and len(value) > _MAX_DIGITS
        if is_wide and self._spec.operands != "revisions":
            raise Refused("width, or merges made again")
        # --diff-merges=remerge writes objects
        if option == "diff-merges" and value[:1] == "r":
            raise Refused("width, or merges made again")

    def _note_recursion(self, option: str, value: str) -> None:
        # grep --directories=recurse
        for row in self._spec.recursive:
            if "=" in row and f"{option}={value}".startswith(row):
                self._options.add(row)

    def _note_names(self, option: str, value: str) -> None:
        spec = self._spec
        names_files = option in spec.name_options
        # rg -g '!docs' only leaves out
        excludes = bool(spec.skips_hidden) and value.startswith("!")
        if names_files and not excludes:
            self._add_names(option, value)
        if not spec.skips_hidden:
            return
        is_type = option in ("t", "type")
        if is_type and value in programs()["rg"]["code"]:
            self._names.append(f"*.{value}")
        elif (is_type or names_files) and not excludes:
            # what is asked for by its name is looked at where it is hidden, too
            self._options.add("hidden")

    def _add_names(self, option: str, value: str) -> None:
        # --iglob matches in any case, which "narrowing" does not
        if option == "iglob":
            self._names.append("**")
        else:
            self._names.extend(alternatives(value))

    def _note_secret(self, option: str, value: str) -> None:
        if self._asks_for_secret(option, value):
            self._verdict.warnings.sensitive = True

    def _asks_for_secret(self, option: str, value: str) -> bool:
        """Whether a value chooses files or fields that hold credentials or the environment."""
        spec = self._spec
        # find . -name id_rsa
        if option in spec.name_options and aims_at_secret(value):
            return True
        # fd -e pem
        if option in spec.suffix_options and names_secret(f"x.{value}"):
            return True
        if spec.sensitive_value is not None and spec.sensitive_value.search(value):
            return True
        # git log -S 'BEGIN PRIVATE KEY'
        if spec.operands != "revisions" or option not in ("S", "G"):
            return False
        return searches_secret(value)

    def _use_value(self, option: str, value: Word) -> None:
        spec = self._spec
        if spec.operands == "revisions" and option in spec.path_options and option != "L":
            add_file(value, self._verdict)
        elif option in spec.path_options or option == BEHIND_OPERAND:
            self._files.append(value)
        elif option in spec.pattern_options:
            self._patterns.append(value)
        elif spec.program == "awk":
            # -F '|' and -v sep='|': no program, but some versions read escapes in it
            _refuse(awk_program(value.text.replace("|", "")))

    def _check_revisions(self) -> None:
        """Account for words that git takes for a revision, a file, or a file of a revision."""
        has_dashes = any(word.text == "--" for word in self._arguments)
        by_message = any(word.text.startswith(":/") for word in self._operands)
        if by_message and not has_dashes:
            raise Refused("commit that is looked for by its message")
        for word in self._operands:
            self._check_revision(word)
        for word in self._files:
            # git log -L '/def main/,+9:src/a.py'
            name = word.text.rpartition(":")[2]
            self._check_revision(Word(name, quoted=word.quoted, glob=word.glob))

    def _check_revision(self, word: Word) -> None:
        text = word.text
        # HEAD:.env
        name = text.rpartition(":")[2]
        if names_secret(name):
            self._verdict.warnings.sensitive = True
        outside = text.startswith(("/", "~", "..")) or "/.." in text
        has_sign = any(sign in text for sign in _REVISION_SIGNS)
        is_path = "/" in text and not has_sign
        if outside or word.glob or is_path:
            add_file(word, self._verdict)

    def _sort_operands(self) -> None:
        """Find out which operands are files, and check patterns and programs."""
        spec, operands = self._spec, self._operands
        self._check_operands()
        if spec.operands == "text":
            if any(names_secret(word.text) for word in operands):
                self._verdict.warnings.sensitive = True
            list_globs(operands, self._verdict)
        elif spec.operands == "paths":
            self._files.extend(operands)
        elif spec.operands == "pattern":
            self._sort_pattern()

    def _check_operands(self) -> None:
        spec = self._spec
        operands = self._operands
        pattern = spec.operand_pattern
        if pattern is not None and not all(pattern.fullmatch(word.text) for word in operands):
            raise Refused("operand")
        if spec.operands == "none" and operands:
            raise Refused("an operand")
        most = spec.max_operands
        if most is None:
            return
        if len(operands) > most:
            raise Refused("more operands")
        # "uniq *" may be "uniq a b", which writes b
        if most == 1 and any(word.glob for word in operands):
            raise Refused("more operands")

    def _sort_pattern(self) -> None:
        """Take the first operand for the pattern, unless an option gave it."""
        spec, operands = self._spec, self._operands
        if not self._options & spec.pattern_options:
            if not operands and spec.pattern_optional:
                return
            if not operands:
                raise Refused("no program or pattern")
            self._patterns.append(operands[0])
            if operands[0].glob:
                self._note_globbed_pattern(operands[0])
            operands = operands[1:]
        self._files.extend(operands)
        for word in self._patterns:
            self._check_pattern(word.text)
        if spec.program == "awk" and any("=" in word.text for word in self._files):
            raise Refused("assignment among the operands of awk")

    def _note_globbed_pattern(self, word: Word) -> None:
        if self._spec.program:
            raise Refused("glob as a program")
        self._verdict.accesses.append(FileAccess(word.text, "list", glob=True))

    def _check_pattern(self, text: str) -> None:
        spec, warnings = self._spec, self._verdict.warnings
        if spec.program not in PROGRAM_CHECKS and spec.suffix_options and aims_at_secret(text):
            warnings.sensitive = True
        if searches_secret(text) or (spec.program == "jq" and asks_for_secret(text)):
            warnings.sensitive = True
        if spec.program in PROGRAM_CHECKS:
            _refuse(PROGRAM_CHECKS[spec.program](text))

    def _check_files(self) -> None:
        """Account for the files that are read, and for the current directory by itself."""
        spec, verdict = self._spec, self._verdict
        files = [word for word in self._files if not self._only_leaves_out(word)]
        recursive = spec.always_recursive or bool(self._options & spec.recursive)
        if not files and (recursive or spec.lists_current):
            files = [Word(".")]
        enters = spec.program == "cd"
        for word in files:
            add_file(
                word,
                verdict,
                contents=not spec.describes and not enters,
                recursive=recursive,
                tree=self._tree(),
                splits_names=spec.splits,
            )
            if spec.opens and names_secret(word.text, glob=word.glob):
                verdict.warnings.sensitive = True
        if enters:
            self._enter(files)

    def _only_leaves_out(self, word: Word) -> bool:
        narrows = self._spec.narrows
        return narrows is not None and not word.glob and narrows.fullmatch(word.text) is not None

    def _tree(self) -> Tree:
        """What is read below a directory."""
        spec = self._spec
        options = self._options
        if options & spec.follows:
            # a link that is followed may have any name
            names = () if spec.skips_hidden else self._narrowed_names()
            return Tree(names=names, hidden=True, follow=Follow.ALL)
        hidden = not spec.skips_hidden or bool(options & spec.skips_hidden)
        return Tree(names=self._narrowed_names(), hidden=hidden, follow=Follow.NONE)

    def _narrowed_names(self) -> tuple[str, ...]:
        """Return patterns of the names that are read, or none where any is."""
        # GNU grep reads what matches neither where --exclude comes first
        if "exclude" in self._options:
            return ()
        return narrowing(self._names)

    def _enter(self, files: list[Word]) -> None:
        """Turn what ``cd`` names into a directory that is entered."""
        verdict = self._verdict
        if any(word.text == "-" for word in files):
            verdict.complete = False  # where the line came from is unknown
        entered = []
        for access in verdict.accesses:
            entered.append(access._replace(operation="enter"))
        verdict.accesses = entered
        if not files:
            verdict.accesses.append(FileAccess("~/", "enter"))


def _refuse(reason: str) -> None:
    if reason:
        raise Refused(reason)
