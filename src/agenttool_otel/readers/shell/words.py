"""The words of a command line: quotes, escapes and globs, as far as every shell reads them
in one way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from agenttool_otel.readers.shell.tables import HASH, NUMBER, TEXT, lists_folder, prints, programs

if TYPE_CHECKING:
    from agenttool_otel.readers.shell.compounds import Simple

_PLAIN = re.compile(r"[A-Za-z0-9_./,:@%+=-]+")
_REVISION = re.compile(
    r"(?:(?<=[\w^}])\^(?:\{[a-z]*\})?|(?<=@)\{[\w-]+\})(?=[0-9^~:.\s;&|)]|\Z)", re.ASCII
)
_EQUALS = re.compile(r"==?")
_ESCAPABLE = frozenset("().*;?[]!|+$/- {}^\"'<>&#~,:=@%")
WORD_ENDS = frozenset((*" \t\n;&|()<>", ""))

# Lower case, so that no program looks for it, or capitals that ``may_be_set`` knows; zsh's own
# parameters, which do more than hold a value, are left out. What follows must be no subscript and
# none of the modifiers of zsh.
VARIABLE = (
    r"(?!(?:path|[cfm]\w*path|fignore|psvar|argv|prompt\d?|hist\w*|signals|watch\w*|options|zsh_\w*|dis_\w*|ps_\w*|nameddirs|userdirs"
    r"|\w*(?:aliases|functions|commands|stack|parameters|modules|builtins|reswords|chars|terms|pipestatus)|mapfile|match|mbegin|mend|MATCH|MBEGIN|MEND)\b)"
    r"(?:[a-z]\w*|[A-Z][A-Z0-9_]*)(?![\w\x80-\U0010ffff])"
)
_VARIABLE = re.compile(
    rf"(?:(?P<number>\?|#(?!\w)|\{{#{VARIABLE}(?:\[@\])?\}})"
    rf"|\{{(?P<cut>{VARIABLE})(?:(?:##?|%%?)[\w.*/-]*|(?::[0-9]+){{1,2}}"
    rf"|//?(?:[\w.*-]|\\[/\"])+/[\w.-]*|:-[\w./?+,:@% -]*)\}}"
    rf"|\{{(?P<element>{VARIABLE})\[(?:[0-9]|\$?(?P<index>{VARIABLE}))\]\}}"
    rf"|(?P<open>\{{)?(?P<name>{VARIABLE}|[1-9](?![0-9]))(?(open)\}}))(?:(?<=\}})|(?!\[|:[&aAcefFghlPqQrstuwW]))",
    re.ASCII,
)
_ARRAY = re.compile(
    rf'(")?\$(?:\{{(?P<keys>!)?({VARIABLE})\[@\](?P<slice>(?::[0-9]+){{1,2}})?\}}|(?<="\$)@)(?(1)")'
    r"(?=[ \t\n;&|()<>]|\Z)",
    re.ASCII,
)
_CUT_SUFFIX = re.compile(r"%[\w.-]+\}\Z")
_FOLDER = re.compile(r"\w[^*?\[]*/")
_ONE_LINE = re.compile(r"(?:head|tail) -(?:n ?)?1")
_OR_NUMBER = re.compile(r":-[0-9]+\}\Z")
_UNSPLIT = {
    False: re.compile(r"[A-Za-z0-9_./,:@%+={}-]+"),
    True: re.compile(r"[A-Za-z0-9_./,:@%+={}*?\[\]-]+"),
}
_MARKS = str.maketrans("", "", TEXT + NUMBER + HASH)
_BRACES = re.compile(r"\{(?:[\w./+-]*(?:,[\w./+-]*)+|[0-9]{1,4}\.\.[0-9]{1,4})\}", re.ASCII)
_MARKED = re.compile("\2([^\3]*)\3")
_MAX_WORDS = 64
_MAX_COUNTED = 10
# In arithmetic a name's value is an expression in turn: only numbers, and names that stand for
# them.
_TERM = re.compile(
    rf"[ \t]+|[0-9]+(?![\w#.])|\$\((?P<inner>)|\$\?|\$\{{#{VARIABLE}(?:\[@\])?\}}"
    rf"|\$?(?P<open>(?<=\$)\{{)?(?P<name>{VARIABLE})(?(open)(?::-[0-9]+)?\}})(?![ \t]*[(\[])"
    r"|\+(?!\+)|-(?!-)|\*\*?|[<>=!]=|[/%<>!&|?:^~()]",
    re.ASCII,
)


_COUNT = re.compile(rf"[0-9]+|{NUMBER}")


class Unproven(Exception):
    """The text holds a construct outside the part that can be read in only one way."""

    def __init__(self, construct: str) -> None:
        super().__init__(construct)
        self.construct = construct


def unproven_if(doubt: object, construct: str) -> None:
    """Ends the proof of the line when there is a doubt."""
    if doubt:
        raise Unproven(construct)


@dataclass(slots=True)
class Word:
    """One literal word."""

    text: str  # value after quote removal
    start: int  # offset of the first character in the command line
    end: int  # offset behind the last one
    quoted: bool = False  # some part was quoted or escaped
    # has unquoted ``* ? [``, so the shell may replace it by any number of file names
    glob: bool = False
    glob_first: bool = False  # begins with such a character, so a replacement may begin with ``-``
    substitution: bool = False  # stands for the output of ``<( )``
    one: bool = False  # its glob stands for one name each time, as a quoted variable does
    expanded: bool = False  # holds a variable or the output of commands
    here: bool = False  # begins with the directory that it stands in
    split: bool = False  # what it stands for is split at blanks, and read as a glob
    empty: bool = False  # a number that may be nothing at all
    elements: list[Word] | None = None  # it stands for these, as an array
    # it stands for names that this pipeline prints
    source: list[Simple] | None = field(default=None, compare=False)
    origin: list[Simple] | None = field(default=None, compare=False)  # or begins as those do

    @property
    def unknown(self) -> bool:
        """Whether some of its text is only known when the line runs."""
        return any(mark in self.text for mark in (TEXT, NUMBER, HASH))

    @property
    def names_files(self) -> bool:
        """Whether it stands for names that were looked up where it was made."""
        return self.glob or self.source is not None or self.origin is not None

    @property
    def moves(self) -> bool:
        """Whether it may stand for more or fewer words than one."""
        return self.split or (self.glob and not self.one) or (self.empty and not self.quoted)

    @property
    def kind(self) -> str:
        """What it stands for: ``NUMBER``, ``HASH`` for a commit or nothing, else ``""``."""
        number = _COUNT.fullmatch(self.text) and not self.empty
        return (
            NUMBER if number else HASH if self.text in ("", HASH) and self.elements is None else ""
        )


def may_be_set(name: str) -> bool:
    """Whether no shell and no program looks for a variable: lower case, or plain nouns in
    capitals.
    """
    nouns = programs()["shell"]["nouns"]
    return name[0].islower() or all(
        len(part) == 1 or part in nouns for part in name.rstrip("0123456789").split("_")
    )


class Heredoc(NamedTuple):
    """A body that the next line begins."""

    end: re.Pattern[str]  # the line that ends it
    line: re.Pattern[str]  # what its lines hold, up to what may be expanded
    expands: bool  # whether commands and variables may stand in it


class WordReader:
    """Reads one word after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.heredocs: list[Heredoc] = []
        self.variables: dict[str, Word] = {}  # what the line has set
        self.made: dict[str, int] = {}  # and how often it had moved to another directory by then
        self.moves = 0
        self.construct = ""  # what the line holds besides plain commands of literal words
        self.assigning = False  # a value that is assigned is not split
        self.of_git = False  # a caret in front leaves out commits

    def _substitution(self) -> list[Simple] | None:
        """Reads ``$( )``; returns its commands where they are one pipeline."""
        raise NotImplementedError

    def _blanks(self) -> None:
        """Passes what stands between words."""
        raise NotImplementedError

    def _take(self, pattern: re.Pattern[str], construct: str) -> re.Match[str]:
        """Passes what must stand here."""
        if (match := self._try(pattern)) is None:
            raise Unproven(construct)
        return match

    def _try(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Passes what may stand here."""
        match = pattern.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return match

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _words(self, *, loop: bool = False) -> list[Word]:
        """Reads what may stand for several words: an array, or braces; not every shell
        expands these.
        """
        array = _ARRAY.match(self.text, self.pos) if self._peek() in ('"', "$") else None
        known = self.variables.get(array[3] or "@") if array else None
        if array and known and known.elements is not None:
            # any part of it is a list in turn
            listed = len(known.elements) == 1 and known.elements[0].split
            unproven_if(array["slice"] and (array["keys"] or not listed), "expansion")
            start, self.pos, self.construct = self.pos, array.end(), self.construct or "expansion"
            whole = array[1] or all(map(_stays_whole, known.elements))
            unproven_if(not (whole and known.elements), "expansion")
            self._stays(array[3] or "@", known.elements)
            if array["keys"]:
                return [
                    Word(NUMBER, start, self.pos, quoted=bool(array[1]), expanded=True, split=True)
                ]
            found = [replace(w, start=start, end=self.pos, expanded=True) for w in known.elements]
            if array[1]:
                return found
            return [replace(w, split=w.split or w.glob, quoted=False) for w in found]
        word = self._word(braces=True)
        if "\2" not in word.text:
            return [word]
        texts = alternatives(_MARKED.sub(_counted, word.text))
        unproven_if(len(texts) >= _MAX_WORDS or word.unknown or texts[0].count(NUMBER) > 1, "brace")
        first = word.glob_first or word.text[0] == "\2"
        texts.append(word.text.translate({2: "{", 3: "}"}))
        return [
            replace(word, text=text, glob=word.glob or not loop, glob_first=first and not loop)
            for text in texts
            if text
        ]

    def _word(self, *, braces: bool = False) -> Word:
        text, start, parts = self.text, self.pos, list[str]()
        word = Word("", start, start)
        while True:
            unproven_if(
                self.pos == start and self._peek() == "=" and not self._equals_alone(), "zsh_equals"
            )
            if plain := self._try(_PLAIN):
                parts.append(plain[0])
                continue
            char = self._peek()
            if char in WORD_ENDS:
                break
            self.pos += 1
            if char == "'":
                end = text.find("'", self.pos)
                unproven_if(end < 0, "syntax")
                parts.append(text[self.pos : end])
                self.pos, word.quoted = end + 1, True
            elif char == '"':
                self._double_quoted(word, parts)
                word.quoted = True
            elif char == "\\":
                unproven_if(self._peek() not in _ESCAPABLE or not self._peek(), "backslash")
                parts.append(self._peek())
                self.pos, word.quoted = self.pos + 1, True
            elif char in "*?[]":
                self._glob(word, char, start)
                parts.append(char)
            elif not char.isascii() or (self.pos - 1 == start and self._harmless(char)):
                parts.append(char)
            elif (
                char == "~"
                and text[self.pos - 2].isalnum()
                and self.pos - 1 > start
                and self._ends_revision()
            ):
                parts.append(char)  # HEAD~1
            elif char in "^{" and (revision := _REVISION.match(text, self.pos - 1)):
                parts.append(revision[0])  # HEAD^2, HEAD^{tree}, stash@{0}
                self.pos = revision.end()
            elif char == "$" and text[self.pos : self.pos + 4] in ("'\\t'", "'\\r'"):
                # a tab, or what shells without such quotes read, means no more than a digit does
                # as in -d$'\t', which is never empty
                alone = re.fullmatch("-[A-Za-z]", "".join(parts)) is not None
                parts.append("\t" if alone else NUMBER)
                self.pos, word.quoted, word.empty, word.expanded = (
                    self.pos + 4,
                    True,
                    not alone,
                    True,
                )
            elif char == "$" and (not self._peek() or self._peek() in " \t\n;|&)"):
                parts.append(char)  # nothing behind it to expand
            elif char == "$":
                self._expand(word, parts, quoted=False)
            elif char == "{" and (read := self._braces(text[start : self.pos - 1], expand=braces)):
                parts.append(read)
            else:
                raise Unproven(
                    next(
                        (name for name, of in programs()["construct"].items() if char in of),
                        "character",
                    )
                )
        word.text, word.end = "".join(parts), self.pos
        if word.here and word.text != "." and not word.text.startswith("./"):
            word.text = TEXT + word.text[1:]  # more than the directory's name
        self._put_listed(word)
        if word.unknown and ((word.glob and not word.one) or (word.split and word.source is None)):
            raise Unproven("expansion")
        if word.text != TEXT:
            word.source = None
        # Where a heredoc's body begins is not the same for every reader.
        unproven_if(self.heredocs and "\n" in word.text, "heredoc")
        return word

    def _stays(self, name: str, words: list[Word]) -> None:
        """Ends the proof where names of files are used in another directory than the one they were
        looked up in.
        """
        named = any(word.names_files for word in words)
        unproven_if(named and self.made.get(name, 0) != self.moves, "directory")

    def _put_listed(self, word: Word) -> None:
        """Puts a glob for a name behind the folder that ``ls`` lists."""
        folder = lists_folder(word.source) if word.text[-1:] == TEXT else None
        if folder is not None and word.text == folder + TEXT:
            word.text, word.source, word.glob, word.one, word.split = (
                f"{folder}*",
                None,
                True,
                True,
                True,
            )
            word.glob_first = not folder

    def _equals_alone(self) -> bool:
        """``=`` or ``==``, as tests use them; a name behind it would be a path for zsh."""
        match = _EQUALS.match(self.text, self.pos)
        return match is not None and self.text[match.end() : match.end() + 1] in WORD_ENDS

    def _braces(self, before: str, *, expand: bool) -> str:
        """Reads what find replaces, for without a comma or dots no shell expands it; marks what
        some shells expand.
        """
        if (
            before in ("", "-I")
            and self._peek() == "}"
            and self.text[self.pos + 1 : self.pos + 2] in WORD_ENDS
        ):
            self.pos += 1
            return "{}"
        self.pos -= 1
        choice = self._try(_BRACES) if expand else None
        self.pos += choice is None
        return f"\2{choice[0][1:-1]}\3" if choice else ""

    def _ends_revision(self) -> bool:
        """Whether a tilde is followed as in git's names of revisions; no shell expands it there."""
        return self._peek().isdigit() or self._peek() in WORD_ENDS

    def _harmless(self, char: str) -> bool:
        """A tilde for the home directory, an exclamation mark that stands alone."""
        following = self._peek()
        if char == "~":
            return following == "/" or following in WORD_ENDS
        return (char == "!" and following in (" ", "\t", "\n", "")) or (
            char == "^" and (self.assigning or (self.of_git and following.isalnum()))
        )

    def _glob(self, word: Word, char: str, start: int) -> None:
        alone = self.pos - 1 == start and self._peek() in WORD_ENDS
        if char in "[]" and (alone or self.text[start : start + 2] in ("[[", "]]")):
            doubled = self.text[start : start + 3]
            if alone or doubled[2:] in WORD_ENDS:
                return  # the commands [ and [[ and what closes them
        word.glob, word.one = True, False
        word.glob_first = word.glob_first or self.pos - 1 == start

    def _expand(self, word: Word, parts: list[str], *, quoted: bool) -> None:
        """Puts what stands behind a dollar into a word: a variable that the line set, or what
        commands print.
        """
        self.construct = self.construct or ("substitution" if self._peek() == "(" else "expansion")
        first, split = not any(parts), not (quoted or self.assigning)
        if self._peek() == "(":
            value = self._output(split=split, first=first)
        else:
            match = self._take(_VARIABLE, "expansion")
            known = self.variables.get(match["name"] or match["cut"] or match["element"] or "")
            self._stays(
                match["name"] or match["cut"] or match["element"] or "",
                known.elements or [known] if known else [],
            )
            if match["element"]:
                elements, index = (
                    (known.elements if known else None) or [],
                    self.variables.get(match["index"] or ""),
                )
                counted = not match["index"] or (index is not None and index.kind == NUMBER)
                known = (
                    replace(elements[0], one=True)
                    if quoted and counted and len(elements) == 1
                    else None
                )
            if match["number"]:
                value = Word(NUMBER, 0, 0)
            elif match["name"] == "PWD":
                here = first and not self.assigning
                value = Word("." if here else TEXT, 0, 0, here=here, split=split)
            elif known is None and match["name"] in programs()["shell"]["environment"]:
                value = Word(TEXT, 0, 0)
            elif known is None or known.elements is not None:
                raise Unproven("expansion")
            elif (
                match["cut"]
                and match[0].endswith("%/}")
                and known.one
                and known.text.endswith("/")
                and not split
            ):
                value = replace(known, text=known.text[:-1])
            elif match["cut"]:
                counts = known.text == NUMBER and _OR_NUMBER.search(match[0])
                value = Word(NUMBER, 0, 0) if counts else Word(TEXT, 0, 0, split=split)
                if first and _CUT_SUFFIX.search(match[0]):
                    folder = _FOLDER.match(known.text) if known.glob else None
                    value = replace(
                        value, text=folder[0] + TEXT if folder else value.text, origin=known.source
                    )
            elif not split or _stays_whole(known):
                value = replace(known, source=known.source if split or known.one else None)
                value.split = split and (known.glob or TEXT in known.text)
            else:
                raise Unproven("expansion")
        if value.glob:
            word.one = not split and (word.one or not word.glob)
            word.glob = True
        word.glob_first = word.glob_first or (first and value.glob_first)
        word.one = word.one or (value.one and not word.glob)
        word.split = word.split or value.split
        word.empty = word.empty or value.empty
        word.expanded, word.here, word.source = True, word.here or value.here, value.source
        word.origin = word.origin or (value.origin if first else None)
        parts.append(value.text)

    def _output(self, *, split: bool, first: bool) -> Word:
        """Reads what stands for the output of commands, or for a number that is computed."""
        if self.text.startswith("((", self.pos):
            self._arithmetic()
            return Word(NUMBER, 0, 0)
        source = self._substitution()
        if prints(source, "number"):
            return Word(NUMBER, 0, 0, empty=True)
        if prints(source, "hashes", "revisions"):
            return Word(HASH, 0, 0, empty=True)
        plain = source is not None and [w.text for command in source for w in command.words] == [
            "pwd"
        ]
        if source and plain and first and not (source[0].redirects or self.assigning):
            return Word(".", 0, 0, here=True, split=split)
        last = " ".join(w.text for w in source[-1].words) if source else ""
        one = _ONE_LINE.fullmatch(last) is not None
        return Word(
            TEXT,
            0,
            0,
            source=source if split or self.assigning or one else None,
            split=split,
            one=one,
        )

    def _arithmetic(self) -> None:
        self.pos, depth = self.pos + 2, 0
        while depth or not self.text.startswith("))", self.pos):
            term = self._take(_TERM, "arithmetic")
            known = self.variables.get(term["name"] or "")
            depth += (term[0] == "(") - (term[0] == ")")
            unproven_if(
                depth < 0 or (term["name"] and not (known and _COUNT.fullmatch(known.text))),
                "arithmetic",
            )
            if term["inner"] is not None:
                self.pos -= 1
                unproven_if(self._output(split=False, first=False).text != NUMBER, "arithmetic")
        self.pos += 2

    def _double_quoted(self, word: Word, parts: list[str]) -> None:
        text = self.text
        while True:
            char = self._peek()
            self.pos += 1
            unproven_if(not char, "syntax")
            following = self._peek()
            if char == '"':
                return
            if char == "\\":
                unproven_if(following == "\n" or not following, "line_continuation")
                if following in '"\\$`':
                    parts.append(following)
                    self.pos += 1
                    continue
            elif char == "`":
                raise Unproven("substitution")
            elif char == "$" and following != '"':
                self._expand(word, parts, quoted=True)
                continue
            elif char == "!" and following not in (" ", "\t", "\n", "=", '"'):
                raise Unproven("history")
            # Take the run of characters that mean themselves in one go.
            end = self.pos
            while end < len(text) and text[end] not in '"\\$`!':
                end += 1
            parts.append(char + text[self.pos : end])
            self.pos = end


def _stays_whole(word: Word) -> bool:
    """Whether what is known of a word's text is not split where it stands without quotes."""
    known = word.text.translate(_MARKS)
    return not known or _UNSPLIT[word.glob].fullmatch(known) is not None


def _counted(match: re.Match[str]) -> str:
    """Braces with all that a range stands for; of a long one only that it is of numbers."""
    first, dots, last = match[1].partition("..")
    if not dots or "," in last:
        return match[0]
    low, high = int(first), int(last)
    counted = range(low, high + 1) if low <= high else range(low, high - 1, -1)
    width = max(len(first), len(last)) if "0" in (first[0], last[0]) else 0
    numbers = ",".join(str(n).zfill(width) for n in counted)
    return f"\2{numbers if len(counted) <= _MAX_COUNTED else NUMBER}\3"


def alternatives(text: str, braces: re.Pattern[str] = _MARKED) -> list[str]:
    """The texts that braces stand for; where they are more than a limit, at least as many."""
    done, waiting = list[str](), [text]
    while waiting and len(done) + len(waiting) < _MAX_WORDS:
        match = braces.search(current := waiting.pop(0))
        if match is None:
            done.append(current)
        else:
            waiting[:0] = [
                current[: match.start()] + one + current[match.end() :]
                for one in match[1].split(",")
            ]
    return [*done, *waiting]
