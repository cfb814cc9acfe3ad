"""What looks like a secret and is none: placeholders, examples, variables, code, words, versions.

Scanners that lack this drown in false positives; scanners that overdo it leak. So there are two levels: ``is_template``
holds for any rule (nothing secret is there), ``plausible_token`` says whether a value could be a machine-made
credential and is asked only where nothing but a weak key name speaks for it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.words import byte_words, reads_like_words, words

_TEMPLATE = re.compile(
    rb"""
      \s*
    | \$\(.*                                   # $(command)
    | \$?\{.*\}                                # ${VAR}, {name}, {{ template }}
    | \$\{\{.*
    | \{\{.*
    | \$[A-Z_][A-Z0-9_]*  | \$[a-z_]+  | \$\d  # $VAR
    | \$                                       # what is left of ${...} when braces end a value
    | %\w*% | %\(?\w*\)?[sdrv]                 # %VAR%, %s, %(name)s
    | @[A-Za-z_][\w.-]*@ | \#\{.*\}
    | <[^<>]*> | &lt;.*&gt;
    | \[[a-zA-Z _-]*\]
    | !(?:vault|Ref|Sub|GetAtt|ImportValue|secret|env\w*|include|reference)(?:\s.*)?   # tags of YAML
    | (?:\\?\*)+ | [xX*.\-_\#?\xe2\x80\xa2\xa6]+   # xxxx, ****, ....
    """,
    re.VERBOSE | re.DOTALL,
)
# where a secret is kept, as secret managers and configuration tools write it
_REFERENCE = re.compile(
    rb"(?:op|vault|ssm|secretsmanager|aws-?sm|gcp-?sm|gcpsecretmanager|az-?kv|akv|keyvault|sops|bws|doppler|infisical"
    rb"|awssm|gsm|file|env|keyring|keychain|ref\+\w+)://|arn:aws[\w-]*:(?:secretsmanager|ssm):"
    rb"|@Microsoft\.KeyVault\(|\{\{resolve:|env:[A-Za-z_]\w*\Z|file:[~./][\w./-]*\Z|fd:\d+\Z"
)
_DOTS = (b".", b"\xa6")
_GRAMMAR: Final = words("grammar")
# "eyJhbGciOi...": what an example or a log shows of a credential
_ELIDED = re.compile(rb"[A-Za-z0-9_\-.]{0,16}(?:\.\.\.|\xe2\x80\xa6)")
_CODE = re.compile(
    rb"(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|(?:os\.environ|process\.env|getenv|System\.getenv|env\.|self\.|this\.|config\.|"
    rb"settings\.|secrets\.|vault:|ssm:|secretsmanager:|op://|ref\+|!Ref|!Sub|valueFrom).*"
    rb"|(?:Get|Read|New|ConvertTo|ConvertFrom|Import|Select|Unprotect)-[A-Z]\w+)"
)
_UPPER_WORDS = re.compile(rb"[A-Z]{2,}(?:[_-][A-Z]{2,})+")
_FILLER = re.compile(rb"[xX]{8,}|\*{4,}|\#{4,}|\.{4,}|X{5,}-X{4,}|x{5,}-x{4,}")
_SAME = re.compile(rb"(.)\1{9,}", re.DOTALL)
_VERSION = re.compile(rb"(?:^|[-_@:v/])v?\d+\.\d+(?:\.\d+)*(?:[-_.+][A-Za-z0-9.]+)?$")
_WORDS: Final = byte_words("stand_ins")
_HINTS = (
    b"your_", b"your-", b"_here", b"-here", b"<your", b"placeholder", b"changeme", b"change_me", b"change-me",
    b"replace_me", b"replaceme", b"insert_", b"put_your", b"dummy", b"todo", b"redacted", b"my-bot-token",
    b"not-a-real",
    b"notareal", b"tokenhere", b"stringhere", b"keyhere",
)  # fmt: skip
_TOKEN_CHARS = re.compile(rb"[A-Za-z0-9_\-.=+/~%|]+")
_SEPARATORS = re.compile(rb"[-_./=|~+]+")
_PRINTED = re.compile(rb"[\x21-\x7e]+")
_SYMBOLS_OF_TEXT = re.compile(rb"://|[{}<>]|^[\w.:]+\(.*\)$|^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$|^[\w-]+(?:[:.,/][\w-]+)+$")
_SIGNS = re.compile(rb"[^\w:.,/-]")
_DIGIT = re.compile(rb"[0-9]")
_PATH = re.compile(rb"(?:\.{0,2}|~)/(?:\.?(?:[A-Za-z]|[A-Z]?[a-z]{1,14}(?:[-_]?[a-z0-9]{1,14}){0,4})(?:[/.]|$)|$)")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def entropy(value: bytes) -> float:
    """Shannon entropy in bits per byte."""
    size = len(value)
    if not size:
        return 0.0
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def has_letter_sequence(value: bytes, least: int = 8) -> bool:
    """Whether it has a run of letters in alphabetical order (``abcdefgh``), as only hand-made examples do."""
    run = 1
    before = 0
    for byte in value[:512].lower():
        run = run + 1 if byte == before + 1 and 97 <= before < 122 else 1
        if run >= least:
            return True
        before = byte
    return False


def is_filler(value: bytes) -> bool:
    """Whether a value of a known format is filled with x, stars, one repeated character or ``abcdef``."""
    if _FILLER.search(value):
        return True
    same = _SAME.search(value)
    if same is not None and (same.end() - same.start()) * 2 >= len(value):
        return True
    return has_letter_sequence(value)


def is_template(value: bytes) -> bool:
    """Whether nothing secret is there: empty, a variable, a template, a run of stars, a word that only stands in."""
    if len(value) > 256:
        return False
    return (
        _TEMPLATE.fullmatch(value) is not None
        or value.lower() in _WORDS
        or (value[-1:] in _DOTS and _ELIDED.fullmatch(value) is not None)
        or (b":" in value[:64] and _REFERENCE.match(value) is not None)
        or (value.startswith(b"projects/") and b"/secrets/" in value)
    )


def is_stand_in(value: bytes) -> bool:
    """Whether it says itself that it only stands in (``YOUR_API_KEY_HERE``)."""
    return _template_word(value[:256])


def is_sentence(text: str) -> bool:
    """Whether it is a sentence about something, and not a passphrase: words, and grammar among them."""
    parts = text.lower().split(maxsplit=40)
    return 2 <= len(parts) <= 40 and not _GRAMMAR.isdisjoint(parts)


@lru_cache(maxsize=4096)
def _template_word(value: bytes) -> bool:
    lower = value.lower()
    return any(hint in lower for hint in _HINTS) or _UPPER_WORDS.fullmatch(value) is not None


def is_code(value: bytes) -> bool:
    """Whether an unquoted value of source text is an expression (``config.password``, ``os.environ[...]``)."""
    return _CODE.fullmatch(value) is not None


def _has_symbols(value: bytes) -> bool:
    """Whether it could be a generated secret with any printed characters: no address, no path, no expression."""
    return (
        len(value) >= 12
        and _PRINTED.fullmatch(value) is not None
        and has_digit(value)
        and not (is_template(value) or _template_word(value) or is_filler(value) or is_path(value))
        and (_SYMBOLS_OF_TEXT.search(value) is None or (len(value) >= 32 and len(set(_SIGNS.findall(value))) >= 4))
        and entropy(value) >= 3.0
    )


def has_digit(value: bytes) -> bool:
    """Whether a digit occurs."""
    return _DIGIT.search(value) is not None


def is_path(value: bytes) -> bool:
    """Whether it is a path from a root, the home or the working directory, and not base64 that starts with a slash."""
    return _PATH.match(value) is not None


def is_word_like(value: bytes) -> bool:
    """Whether it is put together from words, numbers and a version, as names of things are."""
    if _UUID.fullmatch(value):
        return False
    if _VERSION.search(value):
        return True
    parts = [part for part in _SEPARATORS.split(value) if part]
    if len(parts) < 2:
        return False
    plain = sum(len(p) for p in parts if _is_word(p) or (p.isdigit() and len(p) <= 8))
    return plain * 3 >= sum(map(len, parts)) * 2


def _is_word(part: bytes) -> bool:
    """Letters with vowels in them, or an upper-case abbreviation with at most two digits behind."""
    core = part.rstrip(b"0123456789")
    if not core.isalpha() or len(part) - len(core) > 4:
        return False
    if len(core) <= 4:
        return True
    lower = core.lower()
    if not (core.islower() or core.isupper() or core.istitle()):
        return len(part) == len(core) and _CAMEL.fullmatch(core) is not None
    vowels = sum(lower.count(v) for v in b"aeiouy")
    return 0.2 <= vowels / len(lower) <= 0.7


_CAMEL = re.compile(rb"[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{1,})*")


def plausible_token(value: bytes, *, least: int = 10, named: bool = False, quoted: bool = False) -> bool:
    """Whether a value could be a machine-made credential."""
    value = value.removeprefix(b"base64:")
    if len(value) < least:
        return False
    if _TOKEN_CHARS.fullmatch(value) is None:
        return quoted and _has_symbols(value)
    if not has_digit(value):
        long = named and len(value) >= 20 and value.islower() and value.isalpha()
        if not long and reads_like_words(value):
            return False
    if (
        value.endswith((b"EXAMPLE", b"EXAMPLEKEY"))
        or is_template(value)
        or _template_word(value)
        or is_filler(value)
        or is_word_like(value)
    ):
        return False
    if value.isdigit() and not named:
        return len(value) >= 12 and entropy(value) >= 2.2
    bits = entropy(value)
    return bits >= (2.0 if len(value) < 16 else 2.4)
