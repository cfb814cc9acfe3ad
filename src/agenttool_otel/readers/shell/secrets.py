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
    r"\\"
    r"(?:"
    r"x(?P<byte>[0-9A-Fa-f]{1,2})"
    r"|u(?P<short>[0-9A-Fa-f]{1,4})"
    r"|U(?P<long>[0-9A-Fa-f]{1,8})"
    r"|(?P<octal>[0-7]{1,3})"
    r")"
)
_BASES = {"byte": 16, "short": 16, "long": 16, "octal": 8}
_HOME_VARIABLE = re.compile(
    r"\$HOME\b"
    r"|\$\{HOME\}"
    r"|\$env:USERPROFILE"
    # ${HOME:-/root}, ${HOME%/}
    r"|\$\{HOME[:%#/-][^}]{0,40}\}"
)
_BRACES_TO_BARS = str.maketrans("(){}", "||||")
_QUOTES = str.maketrans("", "", "'\"\\")
_HOME = re.compile(r"/(?:home|users)/[^/]+|/(?:var/)?root", re.IGNORECASE)


@lru_cache(maxsize=2048)
def names_secret(path: str, *, glob: bool = False) -> bool:
    """Whether a path names something that holds credentials.

    Args:
        path: the path, as a command line has it.
        glob: whether the shell expands it; then it also counts what it can match.
    """
    if len(path) > _MAX_PATH:
        return True
    # git show ':(top).env'
    magic = _MAGIC.match(path)
    if magic is not None and names_secret(path[magic.end() :], glob=glob):
        return True
    folder, slash, name = path.rpartition("/")
    if is_harmless_name(name):
        path = f"{folder}{slash}x"
    normal = ""
    if path:
        normal = posixpath.normpath(path.replace("\\", "/"))
    if _is_known(path) or (normal != path and _is_known(normal)):
        return True
    if _is_key_or_credential(normal):
        return True
    if not glob or _GLOB.search(path) is None:
        return False
    return _glob_names_secret(normal)


def _is_known(path: str) -> bool:
    """Whether the table of credentials has a path."""
    return sensitive().path.search(path) is not None


@lru_cache(maxsize=1024)
def _is_key_or_credential(path: str) -> bool:
    """What the facts about paths call a key or a credential is one here too."""
    if not path:
        return False
    kind = sensitive_class("/" + path.lstrip("/"), None)
    return kind in (PathClass.KEY, PathClass.CREDENTIAL)


def _glob_names_secret(path: str) -> bool:
    """Whether some component with a glob, between the others, can be a known name of a secret."""
    absolute = path.startswith("/")
    parts = path.removeprefix("/").split("/")
    globs = [_GLOB.search(part) is not None for part in parts]
    if _lists_wide_root(parts, globs, absolute=absolute):
        return True
    for rooted, sample in sensitive().samples:
        for start in _places_of(sample, len(parts), rooted=rooted, absolute=absolute):
            end = start + len(sample)
            if any(globs[start:end]) and _can_be_sample(parts[start:end], sample):
                return True
    return False


def _places_of(sample: tuple[str, ...], parts: int, *, rooted: bool, absolute: bool) -> range:
    """Return where in a path of so many parts a sample may begin."""
    places = min(parts - len(sample), 64) + 1
    if not rooted:
        return range(places)
    # /etc/shadow is no part of backup/etc/shadow
    if not absolute:
        return range(0)
    return range(min(places, 1))


def _lists_wide_root(parts: list[str], globs: list[bool], *, absolute: bool) -> bool:
    """Whether all that a home directory or the system's root holds is meant: ``~/*/*``."""
    end = len(parts)
    while end and globs[end - 1] and not parts[end - 1].strip("*?"):
        end -= 1
    if end == len(parts):
        return False
    prefix = "/".join(parts[:end])
    if absolute:
        return wide_root("/" + prefix)
    return bool(prefix) and wide_root(prefix)


def _can_be_sample(parts: list[str], sample: tuple[str, ...]) -> bool:
    pairs = zip(parts, sample, strict=True)
    alone = len(sample) == 1
    return all(_can_be(part, name, alone=alone) for part, name in pairs)


def _can_be(part: str, name: str, *, alone: bool) -> bool:
    """Whether a component can be a sample's: ``x`` is any name, ``x.`` any name with the suffix
    behind it.
    """
    if name == "x":
        return True
    if not _GLOB.search(part):
        return part.casefold() == name
    # a glob does not match a leading dot that is not written
    if name[0] == "." and part[0] != ".":
        return False
    if not alone:
        return may_match(part, name)
    written = _GLOB.sub("", part)
    # *.pem is any name with that suffix, as x.pem is
    if part[0] in "*?" and written.startswith("."):
        return may_match("x" + part.lstrip("*?"), name)
    # "*" and "*.json" aim at nothing, nor does one letter: what they may find by chance is no
    # reason to warn.
    if not written:
        return False
    if name[0] != "." and len(written) < 2:
        return False
    return may_match(part, name)


def aims_at_secret(pattern: str) -> bool:
    """Whether a pattern of names, as in ``find -name`` and ``rg -g``, aims at credentials."""
    plain = pattern.replace("\\", "").replace(".*", "*").strip("^$")
    # rg -g '!.env'
    if plain.startswith("!") or _is_ordinary(plain):
        return False
    if names_secret(plain):
        return True
    for part in plain.split("/"):
        if len(part.strip("*?[]")) > 1 and names_secret(part, glob=True):
            return True
    # *.{pem,key}, and (pem|key) of a regular expression
    braced = plain.translate(_BRACES_TO_BARS)
    names = [part.strip("*.") for part in _SEPARATORS.split(braced)]
    if len(names) == 1:
        return False
    return any(names_secret(name) or names_secret("x." + name) for name in names)


def _is_ordinary(pattern: str) -> bool:
    """Whether a pattern holds nothing but words of ordinary names: ``*.json``."""
    if not pattern.startswith("*"):
        return False
    return sensitive().ordinary.issuperset(_PIECE.findall(pattern.casefold()))


def wide_root(path: str) -> bool:
    """Whether reading a directory recursively would read the credentials of a person or the
    system.
    """
    normal = ""
    if path:
        normal = posixpath.normpath(path)
    # grep -r key ../..
    if set(normal.split("/")) == {".."} or _CLIMBING.match(path):
        return True
    if path.startswith("~") and _is_wide(normal):
        return True
    return any(map(_is_wide, absolute_readings(path)))


def _is_wide(place: str) -> bool:
    # /home/me and /root are homes
    if _HOME.match(place):
        place = _HOME.sub("~", place, count=1)
    parts = place.casefold().split("/")
    for root in sensitive().wide_roots:
        names = root.split("/")
        if len(names) == len(parts) and all(map(_may_be, parts, names)):
            return True
    return False


def _may_be(part: str, name: str) -> bool:
    """Whether a component can be a wide directory's, in which ``x`` is any name."""
    return name == "x" or may_match(part, name)


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
    """Return the words of a text without quotes and backslashes, with braces and escapes expanded.

    The value of ``NAME=value`` is a word too.
    """
    # $'\x2eenv' is .env, and in another shell it is what is written
    text = _ESCAPE.sub(_decoded, text) + " " + text
    text = _HOME_VARIABLE.sub("~", text.translate(_QUOTES)).replace("$~", "~")
    words: list[str] = []
    for match in _SURFACE_WORD.finditer(text):
        words.extend(alternatives(match[0].lstrip("$")))
        if len(words) >= _MAX_SURFACE_WORDS:
            break
    found = []
    for word in words:
        for part in (word, word.partition("=")[2]):
            if len(part) > 1:
                found.append(part)
    return found


def _decoded(match: re.Match[str]) -> str:
    """Return the character of an escape, or a blank where it is none that a name holds."""
    code = 0
    for kind, digits in match.groupdict().items():
        if digits is not None:
            code = int(digits, _BASES[kind])
    if 0x20 < code < 0xD800:
        return chr(code)
    return " "
