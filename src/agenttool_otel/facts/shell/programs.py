"""Checks of the small languages that some commands take as a word: sed, awk, jq, find, printf, test.

Each check answers why the program is not proven to only read, or an empty string when it is.
"""

from __future__ import annotations

import re

from agenttool_otel.facts.shell.guard import Word

__all__ = ["awk_program", "find_words", "jq_program", "printf_words", "sed_program", "test_words"]

# --- sed: [address[,address]][!]command, joined by ";" or newlines; only commands that print, delete or substitute ---

_SED_ADDRESS = re.compile(r"\s*(?:[0-9]+(?:~[0-9]+)?|\$|\+[0-9]+)")
_SED_FLAGS = re.compile(r"[gpIi0-9]*")
_SED_PLAIN = frozenset("pdDqQnNgGhHxP=l")


def sed_program(script: str) -> str:
    """Why a sed script may do more than print, or ``""``."""
    pos, size = 0, len(script)
    if "\n" in script or "\\\n" in script:
        return "sed script with line breaks"
    while pos < size:
        while pos < size and script[pos] in " ;":
            pos += 1
        for position in (0, 1):
            end = _sed_address(script, pos)
            if end < 0:
                return "sed address"
            if end == pos:
                if position:
                    return "sed address"
                break
            pos = end
            if position == 0:
                if script[pos : pos + 1] != ",":
                    break
                pos += 1
        while script[pos : pos + 1] in ("!", " "):
            pos += 1
        if pos >= size:
            return "" if script.strip(" ;") == "" or script[:pos].rstrip().endswith(";") else "sed command"
        command = script[pos]
        pos += 1
        if command in "sy":
            pos = _sed_substitution(script, pos, command)
            if pos < 0:
                return "sed substitution"
        elif command in "qQ":
            while script[pos : pos + 1].isdigit():
                pos += 1
        elif command not in _SED_PLAIN:
            return f"sed command {command!r}"
        while script[pos : pos + 1] == " ":
            pos += 1
        if pos < size and script[pos] != ";":
            return "sed script"
    return ""


def _sed_address(script: str, pos: int) -> int:
    match = _SED_ADDRESS.match(script, pos)
    if match:
        return match.end()
    if script[pos : pos + 1] == "/":
        end = _sed_part(script, pos + 1, "/")
        if end < 0:
            return -1
        while script[end : end + 1] == "I":
            end += 1
        return end
    return -1 if script[pos : pos + 1] == "\\" else pos


def _sed_part(script: str, pos: int, delimiter: str) -> int:
    """The offset behind the next unescaped delimiter, or -1; a bracket must not hold one (readings differ)."""
    bracket = False
    while pos < len(script):
        char = script[pos]
        if char == "\\":
            pos += 2
            continue
        if char == delimiter:
            return -1 if bracket else pos + 1
        if char == "[" and not bracket:
            bracket = True
            pos += 2 if script[pos + 1 : pos + 2] == "^" else 1
            if script[pos : pos + 1] == "]":
                pos += 1
            continue
        if bracket and script[pos : pos + 2] in ("[:", "[.", "[="):
            end = script.find(script[pos + 1] + "]", pos + 2)
            if end < 0:
                return -1
            pos = end + 2
            continue
        if char == "]":
            bracket = False
        pos += 1
    return -1


def _sed_substitution(script: str, pos: int, command: str) -> int:
    delimiter = script[pos : pos + 1]
    if not delimiter or delimiter not in "/|,#:@!%+~_-":
        return -1
    pos = _sed_part(script, pos + 1, delimiter)
    if pos < 0:
        return -1
    # In the replacement a bracket is an ordinary character.
    while pos < len(script) and script[pos] != delimiter:
        pos += 2 if script[pos] == "\\" else 1
    if pos >= len(script):
        return -1
    pos += 1
    if command == "y":
        return pos
    flags = _SED_FLAGS.match(script, pos)
    return flags.end() if flags else -1


# --- awk: no way to write, run or open anything by name ---------------------------------------------------------------

_AWK_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AWK_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_AWK_FORBIDDEN = frozenset(
    [
        "system",
        "getline",
        "close",
        "fflush",
        "ENVIRON",
        "PROCINFO",
        "SYMTAB",
        "FUNCTAB",
        "ARGV",
        "ARGC",
        "function",
        "func",
        "include",
        "load",
        "namespace",
        "extension",
        "nextfile",
        "BINMODE",
        "OFMT",
        "CONVFMT",
    ]
)
_AWK_CALLS = frozenset(
    [
        "length",
        "substr",
        "index",
        "split",
        "sub",
        "gsub",
        "match",
        "tolower",
        "toupper",
        "sprintf",
        "int",
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "atan2",
        "rand",
        "srand",
        "gensub",
        "strftime",
        "systime",
        "mktime",
        "print",
        "printf",
        "if",
        "while",
        "for",
        "in",
        "and",
        "or",
        "not",
        "BEGIN",
        "END",
        "return",
        "delete",
        "exit",
    ]
)


def awk_program(program: str) -> str:
    """Why an awk program may do more than print, or ``""``.

    Output redirection needs ``>`` or ``|``, indirect calls and extensions ``@``, everything else a name; none of these
    may occur anywhere, not even in a string, so that no tokenising can be got wrong.
    """
    if any(char in program for char in "|>@`") or "\\\n" in program:
        return "awk program with > | or @"
    for name in _AWK_NAME.findall(program):
        if name in _AWK_FORBIDDEN:
            return f"awk {name}"
    for name in _AWK_CALL.findall(program):
        if name not in _AWK_CALLS:
            return f"awk call of {name}"
    if "<" in program and "getline" in program:
        return "awk getline"
    return ""


def jq_program(program: str) -> str:
    """Why a jq program may read more than its input, or ``""``."""
    match = re.search(
        r"\b(import|include|env|ENV|modulemeta|get_search_list|input_filename|input_line_number)\b", program
    )
    return f"jq {match[0]}" if match else ""


# --- find -------------------------------------------------------------------------------------------------------------

_FIND_FLAGS = frozenset(
    [
        "-depth",
        "-d",
        "-xdev",
        "-mount",
        "-noleaf",
        "-follow",
        "-daystart",
        "-ignore_readdir_race",
        "-noignore_readdir_race",
        "-empty",
        "-readable",
        "-writable",
        "-executable",
        "-nouser",
        "-nogroup",
        "-true",
        "-false",
        "-print",
        "-print0",
        "-ls",
        "-prune",
        "-quit",
        "-not",
        "-a",
        "-and",
        "-o",
        "-or",
        "!",
        "(",
        ")",
        ",",
    ]
)
_FIND_VALUES = frozenset(
    [
        "-maxdepth",
        "-mindepth",
        "-regextype",
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-type",
        "-xtype",
        "-size",
        "-mtime",
        "-atime",
        "-ctime",
        "-mmin",
        "-amin",
        "-cmin",
        "-newer",
        "-anewer",
        "-cnewer",
        "-perm",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-links",
        "-inum",
        "-samefile",
        "-lname",
        "-ilname",
        "-fstype",
        "-used",
        "-printf",
    ]
)
_FIND_NEWER = re.compile(r"-newer[aBcm][aBcmt]\Z")
_FIND_NAMES = frozenset(["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"])
_FIND_FILES = frozenset(["-newer", "-anewer", "-cnewer", "-samefile"])


def find_words(words: list[Word]) -> tuple[str, list[Word], list[Word], list[Word]]:
    """Reads the words behind ``find``.

    Returns:
        Why it may do more than list (or ``""``), the starting points, the words that are name patterns, and the words
        that name files to compare with.
    """
    index = 0
    starts: list[Word] = []
    names: list[Word] = []
    compared: list[Word] = []
    while index < len(words) and words[index].text in ("-H", "-L", "-P"):
        index += 1
    while (
        index < len(words) and not words[index].text.startswith("-") and words[index].text not in ("!", "(", ")", ",")
    ):
        if words[index].glob_first:
            return "find with an unquoted glob", starts, names, compared
        starts.append(words[index])
        index += 1
    while index < len(words):
        word = words[index]
        index += 1
        if word.glob:
            return "find with an unquoted glob", starts, names, compared
        if word.text in _FIND_FLAGS:
            continue
        if word.text not in _FIND_VALUES and not _FIND_NEWER.match(word.text):
            return f"find {word.text[:40]}", starts, names, compared
        if index >= len(words):
            return f"find {word.text} without its value", starts, names, compared
        value = words[index]
        index += 1
        if value.glob or (value.text.startswith("-") and not re.match(r"-[0-9]", value.text)):
            return f"find {word.text} with {value.text[:40]}", starts, names, compared
        if word.text in _FIND_NAMES:
            names.append(value)
        elif word.text in _FIND_FILES or word.text.startswith("-newer"):
            compared.append(value)
    return "", starts, names, compared


# --- printf, test -----------------------------------------------------------------------------------------------------

_PRINTF = re.compile(r"(?:[^%]|%%|%[-0 ]*[0-9]*(?:\.[0-9]+)?[sbqc])*\Z", re.DOTALL)


def printf_words(words: list[Word]) -> str:
    """Why ``printf`` may do more than print: ``-v`` and ``%n`` assign, and numbers are evaluated in some shells."""
    if words and words[0].text == "--":
        words = words[1:]
    if not words:
        return "printf without a format"
    if words[0].glob or words[0].text.startswith("-") or not _PRINTF.match(words[0].text):
        return "printf format"
    return ""


_TEST_FILE = frozenset(
    ["-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-p", "-S", "-b", "-c", "-g", "-u", "-k", "-O", "-G", "-N"]
)
_TEST_TEXT = frozenset(("-z", "-n"))
_TEST_NUMBER = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])
_NUMBER = re.compile(r"-?[0-9]{1,18}\Z")


def test_words(name: str, words: list[Word]) -> tuple[str, list[Word]]:
    """Reads the words of ``test``, ``[`` and ``[[``.

    Arrays' subscripts are evaluated by ``-v``, ``-R`` and, within ``[[``, by numeric comparison; so only tests of
    files and of literal text are read, and numbers must be numbers.

    Returns:
        Why it may do more than test (or ``""``), and the words that name files.
    """
    if name != "test":
        closing = "]" if name == "[" else "]]"
        if not words or words[-1].text != closing or words[-1].quoted:
            return "test without its end", []
        words = words[:-1]
    if any(word.glob for word in words):
        return "test with a glob", []
    if words and words[0].text == "!":
        words = words[1:]
    texts = [word.text for word in words]
    if len(texts) == 1 and texts[0] not in ("!", "(", ")") and not texts[0].startswith("-"):
        return "", []
    if len(texts) == 2 and texts[0] in _TEST_FILE and not words[1].substitution:
        return "", [words[1]]
    if len(texts) == 2 and texts[0] in _TEST_TEXT:
        return "", []
    if len(texts) == 3:
        if texts[1] in ("=", "==", "!=") and texts[0] not in ("!", "("):
            return "", []
        if texts[1] in _TEST_NUMBER and _NUMBER.match(texts[0]) and _NUMBER.match(texts[2]):
            return "", []
        if texts[1] in ("-nt", "-ot", "-ef"):
            return "", [words[0], words[2]]
    return "test expression", []
