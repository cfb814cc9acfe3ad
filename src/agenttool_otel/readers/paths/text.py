"""What the text of a path means, before the file system is asked."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import filterfalse
from typing import Final
from urllib.parse import unquote

from agenttool_otel.readers.vocabulary import PathRejection, WindowsForm
from agenttool_otel.values.unicode import (
    has_escaped_surrogate,
    has_invisible,
    has_misleading_invisible,
    is_national,
    look_alike_table,
)

MAX_PATH_BYTES: Final = 4096
"""PATH_MAX of Linux."""

MAX_COMPONENT_BYTES: Final = 255
"""NAME_MAX of Linux, and of most other file systems."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+@=,-]+")
"""Texts that need no look at characters, because none of them has a second meaning."""

_CONTROL: Final = re.compile("[\x01-\x1f\x7f-\x9f\u2028\u2029]")
_STREAM: Final = re.compile(r":(?!\d)|(?<!\d):")  # but not the time of day in a name
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?://|[/\\])", re.ASCII)
_DRIVE: Final = re.compile(r"[A-Za-z]:", re.ASCII)
_SHORT_NAME: Final = re.compile(r"[^~./\\:]{1,6}~[0-9]{1,5}(?:\.[^.]{0,3})?", re.ASCII)
# $0x/a, $HOME/a: in front of a path, any word is a variable
_LEADING_WORD: Final = r"\A\$\w+/"
# $dir/../a, $dir/a/..: nothing that could stand for the word keeps the path below it
_WORD_BEFORE_PARENT: Final = r"\$\w+/(?:.*/)?\.\.(?:/|\Z)"
# what environments and other shells have: $home, $tempdir, $my_var, Powershell's $userprofile
_KNOWN_VARIABLE: Final = (
    r"(?i:home|env|pwd|oldpwd|path|temp\w*|tmp\w*|user\w*|\w*profile|appdata|windir|system\w*|\w*_\w*)"
    r"(?![A-Za-z0-9])"
)
# users.$id.tsx: a name in small letters, up to a dot or the end of a component
_ROUTE_PARAMETER: Final = rf"(?!{_KNOWN_VARIABLE})[a-z][A-Za-z0-9]*(?:[.)/-]|\Z)"
_VARIABLE_NAME: Final = rf"(?!{_ROUTE_PARAMETER})[A-Za-z_][A-Za-z0-9_]*"
_SPECIAL_PARAMETER: Final = r"[0-9@*#?$!-]"  # bash(1), "Special Parameters"
_EXPANSION: Final = rf"\$(?:{_VARIABLE_NAME}|\{{|\(|\[|{_SPECIAL_PARAMETER})"
_DOLLAR: Final = re.compile(
    f"{_LEADING_WORD}|{_WORD_BEFORE_PARENT}|{_EXPANSION}|`",
    re.ASCII,
)
# Two hexadecimal digits between percent signs are an encoding (%c0%af), not a variable.
_PERCENT_VARIABLE: Final = re.compile(
    r"%(?![0-9A-Fa-f]{2}%)[A-Za-z_][A-Za-z0-9_()]{0,63}%|%~?[0-9*]\b|%~[a-z$:]*[0-9]|![A-Za-z_]\w*!",
    re.ASCII,
)
# What a strict decoder of percent signs leaves alone, but another one reads.
_PERCENT: Final = "%(?:25)*"  # %25252f: encoded several times
_OVERLONG: Final = (  # RFC 3629, section 10: "/" as %c0%af, %e0%80%af or %f0%80%80%af
    rf"{_PERCENT}c[01]{_PERCENT}[0-9a-f]{{2}}"
    rf"|{_PERCENT}e0{_PERCENT}[89][0-9a-f]"
    rf"|{_PERCENT}f0{_PERCENT}80"
)
_OLD_SERVERS: Final = (  # %u002f of IIS, %%32%66 that becomes %2f
    rf"{_PERCENT}u[0-9a-f]{{4}}|{_PERCENT}%[0-9a-f]{{2}}"
)
_CONTROL_CODE: Final = rf"{_PERCENT}(?:[01][0-9a-f]|7f)"
_ENTITY: Final = (  # HTML's "&#47;", "&#x2f;", "&sol;"
    r"&#(?:[0-9]+|x[0-9a-f]+);|&(?:period|sol|bsol|tab|newline|colon|dollar);"
)
_ODD_ENCODING: Final = re.compile(
    f"{_OVERLONG}|{_OLD_SERVERS}|{_CONTROL_CODE}|{_ENTITY}",
    re.IGNORECASE,
)
_SEPARATOR_LOOKS: Final = frozenset("/\\.")
_RESERVED_NAMES: Final = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{device}{digit}" for device in ("com", "lpt") for digit in "0123456789\u00b9\u00b2\u00b3"]
)


@dataclass(slots=True)
class PathText:
    """What a path's text means."""

    rejected: PathRejection | None = None  # why it is no usable path
    absolute: bool = False  # whether it starts at the root of the file system
    # its components as written, without empty ones and ``.``; ``..`` is kept
    parts: list[str] = field(default_factory=list)
    parent_refs: bool = False  # whether ``..`` is among them, with either slash
    home: bool = False  # starts with ``~``
    variables: bool = False  # has a variable, a command substitution or a cmd variable
    encoded: bool = False  # percent signs hide dots, separators or a NUL
    # letters that mislead a reader or that compatibility normalisation turns into others
    confusable: bool = False
    unnormalized: bool = False  # is not in Unicode's NFC
    windows: list[str] = field(default_factory=list)  # its Windows forms, without repetition


def read_path_text(text: str) -> PathText:
    """Read the text of a path; never raises."""
    found = PathText()
    if not text:
        found.rejected = PathRejection.EMPTY
        return found
    if len(text) > MAX_PATH_BYTES:
        found.rejected = PathRejection.TOO_LONG
        return found
    found.absolute = text.startswith("/")
    found.parts = [part for part in text.split("/") if part not in ("", ".")]
    found.parent_refs = ".." in found.parts
    if not _PLAIN.fullmatch(text):
        _read_characters(text, found)
    _read_components(found)
    return found


def _read_characters(text: str, found: PathText) -> None:
    if "\0" in text:
        found.rejected = PathRejection.NUL
    elif _CONTROL.search(text):
        found.rejected = PathRejection.CONTROL
    elif _SCHEME.match(text) and not _DRIVE.fullmatch(text[:2]):
        found.rejected = PathRejection.URL
    elif not text.strip():
        found.rejected = PathRejection.EMPTY
    if has_escaped_surrogate(text):
        found.rejected = found.rejected or PathRejection.SURROGATE
    if not text.isascii():
        _read_unicode(text, found)
    found.home = text.startswith("~")
    found.variables = bool(_DOLLAR.search(text) or _PERCENT_VARIABLE.search(text))
    if "%" in text or "&" in text:
        found.encoded = _hides_by_percent(text)
    if "\\" in text or ":" in text:
        _read_windows(text, found)


def _read_unicode(text: str, found: PathText) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        found.rejected = found.rejected or PathRejection.SURROGATE
        return
    if size > MAX_PATH_BYTES:
        found.rejected = found.rejected or PathRejection.TOO_LONG
    composed = unicodedata.normalize("NFC", text)
    found.unnormalized = composed != text
    found.confusable = _is_confusable(text, composed)


def _is_confusable(text: str, composed: str) -> bool:
    """Return whether a reader or a program may take a text for another, given its NFC form too."""
    if has_misleading_invisible(text):
        return True
    if any(map(_becomes_syntax, set(filterfalse(str.isascii, text)))):
        return True
    if _looks_like_other_letters(composed):
        return True
    compatible = unicodedata.normalize("NFKC", text)
    # the fraction slash is that of "½"
    return _looks_like_other_letters(compatible.replace("\u2044", ""))


@lru_cache(maxsize=4096)
def _becomes_syntax(character: str) -> bool:
    """Return whether compatibility normalisation makes something that paths and shells obey out of
    a character.
    """
    # Not the ellipsis: three dots are a name like any other.
    compatible = unicodedata.normalize("NFKC", character)
    return compatible in (".", "..", "~", "$", "%") or "/" in compatible or "\\" in compatible


def _looks_like_other_letters(text: str) -> bool:
    """Return whether a word mixes ASCII letters with look-alikes, or a character looks like a
    separator or dot.
    """
    table = look_alike_table()
    for word in re.split(r"[\W\d_]+", text):
        # The letters of Latin alphabets stand beside ASCII ones in every honest word.
        mixed = not word.isascii() and any(c.isascii() for c in word)
        if mixed and any(ord(c) in table and not is_national(c) for c in word):
            return True
    for character in filterfalse(str.isascii, set(text)):
        looks = table.get(ord(character), "")
        # the ellipsis looks like three dots, which are a name like any other
        if character != "\u2026" and _SEPARATOR_LOOKS.intersection(looks):
            return True
    return False


def _hides_by_percent(text: str) -> bool:
    if _ODD_ENCODING.search(text):
        return True
    decoded = text
    for _ in range(4):
        before = decoded
        decoded = unquote(before, errors="replace")
        if decoded == before:
            return False
        if has_invisible(decoded) and not has_invisible(before):
            return True
        looks = unicodedata.normalize("NFKC", decoded)
        for character in "/\\.\0~$":
            if looks.count(character) > before.count(character):
                return True
    return True


def _read_windows(text: str, found: PathText) -> None:
    forms = found.windows
    folded = text.replace("\\", "/")
    backslash = "\\" in text
    if folded.startswith("//") and backslash:
        device = folded[2:4] in ("?/", "./") or folded.startswith(("//??/", "/??/"))
        forms.append(WindowsForm.DEVICE if device else WindowsForm.UNC)
    elif folded.startswith("/??/"):
        forms.append(WindowsForm.DEVICE)
    rest = 0
    if _DRIVE.match(text):
        forms.append(WindowsForm.DRIVE)
        rest = 2  # the colon of "C:" names no stream
    if backslash:
        forms.append(WindowsForm.BACKSLASH)
    if _STREAM.search(text, rest):
        forms.append(WindowsForm.STREAM)
    if ".." in folded.split("/"):
        found.parent_refs = True


def _read_components(found: PathText) -> None:
    pieces = found.parts
    if WindowsForm.BACKSLASH in found.windows:
        pieces = [piece for part in pieces for piece in part.split("\\") if piece]
    for part in pieces:
        if len(part) > MAX_COMPONENT_BYTES // 4 and _is_too_long(part):
            found.rejected = found.rejected or PathRejection.TOO_LONG
        if part[-1] in ". " and part not in (".", ".."):
            _add(found.windows, WindowsForm.TRAILING)
        if part.partition(".")[0].partition(":")[0].rstrip(" ").lower() in _RESERVED_NAMES:
            _add(found.windows, WindowsForm.RESERVED_NAME)
        if "~" in part and _SHORT_NAME.fullmatch(part):
            _add(found.windows, WindowsForm.SHORT_NAME)


def _is_too_long(part: str) -> bool:
    return len(part.encode("utf-8", "surrogatepass")) > MAX_COMPONENT_BYTES


def _add(forms: list[str], form: WindowsForm) -> None:
    if form not in forms:
        forms.append(form)


def normalize_path(parts: list[str], *, start: str = "/") -> str:
    """Return the absolute path that components lead to, by text alone: no link is followed."""
    kept: list[str] = []
    for part in [*start.split("/"), *parts]:
        if part == "..":
            if kept:
                kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return "/" + "/".join(kept)
