"""Which words of a command line name credentials, keys or the environment."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from agenttool_otel.readers.paths.sensitive import is_harmless_name, sensitive_class
from agenttool_otel.readers.shell.braces import alternatives
from agenttool_otel.readers.shell.devices import absolute_readings, may_match
from agenttool_otel.readers.shell.tables import sensitive
from agenttool_otel.readers.vocabulary import PathClass

_GLOB = re.compile(r"[*?\[]")
# in front of git's pathspecs
_MAGIC = re.compile(r"\A:?\((?:top|glob|icase|literal|exclude|attr|prefix|,)[^()/]*\)")
_SEPARATORS = re.compile(r"[|,]")
_PIECE = re.compile(r"[^*?.\[\]]+")
_CLIMBING = re.compile(r"~?/?(?:\.\./?)+\Z")
_MAX_PATH = 4096
_MAX_SURFACE_WORDS = 400
_SURFACE_WORD = re.compile(r"[^\s;|&<>()`]{2,200}")
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3}))"
)
_HOME_VARIABLE = re.compile(r"\$HOME\b|\$\{HOME\}|\$env:USERPROFILE|\$\{HOME[:%#/-][^}]{0,40}\}")
_QUOTES = str.maketrans("", "", "'\"\\")
_HOME = re.compile(r"/(?:home|users)/[^/]+|/(?:var/)?root", re.IGNORECASE)


@lru_cache(maxsize=2048)
def names_secret(path: str, *, glob: bool = False) -> bool:
    """Whether a path names, or a glob can match, something that holds credentials."""
    if len(path) > _MAX_PATH:
        return True
    if (magic := _MAGIC.match(path)) and names_secret(path[magic.end() :], glob=glob):
        return True
    folder, slash, name = path.rpartition("/")
    path = f"{folder}{slash}x" if is_harmless_name(name) else path
    search = sensitive().path.search
    normal = posixpath.normpath(path.replace("\\", "/")) if path else ""
    if search(path) or (normal != path and search(normal)) or _is_key_or_credential(normal):
        return True
    return glob and _GLOB.search(path) is not None and _glob_names_secret(normal)


@lru_cache(maxsize=1024)
def _is_key_or_credential(path: str) -> bool:
    """What the facts about paths call a key or a credential is one here too."""
    kind = sensitive_class("/" + path.lstrip("/"), None) if path else None
    return kind in (PathClass.KEY, PathClass.CREDENTIAL)


def _glob_names_secret(path: str) -> bool:
    """Whether some component with a glob, between the others, can be a known name of a secret."""
    parts = path.split("/")
    absolute = path.startswith("/")
    parts = parts[absolute:]
    globs = [_GLOB.search(part) is not None for part in parts]
    if _lists_wide_root(parts, globs, absolute=absolute):
        return True
    for rooted, sample in sensitive().samples:
        places = min(len(parts) - len(sample), 64) + 1
        if rooted:
            places = min(places, 1) if absolute else 0
        for start in range(places):
            end = start + len(sample)
            if any(globs[start:end]) and _can_be_sample(parts[start:end], sample):
                return True
    return False


def _lists_wide_root(parts: list[str], globs: list[bool], *, absolute: bool) -> bool:
    """Whether all that a home directory or the system's root holds is meant: ``~/*/*``."""
    bare = len(parts)
    while bare and globs[bare - 1] and not parts[bare - 1].strip("*?"):
        bare -= 1
    if bare == len(parts):
        return False
    prefix = "/".join(parts[:bare])
    if absolute:
        return wide_root("/" + prefix)
    return bool(prefix) and wide_root(prefix)


def _can_be_sample(parts: list[str], sample: tuple[str, ...]) -> bool:
    alone = len(sample) == 1
    return all(_can_be(part, name, alone=alone) for part, name in zip(parts, sample, strict=True))


def _can_be(part: str, name: str, *, alone: bool) -> bool:
    """Whether a component can be a sample's: ``x`` is any name, ``x.`` any name with the suffix
    behind it.
    """
    if name == "x":
        return True
    if not _GLOB.search(part):
        return part.casefold() == name
    if name[0] == "." and part[0] != ".":
        return False  # a glob does not match a leading dot that is not written
    # "*" and "*.json" aim at nothing, nor does one letter: what they may find by chance is no
    # reason to warn.
    own = _GLOB.sub("", part)
    if alone and part[0] in "*?" and own[:1] == ".":
        part = "x" + part.lstrip("*?")
    elif alone and (not own or (name[0] != "." and len(own) < 2)):
        return False
    return may_match(part, name)


def aims_at_secret(pattern: str) -> bool:
    """Whether a pattern of names, as in ``find -name`` and ``rg -g``, aims at credentials."""
    plain = pattern.replace("\\", "").replace(".*", "*").strip("^$")
    if plain.startswith("!") or (
        plain[:1] == "*" and set(_PIECE.findall(plain.casefold())) <= sensitive().ordinary
    ):
        return False
    parts = [part for part in plain.split("/") if len(part.strip("*?[]")) > 1]
    if names_secret(plain) or any(names_secret(part, glob=True) for part in parts):
        return True
    braced = plain.translate(str.maketrans("(){}", "||||"))
    alternatives = [part.strip("*.") for part in _SEPARATORS.split(braced)]
    return len(alternatives) > 1 and any(
        names_secret(part) or names_secret("x." + part) for part in alternatives
    )


def wide_root(path: str) -> bool:
    """Whether reading a directory recursively would read the credentials of a person or the
    system.
    """
    normal = posixpath.normpath(path) if path else ""
    if set(normal.split("/")) == {".."} or _CLIMBING.match(path):
        return True
    places = (
        absolute_readings(path) if not path.startswith("~") else [normal, *absolute_readings(path)]
    )
    return any(_is_wide(place) for place in places)


def _is_wide(place: str) -> bool:
    place = _HOME.sub("~", place, count=1) if _HOME.match(place) else place
    parts = place.casefold().split("/")
    for root in sensitive().wide_roots:
        names = root.split("/")
        if len(names) == len(parts) and all(
            name == "x" or may_match(part, name) for part, name in zip(parts, names, strict=True)
        ):
            return True
    return False


def is_listed(path: str) -> bool:
    """Whether a place may be listed without a warning although what it leads to is secret."""
    return sensitive().listed.search(path) is not None


def searches_secret(pattern: str) -> bool:
    """Whether a search pattern looks for credentials."""
    return sensitive().searched.search(pattern[:_MAX_PATH]) is not None


def asks_for_secret(program: str) -> bool:
    """Whether a jq program names a field that holds a credential."""
    return sensitive().fields.search(program[:_MAX_PATH]) is not None


def surface_words(text: str) -> list[str]:
    """The words of a text without quotes and backslashes, with braces and escapes expanded."""
    text = _ESCAPE.sub(_decoded, text) + " " + text
    text = _HOME_VARIABLE.sub("~", text.translate(_QUOTES)).replace("$~", "~")
    words: list[str] = []
    for match in _SURFACE_WORD.finditer(text):
        words.extend(alternatives(match[0].lstrip("$")))
        if len(words) >= _MAX_SURFACE_WORDS:
            break
    return [part for word in words for part in (word, word.partition("=")[2]) if len(part) > 1]


def _decoded(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    code = int(digits, 16) if digits else int(match[4], 8)
    return chr(code) if 0x20 < code < 0xD800 else " "
