"""Secrets that exist for one run only, and a search that finds any eight characters of them in any
usual encoding.
"""

from __future__ import annotations

import base64
import random
import re
import string
from dataclasses import dataclass, field

_WINDOW = 8
_RUNS = re.compile(rb"[A-Za-z0-9+/_-]{8,}")


@dataclass
class Canaries:
    """Makes secrets and looks for them.

    Attributes:
        seed: seed of the run; a failure names it.
        made: the secret part of each canary by its name.
    """

    seed: int
    made: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._known: dict[bytes, str] = {}
        self._count = 0
        self._clean_runs: set[bytes] = set()

    def letters(self, count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        while True:
            text = "".join(self._random.choices(alphabet, k=count))
            if any(char.isdigit() for char in text) or not any(char.isdigit() for char in alphabet):
                return text

    def _keep(self, name: str, secret: str) -> str:
        name = f"{name}#{len(self.made)}"
        self.made[name] = secret
        return secret

    # shapes that redaction knows wherever they stand

    def github(self, where: str) -> str:
        return "gh" + "p_" + self._keep(f"github in {where}", self.letters(36))

    def aws(self, where: str) -> str:
        return (
            "AK"
            + "IA"
            + self._keep(f"aws in {where}", self.letters(16, string.ascii_uppercase + "234567"))
        )

    def jwt(self, where: str) -> str:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
        body = (
            base64.urlsafe_b64encode(b'{"sub":"' + self.letters(12).encode() + b'"}')
            .decode()
            .rstrip("=")
        )
        return f"{head}.{body}." + self._keep(f"jwt in {where}", self.letters(43))

    def pem(self, where: str) -> str:
        lines = [self._keep(f"pem in {where}", self.letters(64)) for _ in range(6)]
        kind = "RSA PRIV" + "ATE KEY"
        return f"-----BEGIN {kind}-----\n" + "\n".join(lines) + f"\n-----END {kind}-----\n"

    def url(self, where: str) -> str:
        return f"postgresql://app:{self._keep(f'userinfo in {where}', self.letters(20))}@db.internal:5432/main"

    # values that only their surroundings betray

    def word(self, where: str) -> str:
        """A value like any other."""
        return self._keep(f"word in {where}", self.letters(18, string.ascii_lowercase))

    def password(self, where: str) -> str:
        return self._keep(f"password in {where}", self.letters(16))

    def every(self, where: str) -> str:
        """A text with a secret of every shape that is known wherever it stands."""
        return (
            f"key {self.github(where)} and {self.aws(where)}, token {self.jwt(where)}; at {self.url(where)}\n"
            f"{self.pem(where)}\nAuthorization: Bearer {self.password(where)}\n"
            f"DB_PASSWORD={self.password(where)}\nmysql --password={self.password(where)} -u root\n"
            f"https://example.com/cb?access_token={self.password(where)}&page=2\n"
        )

    def found_in(self, place: str, data: str | bytes) -> list[str]:
        """Return what was found in some output, and where.

        Args:
            place: what the output is.
            data: the output.
        """
        raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
        windows = self._windows()
        hits: dict[str, str] = {}
        for run in set(_RUNS.findall(raw)) - self._clean_runs:
            for start in range(len(run) - _WINDOW + 1):
                name = windows.get(run[start : start + _WINDOW]) or windows.get(
                    run[start : start + 2 * _WINDOW]
                )
                if name is not None:
                    at = raw.index(run)
                    hits[name] = (
                        f"seed {self.seed}: {name} in {place}: ...{raw[max(0, at - 60) : at + 60]!r}"
                    )
                    break
            else:
                self._clean_runs.add(run)
        return list(hits.values())

    def _windows(self) -> dict[bytes, str]:
        if self._count != len(self.made):
            self._count = len(self.made)
            self._known = {}
            for name, secret in self.made.items():
                # eight hexadecimal digits are found by chance in ids, so that form takes twice as
                # many
                hexadecimal = secret.encode().hex().encode()
                forms = (
                    (secret.encode(), _WINDOW),
                    (_base64(secret), _WINDOW),
                    (hexadecimal, 2 * _WINDOW),
                )
                for form, size in forms:
                    for start in range(len(form) - size + 1):
                        self._known[form[start : start + size]] = name
            self._clean_runs = set()
        return self._known


def _base64(secret: str) -> bytes:
    return base64.b64encode(secret.encode()).rstrip(b"=")
