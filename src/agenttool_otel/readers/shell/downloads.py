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


def fetches(text: str) -> bool:
    """Whether a line may hold a program that fetches; a quick look that spares most lines
    the rest.
    """
    return any(name in text for name in effects().lists["fetchers"])


def runs_download(steps: Sequence[Found]) -> bool:
    """Whether some command runs what another one fetched."""
    fetchers = {
        i for i, step in enumerate(steps) if _program(step.words) in effects().lists["fetchers"]
    }
    if not fetchers:
        return False
    files = {posixpath.basename(name) for i in fetchers for name in _outputs(steps[i])}
    for step in steps:
        words = unwrapped(step.words)
        name = _program(words)
        if files and words and "/" in words[0] and posixpath.basename(words[0]) in files:
            return True
        if name not in effects().lists["interpreters"]:
            continue
        if fetchers.intersection(step.text):
            return True
        script = _script(name, words[1:])
        if (
            fetchers.intersection(step.input)
            if script is None
            else posixpath.basename(script) in files
        ):
            return True
    return False


def _program(words: Sequence[str]) -> str:
    words = unwrapped(list(words))
    return posixpath.basename(words[0]) if words else ""


def _script(name: str, words: Sequence[str]) -> str | None:
    """The script file of an interpreter: ``None`` when it reads its input, empty when its code is
    among the words.
    """
    for word in words:
        if word in ("-", "-s", "/dev/stdin"):
            return None
        if (
            re.match("-(?!-).*c", word)
            if name in effects().lists["shells"]
            else word.startswith(_CODE_OPTIONS)
        ):
            return ""
        if not word.startswith("-"):
            return word
    return None


def _outputs(step: Found) -> list[str]:
    """The files that a fetching command writes."""
    names = [target for operator, target in step.redirects if ">" in operator]
    words = step.words
    for index, word in enumerate(words[1:], start=1):
        if word in _OUTPUT_OPTIONS and index + 1 < len(words):
            names.append(words[index + 1])
        elif word.startswith(("--output=", "--output-document=")):
            names.append(word.partition("=")[2])
        elif word[:2] in ("-o", "-O") and len(word) > 2:
            names.append(word[2:])
        if "/" in word and not word.startswith("-"):
            names.append(word.partition("?")[0])  # named after the URL
    return [name for name in names if posixpath.basename(name)]
