"""Patterns of what a file of configuration has where it holds a secret: ``db_password: hT7kQ9...``.

They are tried on the beginning of a file that is about to be read, so none looks far ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_KEY_OWNERS: Final = (
    "api|access|private|account|signing|encryption|auth|license|storage|sas|shared|app|master"
)
_KEY: Final = f"(?:{_KEY_OWNERS})[_-]?key"

LABEL_STARTS: Final = f"passw|passphrase|pwd|secret|token|{_KEY}|credential|ansible_"
"""How the name of a secret begins, in lower case."""

_TOKEN: Final = "token(?!i[sz]|s?[_-]?(?:per|limit|budget|count|max))"
"""``token``, but not ``tokenizer`` and ``tokens_per_minute``."""

_ANSIBLE: Final = "ansible_(?:ssh_|become_|sudo_)?pass"
_LABEL: Final = (
    f"(?:passw(?:or)?d|passphrase|pwd|secret(?!ar)|{_TOKEN}|{_KEY}|credential|{_ANSIBLE})"
)

_PLACES: Final = "file|path|url|uri|endpoint|name|id|type|length|ttl|expir|polic|ref|env|var"
_AMOUNTS: Final = "count|size|field|label|hint|placeholder|pattern|regex|min|max|format"
_MEANS: Final = "prefix|header|param|algorithm|provider|class|store|manager|alg|kind"
_STATES: Final = "required|enabled|rotation|version|arn|lifetime|validity|bits|source|scope|review"
_ABOUT: Final = f"{_PLACES}|{_AMOUNTS}|{_MEANS}|{_STATES}"
_NO_ATTRIBUTE: Final = rf"(?![\w.-]{{0,20}}(?:{_ABOUT})[\w.-]{{0,12}}[\"']?\s{{0,3}}(?:=>|[:=]))"
"""The name is of no attribute of a secret: ``password_file``, ``token_ttl``."""

_REST_OF_NAME: Final = r"[\w.-]{0,20}[\"']{0,2}\]?"
_SIGN: Final = r"[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}"
_XML_VALUE: Final = r"[\"'][ \t]{1,3}value[ \t]?=[ \t]?"
_JSON_VALUE: Final = r"(?:\{\s{0,20}\"value\"\s{0,3}:\s{0,3})?"
_ASSIGNS: Final = rf"(?:{_SIGN}|>|{_XML_VALUE}){_JSON_VALUE}[\"']{{0,2}}"
"""``password: x``, ``<password>x``, ``key="password" value="x"``, ``"password": {"value": "x"``."""

_INVENTED: Final = (
    "example|change[_-]?(?:me|it)|placeholder|your[_-]|dummy|sample|xxxx|todo|redacted"
)
_VAULTS: Final = r"vault|op|env|aws|ssm|ref\+\w*|arn|process\.env|os\.environ|secrets?"
_REFERENCES: Final = rf"(?:{_VAULTS}|config|settings|sha[0-9]{{1,3}}|urn|file|self|this)[:.-]"
_VERSION_OR_DATE: Final = r"v?[0-9]+(?:\.[0-9]+)+|[0-9]{4}-[0-9]{2}"
_NO_REFERENCE: Final = (
    rf"(?![/~.]|https?:|[\w-]{{0,40}}(?:{_INVENTED})|{_REFERENCES}|{_VERSION_OR_DATE})"
)
"""The value is no path, address, example, version, or place where the secret is kept."""

_DRAWN: Final = r"[^\s\"'<>{}\[\]$%(),;|\\]"
_DRAWN_VALUE: Final = f"(?={_DRAWN}{{0,80}}[0-9])(?={_DRAWN}{{0,80}}[A-Za-z]){_DRAWN}{{8}}"

ASSIGNED: Final = (
    f"(?i:(?<![:/]){_LABEL}{_NO_ATTRIBUTE}{_REST_OF_NAME}{_ASSIGNS}{_NO_REFERENCE}){_DRAWN_VALUE}"
)
"""The name of a secret, and a value that was drawn."""

_KUBERNETES_KIND: Final = r"(?m:^kind:\s{0,3}[\"']?Secret\b)"
_KUBERNETES_DATA: Final = r"\n(?:data|stringData):[ \t\r]{0,9}"
_KUBERNETES_VALUE: Final = r"\n\s{1,9}[\w.-]{1,80}:\s{1,3}[\"']?[A-Za-z0-9+/=_-]{8}"
KUBERNETES_SECRET: Final = (
    f"{_KUBERNETES_KIND}(?s:.{{0,2000}}?){_KUBERNETES_DATA}{_KUBERNETES_VALUE}"
)
"""A manifest of a Secret with its data."""


def data_name(endings: Iterable[str]) -> str:
    """Return the pattern of the names of files that hold configuration or data.

    Args:
        endings: the endings of such files, each a regular expression.
    """
    # a file without an ending, or whose only dot is the first letter: "config", ".npmrc"
    return rf"[^.]+|\.[^.]+|.*\.(?:{'|'.join(endings)})"
