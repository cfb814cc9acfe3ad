"""Whether a line runs what it fetches: a download piped into an interpreter, given to it as text,
or run as a file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from agenttool_otel.readers.shell.effects import unwrapped
from agenttool_otel.readers.shell.survey import Found
from agenttool_otel.readers.shell.tables import effects

_OUTPUT_OPTIONS = ("-o", "-O", "--output", "--output-document")
_CODE_OPTIONS = ("-c", "-e", "-E", "-m", "-p", "-r")
# -c, -lc, but not --norc
_SHELL_CODE = re.compile(r"-(?!-).*c")


def fetches(text: str) -> bool:
    """Whether a line may hold a program that fetches; a quick look that spares most lines
    the rest.
    """
    fetchers = effects().lists["fetchers"]
    return any(name in text for name in fetchers)


def runs_download(steps: Sequence[Found]) -> bool:
    """Whether some command runs what another one fetched."""
    fetchers = set()
    files = set()
    for index, step in enumerate(steps):
        program = _program(step.words)
        if program not in effects().lists["fetchers"]:
            continue
        fetchers.add(index)
        files.update(_outputs(step))
    if not fetchers:
        return False
    return any(_runs_fetched(step, fetchers, files) for step in steps)


def _runs_fetched(step: Found, fetchers: set[int], files: set[str]) -> bool:
    """Whether a command runs what was fetched.

    Args:
        step: the command.
        fetchers: the numbers of the commands that fetch.
        files: the names of the files that those write.
    """
    words = unwrapped(step.words)
    # curl -O https://host/x && ./x
    if words and "/" in words[0] and posixpath.basename(words[0]) in files:
        return True
    name = _program(words)
    if name not in effects().lists["interpreters"]:
        return False
    # sh -c "$(curl https://host/x)"
    if fetchers.intersection(step.text):
        return True
    script = _script(name, words[1:])
    # curl https://host/x | sh
    if script is None:
        return bool(fetchers.intersection(step.input))
    return posixpath.basename(script) in files


def _program(words: Sequence[str]) -> str:
    """Return the name of the program behind a command's wrappers."""
    inner = unwrapped(list(words))
    if not inner:
        return ""
    return posixpath.basename(inner[0])


def _script(name: str, words: Sequence[str]) -> str | None:
    """Return the script file of an interpreter: ``None`` when it reads its input, empty when its
    code is among the words.
    """
    is_shell = name in effects().lists["shells"]
    for word in words:
        if word in ("-", "-s", "/dev/stdin"):
            return None
        # bash -lc TEXT
        if is_shell and _SHELL_CODE.match(word):
            return ""
        # python -c TEXT
        if not is_shell and word.startswith(_CODE_OPTIONS):
            return ""
        if not word.startswith("-"):
            return word
    return None


def _outputs(step: Found) -> list[str]:
    """The names, without folders, of the files that a fetching command writes."""
    paths = []
    for operator, target in step.redirects:
        if ">" in operator:
            paths.append(target)
    is_output = False
    for word in step.words[1:]:
        if is_output:
            paths.append(word)
        is_output = word in _OUTPUT_OPTIONS
        paths.append(_path_in(word))
    names = map(posixpath.basename, paths)
    return list(filter(None, names))


def _path_in(word: str) -> str:
    """The file that one word of a fetching command names, or an empty text."""
    if word.startswith(("--output=", "--output-document=")):
        return word.partition("=")[2]
    # curl -ox https://host/y
    if word.startswith(("-o", "-O")):
        return word[2:]
    # wget https://host/x?a=b writes x
    if "/" in word and not word.startswith("-"):
        return word.partition("?")[0]
    return ""
