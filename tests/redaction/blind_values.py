"""Blind sets: texts that were written without a look at the rules, filled with random values.

``[[kind:size]]`` is a secret that has to go, ``((kind:size))`` a harmless value that stays, so that
no secret-looking string is committed.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import tomllib
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from mnemonic import Mnemonic

BLIND_SETS = Path(__file__).parent / "blind_sets"
_HOLE = re.compile(r"\[\[(\w+)(?::(\d+))?\]\]|\(\((\w+)(?::(\d+))?\)\)")
_WORDS = [
    "river",
    "stone",
    "amber",
    "falcon",
    "copper",
    "meadow",
    "winter",
    "signal",
    "harbor",
    "pepper",
    "rocket",
]
_ALNUM = string.ascii_letters + string.digits
_WALLET_WORDS = Mnemonic("english").wordlist


class Row(NamedTuple):
    """One text of a blind set."""

    group: str
    text: str
    secrets: tuple[str, ...]


def _jwt(rng: random.Random, size: int) -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = part({"sub": str(rng.randrange(10**9)), "iat": 1_700_000_000})
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{claims}.{_from(rng, _ALNUM + '-_', 43)}"


def _from(rng: random.Random, alphabet: str, size: int) -> str:
    while True:
        text = "".join(rng.choice(alphabet) for _ in range(size))
        # a random value of this length without a digit or a letter would be another kind of value
        if (
            size < 10
            or alphabet.isdigit()
            or (any(c.isdigit() for c in text) and any(c.isalpha() for c in text))
        ):
            return text


def _base64(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def _password(rng: random.Random, size: int) -> str:
    word = rng.choice(_WORDS).capitalize() + rng.choice(_WORDS).capitalize()
    return f"{word}{rng.choice('-_.!+')}{rng.randrange(100, 9999)}"


def _wallet(rng: random.Random, size: int) -> str:
    return Mnemonic("english").to_mnemonic(rng.randbytes(size * 4 // 3))


def _pem(rng: random.Random, size: int) -> str:
    body = _base64(rng, size)
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {'PRIVATE'} KEY-----\n{lines}\n-----END {'PRIVATE'} KEY-----"


_KINDS = {
    "hex": lambda rng, n: _from(rng, "0123456789abcdef", n),
    "HEX": lambda rng, n: _from(rng, "0123456789ABCDEF", n),
    "alnum": lambda rng, n: _from(rng, _ALNUM, n),
    "lower": lambda rng, n: _from(rng, string.ascii_lowercase + string.digits, n),
    "letters": lambda rng, n: "".join(rng.choice(string.ascii_lowercase) for _ in range(n)),
    "upper": lambda rng, n: _from(rng, string.ascii_uppercase + string.digits, n),
    "digits": lambda rng, n: rng.choice("123456789") + _from(rng, string.digits, n - 1),
    "url": lambda rng, n: _from(rng, _ALNUM + "-_", n),
    "b64": _base64,
    "b64url": lambda rng, n: base64.urlsafe_b64encode(rng.randbytes(n)).decode().rstrip("="),
    "b64pw": lambda rng, n: base64.b64encode(_password(rng, 0).encode()).decode(),
    "strong": lambda rng, n: (
        rng.choice(string.ascii_letters) + _from(rng, _ALNUM + "!#%^*-_+", n - 1)
    ),
    "pw": _password,
    "word": lambda rng, n: rng.choice(_WORDS),
    "uuid": lambda rng, n: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "wallet": _wallet,
    "jwt": _jwt,
    "pem": _pem,
    "group": lambda rng, n: " ".join(
        "".join(rng.choice(string.ascii_lowercase) for _ in range(4)) for _ in range(n)
    ),
    "octet": lambda rng, n: str(rng.randrange(1, 255)),
    "join": lambda rng, n: "",
    "serial": lambda rng, n: str(rng.randrange(10 ** (n - 1), 10**n)),
}


def blind_rows(name: str, part: str) -> list[Row]:
    """The rows of one set, filled with values that are drawn from the set's own seed.

    Args:
        name: which set, as its file in ``blind_sets`` is named.
        part: ``secrets`` or ``harmless``.
    """
    blind_set = tomllib.loads((BLIND_SETS / f"{name}.toml").read_text("utf-8"))
    seed = blind_set["seed"]
    rows = []
    for group, templates in blind_set[part].items():
        for index, template in enumerate(templates):
            rng = random.Random(f"{seed}/{part}/{group}/{index}")
            rows.append(filled(group, template, rng))
    return rows


def filled(group: str, template: str, rng: random.Random) -> Row:
    """A template with values in its holes."""
    secrets: list[str] = []

    def fill(match: re.Match[str]) -> str:
        kind, size, plain, plain_size = match.groups()
        value = str(_KINDS[kind or plain](rng, int(size or plain_size or 0)))
        if kind:
            secrets.append(value)
        return value

    return Row(group, _HOLE.sub(fill, template), tuple(secrets))
