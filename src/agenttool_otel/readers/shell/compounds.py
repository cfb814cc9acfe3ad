"""Commands within commands: ``if``, ``case``, loops, groups, ``$( )``, and the variables that a
line sets.

The commands of a loop over words are read once for each word, with the word in the variable's
place. What a variable stands for is forgotten where it is not sure: behind a loop, a subshell, and
a list in which it may not have been set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from agenttool_otel.readers.shell.tables import (
    HASH,
    NUMBER,
    TEXT,
    effects,
    ends_names_with_nul,
    prints,
    programs,
)
from agenttool_otel.readers.shell.words import VARIABLE, Word, WordReader, may_be_set, unproven_if

MAX_COMMANDS = 50
"""Simple commands in one line; more than a person would check are not read (a public tool skipped
its rules there).
"""

REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|()(&>>|&>)")
OPENS = re.compile(r"(?:if|for|while|case|\{)(?=[ \t\n])|\((?!\()")
MOVES = ("cd", "pushd", "popd")
"""Commands with which a shell goes to another directory."""

_MAX_LOOPS = 2
_FOR = re.compile(rf"for[ \t]+({VARIABLE})[ \t]+in(?=[ \t])", re.ASCII)
_DO = re.compile(r"[ \t]*[;\n][ \t\n]*do(?=[ \t\n])")
_IN = re.compile(r"[ \t\n]+in(?=[ \t\n])")
_ESAC = re.compile(r"[ \t\n]*esac(?=[ \t\n;|&)<>]|\Z)")
_NO_COMMANDS = re.compile(r"[ \t\n]*;;")
_PATTERN = (
    r"(?:[\w.*?/:+,-]|\\[#*?.+]|\[!?[\w.-]+\]|\"[\w .*?/:+,@{}<>=#%-]*\"|'[\w .*?/:+,@{}<>=#%-]*')+"
)
_PATTERNS = re.compile(
    rf"[ \t\n]*\(?[ \t]*(?!esac\b){_PATTERN}(?:[ \t]*\|[ \t]*{_PATTERN})*[ \t]*\)", re.ASCII
)
_FUNCTION = re.compile("[a-z][a-z0-9_]*")
_DEFINES = re.compile(r"\(\)[ \t\n]*(?=\{[ \t\n])")
_TAKES = re.compile(
    rf"read(?: -r)?((?: (?:{VARIABLE}|_))+)|(?:mapfile|readarray) -t ({VARIABLE})|read (?:-r )?-r?a ({VARIABLE})",
    re.A,
)
_FED_LOOP = re.compile(r"\bdone[ \t]*<[ \t]*(?=<\()")
_READ = re.compile(
    rf"[ \t]+(IFS=\S{{0,5}}[ \t]+)?read([ \t]+(-r|-d[ \t]+''|{VARIABLE}|_))*[ \t]*[;\n]", re.ASCII
)


class Redirect(NamedTuple):
    """One redirection: ``fd`` as written (may be empty), operator, target word (delimiter of a
    heredoc).
    """

    fd: str
    operator: str
    target: Word


@dataclass(slots=True)
class Simple:
    """One simple command, with the names that it assigns before its first word, and ``name=value``
    as written.
    """

    words: list[Word] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    # what stands before it: && || ; | or <( for the first command of a substitution
    joint: str = ""
    # numbers of the subshells and compounds that it stands in, outermost first
    group: tuple[int, ...] = ()
    # those in front of it in its pipeline
    input: list[Simple] = field(default_factory=list, compare=False)
    # by directories, once judged
    verdicts: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False)
    # of the first one: what the line holds besides plain commands of literal words
    construct: str = ""
    local: bool = False  # sets variables that only the line itself looks at


class CompoundReader(WordReader):
    """Reads one command after the other; how commands are joined is for its heir to say."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.commands: list[Simple] = []
        self.group: tuple[int, ...] = ()
        self.barred = frozenset({"read"})  # programs that would change what is known of the shell
        self.own: set[str] = set()  # variables that the compound at hand has set
        self.last: Simple | None = None  # the command before, where it is a simple one
        self._joint = ""
        self._groups = 0
        self._loops = 0
        self._lost: set[str] = set()  # variables of loops that have ended
        self._functions: dict[str, int] = {}  # where their bodies begin
        self._counters: set[str] = set()  # variables that were set to another number
        # variables that are set only where what stands before them succeeds
        self._chained: list[str] = []

    def statements(self, *ends: str) -> str:
        """Reads a list up to one of the words that end it, which it returns; an empty one is the
        end of the text.
        """
        raise NotImplementedError

    def redirect(self, command: Simple, match: re.Match[str]) -> list[Simple]:
        """Reads a redirection; returns the pipeline that it takes its input from, where it
        is one.
        """
        raise NotImplementedError

    def join(self, joint: str) -> None:
        """Goes on to the next command."""
        self._joint = joint
        if joint != "&&":
            for name in self._chained:
                self.variables.pop(name, None)
            self._chained = []
        unproven_if(joint == "|" and self.last is not None and self.last.local, "assignment")

    def simple(self) -> Simple:
        """Begins a simple command."""
        unproven_if(len(self.commands) >= MAX_COMMANDS, "too_many_commands")
        command = Simple(joint=self._joint, group=self.group, input=self._fed())
        self.commands.append(command)
        return command

    def _fed(self) -> list[Simple]:
        last = self.last
        piped = last is not None and self._joint == "|" and last.group == self.group
        return [*last.input, last] if last is not None and piped else []

    def value(self, command: Simple, match: re.Match[str]) -> Word:
        """Reads an assignment."""
        self.pos, self.assigning = match.end(), True
        value = self._array() if self._peek() == "(" else self._word()
        self.assigning = False
        command.assignments.append(match[1])
        command.values.append(
            match[0] + (value.text if value.elements is None else self.text[match.end() : self.pos])
        )
        return value

    def _array(self) -> Word:
        """Reads the words of an array."""
        start, elements, self.assigning = self.pos, list[Word](), False
        self.pos += 1
        while True:
            self._blanks()
            before = self.pos
            if self._peek() == ")":
                self.pos += 1
                return Word(TEXT, start, self.pos, elements=elements)
            elements += self._words(loop=True)
            unproven_if(
                self.pos == before or any(word.text[:1] == "[" or word.here for word in elements),
                "assignment",
            )
            # braces are kept as they stand, too, and an option in front would be taken to belong to
            # them
            unproven_if(
                any(w.text[:1] == "-" for w in elements) and any("{" in w.text for w in elements),
                "brace",
            )

    def assign(self, command: Simple, assigned: dict[str, Word]) -> None:
        """Takes in what a command assigns that does nothing else, where it is sure to do so."""
        surely = command.joint in ("", ";")
        again = {
            n
            for n in assigned
            if n in self.variables and not (surely and (n in self.own or not self.group))
        }
        alike = {
            n
            for n in again
            if any(self.variables[n].kind == assigned[n].kind == kind for kind in (NUMBER, HASH))
        }
        # What stands before a counter in its loop must not have been read with the number of the
        # first turn.
        counters = {
            n for n in alike if n in self.own or not self._loops or self.variables[n].unknown
        }
        kept = self.group and again - counters - self.own
        plain = not (
            kept or any((w.glob and not w.one) or w.text[:1] == "~" for w in assigned.values())
        )
        named = all(
            re.fullmatch(VARIABLE, name, re.ASCII) and may_be_set(name) for name in assigned
        )
        sure = (
            surely
            or command.joint == "&&"
            or (command.joint == "||" and counters == assigned.keys())
        )
        if plain and named and sure:
            command.local, self.construct = True, self.construct or "assignment"
            self.variables.update(assigned)
            self.made.update(dict.fromkeys(assigned, self.moves))
            self._count(counters)
            self._counters |= counters
            self._lost.difference_update(assigned)
            self.own.update(assigned.keys() - counters)
            self._chained += assigned.keys() - counters if command.joint == "&&" else ()

    def nested(self, read: Callable[[], object], *barred: str) -> None:
        """Reads what stands in a shell of its own, or a compound, of which nothing is known behind
        it either.
        """
        outer = (self.group, self.barred, self.variables, self._chained, self.assigning, self.own)
        self._groups += 1
        self.group = (*self.group, self._groups)
        self.barred = self.barred.difference(MOVES) | {"read", *barred}
        self.variables, self._chained, self.assigning, self.own = (
            dict(self.variables),
            [],
            False,
            set(),
        )
        read()
        self._lost |= self.own
        self.group, self.barred, self.variables, self._chained, self.assigning, self.own = outer
        self.last = None
        for name in self._lost:
            self.variables.pop(name, None)
        self._count(self._counters & self.variables.keys())

    def _count(self, names: Iterable[str]) -> None:
        """Leaves open which number, or name of a commit, variables hold that hold one, or
        nothing.
        """
        kinds = {name: self.variables[name].kind for name in names}
        self.variables.update({name: Word(kind, 0, 0) for name, kind in kinds.items() if kind})

    def define(self, command: Simple) -> None:
        """Takes in a function, whose commands are read at each of its calls."""
        name = (
            command.words[0].text if len(command.words) == 1 and not command.words[0].quoted else ""
        )
        known = (
            name
            in effects().lists["known"] | effects().wrappers.keys() | programs()["shell"]["never"]
        )
        surely = command.joint in ("", ";") and not (
            self.group or command.assignments or command.redirects
        )
        unproven_if(
            known or name in self._functions or not (surely and _FUNCTION.fullmatch(name)),
            "function",
        )
        self._take(_DEFINES, "function")
        self.construct, start, first = self.construct or "function", self.pos, len(self.commands)
        self.nested(partial(self._body, start, [Word("x", 0, 0)] * 9), *MOVES)
        del self.commands[first - 1 :]
        self._functions[name], self.last = start, Simple(local=True)

    def call(self, command: Simple) -> None:
        """Reads what a function does in the place of its call; what calls itself finds no function
        of its name.
        """
        name, *words = command.words
        moving = len({word.start for word in words}) < len(words) or any(
            w.here or w.moves for w in words
        )
        unproven_if(moving or command.assignments, "function")
        command.local, behind, start = True, self.pos, self._functions.pop(name.text)
        self.nested(partial(self._body, start, words), *MOVES)
        self.pos, self._functions[name.text] = behind, start

    def _body(self, start: int, words: list[Word]) -> None:
        unproven_if(self.heredocs or any(word.substitution for word in words), "function")
        values = {str(n): replace(word, one=True) for n, word in enumerate(words[:9], start=1)}
        outside = {
            name: value
            for name, value in self.variables.items()
            if not (name.isdigit() or name == "@")
        }
        self.variables = outside | values | {"@": Word(TEXT, 0, 0, elements=list(values.values()))}
        self.made.update(dict.fromkeys([*values, "@"], self.moves))
        self.pos = start
        self._group("}")

    def sets(self, command: Simple) -> None:
        """Takes in what ``read`` or ``mapfile`` set from what the line itself gives them; ``cd`` is
        given nothing.
        """
        # what feeds it is read before it moves, and judged behind it here
        moves = bool(command.words) and command.words[0].text in MOVES
        unproven_if(
            moves and any("<" in redirect.operator for redirect in command.redirects), "redirection"
        )
        matched = _TAKES.fullmatch(
            " ".join("'" if w.quoted or w.expanded else w.text for w in command.words)
        )
        given = [(r.fd, r.operator) in (("", "<"), ("", "<<<")) for r in command.redirects]
        known = matched is not None and self.variables.keys() & matched.groups()
        if not matched or known or given != [True] or command.assignments not in ([], ["IFS"]):
            return
        text = Word(TEXT, 0, 0, one=True)
        lines = replace(
            text, one=False, split=True, quoted=True, source=command.redirects[0].target.source
        )
        names = {name: text for name in (matched[1] or "").split() if name != "_"}
        fields = [lines if matched[2] else replace(lines, source=None)]
        self.assign(command, names or {matched[2] or matched[3]: replace(text, elements=fields)})

    def _substitution(self, skip: int = 1) -> list[Simple] | None:
        unproven_if(self.heredocs and skip == 1, "heredoc")
        joint, last, first = self._joint, self.last, len(self.commands)
        self.pos += skip
        self._joint = "<("
        self.nested(lambda: self.statements(")"))
        self._joint, self.last = joint, last
        inner = self.commands[first:]
        pipeline = [*inner[-1].input, inner[-1]]
        return pipeline if inner == pipeline else None

    def compound(self, kind: str) -> None:
        """Reads a group, an ``if``, a ``case`` or a loop with its redirections."""
        group, loops = kind in "({", kind in ("for", "while")
        self.construct = self.construct or ("" if group else "keyword")
        first, fed = len(self.commands), self._fed()
        lines = list(fed)  # the pipeline whose lines a loop reads
        foreseen: list[str] = []  # of which kinds they are taken to be, before it was read
        self._loops += loops
        unproven_if(self._loops > _MAX_LOOPS, "too_deep")
        # its body begins behind the next line break, whatever that stands in
        unproven_if(self.heredocs, "heredoc")
        read: Callable[[], object] = partial(self._group, ")" if kind == "(" else "}")
        if not group:
            read = {"if": self._if, "for": self._for, "case": self._case}.get(
                kind, partial(self._while, lines, foreseen)
            )
        self.nested(read, *MOVES * (kind != "("), *["sleep"] * loops)
        self._loops -= loops
        inputs = 0
        while True:
            self._blanks()
            unproven_if(inputs > 1, "redirection")  # only the last one is read
            if (match := REDIRECT.match(self.text, self.pos)) is None:
                unproven_if(foreseen and not prints(lines, *foreseen), "keyword")
                return
            unproven_if("<" in (match[2] or "") and (fed or match[2] == "<<"), "redirection")
            inputs += "<" in (match[2] or "")
            lines += self.redirect(self.commands[first], match)

    def _group(self, end: str) -> None:
        self.pos += 1
        self.statements(end)

    def _case(self) -> None:
        head = self.simple()
        head.words.append(Word("case", self.pos, self.pos + 4))
        self.pos += 4
        self._blanks()
        self.assigning = True
        head.words.append(self._word())
        self.assigning = False
        self._take(_IN, "keyword")
        end = ";;"
        while end == ";;":
            self.join(";")
            if self._try(_ESAC):
                return
            self._take(_PATTERNS, "keyword")
            self._forget()
            if not self._try(_NO_COMMANDS):
                end = self.statements(";;", "esac")

    def _forget(self) -> None:
        """Another branch, or turn of a loop, begins: what the one before has set may not be."""
        for name in self.own:
            self.variables.pop(name, None)

    def _if(self) -> None:
        self.pos += 2
        end = "elif"
        while end == "elif":
            self.statements("then")
            self._forget()
            end = self.statements("elif", "else", "fi")
            self._forget()
        if end == "else":
            self.statements("fi")

    def _for(self) -> None:
        start, head = self.pos, self.simple()
        name = self._take(_FOR, "keyword")[1]
        head.words.append(Word("for", start, start + 3))
        while not (begins := _DO.match(self.text, self.pos)):
            self._blanks()
            start = self.pos
            words = self._words(loop=True)
            unproven_if(
                self.pos == start or any(word.here or word.text[:1] == "~" for word in words),
                "keyword",
            )
            head.words += words
        for word in head.words[1:]:
            self.pos = begins.end()
            self.join(";")
            counts = prints(word.source, "number", "numbers")
            self._loop(
                {name: Word(NUMBER, 0, 0) if counts else replace(word, one=True, split=False)}
            )
        unproven_if(not head.words[1:], "keyword")

    def _while(self, lines: list[Simple], foreseen: list[str]) -> None:
        self.pos += len("while")
        unproven_if(not _READ.match(self.text, self.pos), "keyword")
        first = len(self.commands)
        self.barred -= {"read"}
        self.statements("do")
        self.barred |= {"read"}
        head = self.commands[first]
        unproven_if(len(self.commands) > first + 1 or head.redirects, "keyword")
        texts = [word.text for word in head.words[1:]]
        taken = [text for text in texts if text not in ("-r", "-d", "")]
        separator = head.values[0].partition("=")[2] if head.values else " "
        head.assignments, head.values = [], []
        fed = lines or self._foresee()
        kinds = (
            {NUMBER: ["number", "numbers"], HASH: ["hashes", "revisions"]}
            if taken == texts[-1:] and "-d" not in texts
            else {}
        )
        if len(taken) > 1 and texts[0] in ("-r", taken[0]):
            kinds = {HASH: [f"commit{separator}"]}
        known = len(taken) == 1 and ("-d" not in texts or ends_names_with_nul(lines))
        values = dict.fromkeys(taken, Word(TEXT, 0, 0, one=True, source=lines if known else None))
        for mark, of in kinds.items():
            if prints(fed, *of):
                values[taken[0]] = Word(mark, 0, 0)
                foreseen += of
                break
        values.pop("_", None)
        self._loop(values)

    def _foresee(self) -> list[Simple]:
        """Reads what the end of a loop feeds it."""
        if (end := _FED_LOOP.search(self.text, self.pos)) is None:
            return []
        here, first, self.pos = self.pos, len(self.commands), end.end()
        source = self._substitution(skip=2)
        del self.commands[first:]
        self.pos = here
        return source or []

    def _loop(self, values: dict[str, Word]) -> None:
        self._forget()
        names = values.keys()
        # A variable from outside of the loop around this one would be another one in the next turn
        # of that.
        changed = self._loops > 1 and any(name in self.variables for name in names)
        unproven_if(changed or not all(map(may_be_set, names)), "keyword")
        self._count(
            name for name in self.variables if len(re.findall(rf"\b{name}\+?=", self.text)) > 1
        )
        self.variables.update(values)
        self.made.update(dict.fromkeys(names, self.moves))
        self.own.update(names)
        self._lost.difference_update(names)
        self.statements("done")
        self._lost.update(names)
