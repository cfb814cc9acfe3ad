"""What is a credential by its shape, in the path of a URL or whatever its parameter is called.

The text that is searched has blanks for the dots of the host: ``infura io /v3/...``.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from functools import cache
from typing import Final

from agenttool_otel.values.tables import load_table

_WORD_START: Final = "(?<![A-Za-z0-9])"

_AWS_KEY: Final = "AKIA[A-Z2-7]{16}(?![A-Z0-9])"
# X-Amz-Credential names the key's identifier alone, which is no secret
_AWS_KEY_OF_NO_SIGNATURE: Final = f"(?<![Cc]redential=)(?<![Kk]ey[Ii]d=)(?<![A-Z0-9]){_AWS_KEY}"
_GITHUB_TOKEN: Final = "github_pat_[A-Za-z0-9_]{50}"
_GITHUB_FILE_TOKEN: Final = "(?<![A-Z0-9])GHSAT0[A-Z0-9]{20}"

_DRAWN_AFTER_SK: Final = (
    "(?:ant-|proj-)?(?=[a-z0-9_-]{0,99}[A-Z])(?=[A-Za-z_-]{0,99}[0-9])[A-Za-z0-9_-]{32}"
)
_MODEL_KEY: Final = f"{_WORD_START}sk-(?:[0-9a-f]{{32}}|{_DRAWN_AFTER_SK})"

_TELEGRAM_BOT: Final = f"{_WORD_START}bot[0-9]{{6,12}}:[A-Za-z0-9_-]{{33}}"
_GOOGLE_KEY: Final = "AIza[A-Za-z0-9_-]{35}"
_PRIVATE_KEY: Final = "-----BEGIN(?:[ +]|%20)[A-Z+ %0-9]{0,30}PRIVATE"
_PRIVATE_KEY_IN_BASE64: Final = "LS0tLS1CRUdJTi[A-Za-z0-9+/%]{20}"

_INVENTED_PASSWORD: Final = "password|passwd|pass|pw|root|postgres|secret|user|admin"
_MASK: Final = r"\*+|x+|<[^>@]*>|[0-9]{1,5}"
_USER: Final = r"[a-z][a-z0-9+.-]{1,20}://[^/\s:@?#&]{1,64}:"
_PASSWORD: Final = rf"(?!(?:{_INVENTED_PASSWORD}|{_MASK})@)[^/\s@?#&+]{{1,64}}@"
_PASSWORD_IN_URL: Final = f"(?i:{_USER}{_PASSWORD})"
"""``postgres://me:hT7kQ9@db``, not ``postgres://me:password@db``."""

_VENDORS: Final = (
    "whsec_",
    "shp(?:at|ss|ca|pa)_",
    "sbp_",
    "lin_api_",
    "AT[AC]TT3x",
    "nvapi-",
    "gsk_",
    "xkeysib-",
    "PMAK-",
    "AGE-SECRET-KEY-1",
    r"hv[sb]\.",
    "dckr_pat_",
    "oy2",
    "pscale_tkn_",
    "EZ[AT]K",
    "sntrys_",
    "glsa_",
    "figd_",
    "ntn_",
    "rk_test_",
    "sk_test_",
)
_LETTER_AND_DIGIT: Final = "(?=[A-Za-z0-9]{0,60}[0-9])(?=[A-Za-z0-9]{0,60}[A-Za-z])"
_VENDOR_TOKEN: Final = f"{_WORD_START}(?:{'|'.join(_VENDORS)}){_LETTER_AND_DIGIT}[A-Za-z0-9]{{20}}"

_SLACK_HOOK: Final = "/services/T[A-Z0-9]{7,12}/B[A-Z0-9]{7,12}/[A-Za-z0-9]{20}"
_DISCORD_HOOK: Final = "/api/webhooks/[0-9]{15,21}/[A-Za-z0-9_-]{30}"

_TOKEN_OWNERS: Final = (
    "access|auth|id|refresh|bearer|api|app|private|session|build|x|circle|vercel|deploy"
)
_RECOVERY_LINKS: Final = "(?:reset_?)?password(?:_?reset)?|reset|recover(?:y)?|unlock"
_MEMBERSHIP_LINKS: Final = "invit(?:e|ation)|sign_?up|registration|activat(?:e|ion)"
_PROOF_LINKS: Final = "confirm(?:ation)?|verif(?:y|ication)|magic(?:_?link)?|login|one_?time"
_LINK_KINDS: Final = f"{_RECOVERY_LINKS}|{_MEMBERSHIP_LINKS}|{_PROOF_LINKS}"
"""What the link in a mail is for, whose token is the right to do it: ``?reset_token=...``."""
_TOKEN_USES: Final = "sso|share|download|upload|personal|job|ci|trigger|hook"
_KEY_NAMES: Final = "api_?key|app_?key|appid|subscription_?key|license_?key"
_SESSION_NAMES: Final = "session_?id|sessid|phpsessid|jsessionid"
_TOKEN_NAMES: Final = f"token|{_KEY_NAMES}|{_SESSION_NAMES}"
_TOKEN_PARAMETER: Final = (
    f"(?i:[?&;#](?:(?:{_TOKEN_OWNERS}|{_LINK_KINDS}|{_TOKEN_USES})[_-]?)?(?:{_TOKEN_NAMES})=)"
)
_DRAWN_VALUE: Final = "(?=[^&#]{0,200}[0-9])(?=[^&#]{0,200}[a-z])"
_INVENTED_VALUE: Final = (
    r"(?i:(?!0x|your|my|example|x{3}|<|\{|placeholder|test|demo|dummy|changeme|cs_(?:test|live)))"
)
_TOKEN_IN_QUERY: Final = rf"{_TOKEN_PARAMETER}{_DRAWN_VALUE}{_INVENTED_VALUE}[^&#\s/,]{{12}}"
"""``?access_token=hT7kQ92mzXw0``, not ``?token=your-token-here-1``."""

_ACCESS_KEY_NAME: Final = (
    r"(?i:(?:secret|api|access|private)_{1,2}(?:access_{1,2})?key[\"']?[-=: /]{1,3})"
)
_MIXED_LETTERS: Final = (
    "(?=[a-z0-9/+]{0,99}[A-Z])(?=[A-Z0-9/+]{0,99}[a-z])(?=[A-Za-z/+]{0,99}[0-9])"
)
_ACCESS_KEY: Final = f"{_ACCESS_KEY_NAME}{_MIXED_LETTERS}[A-Za-z0-9/+]{{20}}"

_PASSWORD_VARIABLES: Final = "SECRET(?:_ACCESS)?(?:_KEY)?|PASSWORD|PASSWD|_PWD|_PASS"
_TOKEN_VARIABLES: Final = "(?:AUTH|ACCESS|API|BOT|GITHUB|GH|HF|SLACK|NPM)_TOKEN"
_KEY_VARIABLES: Final = "(?:API|ACCESS|PRIVATE|AUTH|ENCRYPTION|SIGNING)_KEY"
_ASSIGNED_VARIABLE: Final = (
    f"(?:{_PASSWORD_VARIABLES}|{_TOKEN_VARIABLES}|{_KEY_VARIABLES})="
    r"(?=[^&\s]{0,200}[0-9])(?![Yy]our|xxx)[^&\s]{8}"
)
_EXPANDED_VARIABLE: Final = r"\$[{(][A-Z0-9_]{0,40}(?:SECRET|TOKEN|PASSW|CREDENTIAL|_KEY)"
_PASSWD_LINE: Final = r"root:[^:\s]{0,120}:0:0:[^:\n]{0,40}:/"

_WEATHER_KEY: Final = "app_?id=[0-9a-f]{32}"
_MATRIX_PARAMETER: Final = (
    "(?i:;(?:key|auth)=)(?=[^;/?]{0,60}[0-9])(?=[^;/?]{0,60}[a-z])[A-Za-z0-9]{20}"
)
_INFURA: Final = "infura io /(?:ws/)?v3/[0-9a-f]{32}"
_ALCHEMY: Final = "alchemy(?:api)? (?:com|io) /v[0-9]/[A-Za-z0-9_-]{20}"
_QUICKNODE: Final = "quiknode pro /[0-9a-f]{30}"

_QUERY: Final = r" /[^?]{0,1024}\?{1,2}(?:[^#]{0,1024}&)?"
_S3: Final = "s3[a-z0-9 -]{0,40}amazonaws com"
_AZURE_STORAGE: Final = "(?:blob|file|dfs|queue|table) core windows net"
_SIGNED_OBJECT: Final = f"(?:{_S3}|{_AZURE_STORAGE}){_QUERY}(?i:X-Amz-Signature|Signature|sig)="
_SIGNED_GOOGLE_OBJECT: Final = f"googleapis com{_QUERY}GoogleAccessId="
_ORACLE_OBJECT: Final = "objectstorage [a-z0-9 -]{1,40}oraclecloud com /p/[A-Za-z0-9_-]{16}"
_CLOUDSMITH: Final = "dl cloudsmith io /(?!public)[A-Za-z0-9]{14}"

_SCHEME: Final = "(?i:(?<![a-z])(?:basic|bearer)[ +:]{1,3})"
_MIXED_VALUE: Final = (
    "(?=[A-Za-z+/=_.-]{0,60}[0-9])(?=[a-z0-9+/=_.-]{0,60}[A-Z])(?=[A-Z0-9+/=_.-]{0,60}[a-z])"
)
_AUTHORIZATION: Final = f"{_SCHEME}{_MIXED_VALUE}[A-Za-z0-9+/_.-]{{12}}"

_SHAPES: Final = (
    _AWS_KEY_OF_NO_SIGNATURE,
    _GITHUB_TOKEN,
    _MODEL_KEY,
    _TELEGRAM_BOT,
    _GOOGLE_KEY,
    _PRIVATE_KEY_IN_BASE64,
    _PRIVATE_KEY,
    _PASSWORD_IN_URL,
    _VENDOR_TOKEN,
    _SLACK_HOOK,
    _DISCORD_HOOK,
    _TOKEN_IN_QUERY,
    _ACCESS_KEY,
    _ASSIGNED_VARIABLE,
    _EXPANDED_VARIABLE,
    _PASSWD_LINE,
    _WEATHER_KEY,
    _MATRIX_PARAMETER,
    _INFURA,
    _ALCHEMY,
    _QUICKNODE,
    _SIGNED_OBJECT,
    _GITHUB_FILE_TOKEN,
    _SIGNED_GOOGLE_OBJECT,
    _AUTHORIZATION,
    _CLOUDSMITH,
    _ORACLE_OBJECT,
)

_SECRET_NAMES: Final = "secret|passw(?:or)?d|token|(?:api|access|private|secret)_?key"
_NAMED_SECRET: Final = re.compile(rf"(?i)(?<![a-z])(?:{_SECRET_NAMES})[\"']?\s*[=:]\s*\S")

_URL_SAFE: Final = str.maketrans("-_", "+/")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.translate(_URL_SAFE) + "===")


def _from_base32(text: str) -> bytes:
    padding = "=" * (-len(text) % 8)
    return base64.b32decode(text + padding, True)


_HIDDEN: Final = (
    (re.compile(r"[A-Za-z0-9+/_-]{24,4096}", re.ASCII), _from_base64),
    # a slash may as well be the path's
    (re.compile(r"[A-Za-z0-9+_-]{24,4096}", re.ASCII), _from_base64),
    (re.compile(r"(?:[0-9A-Fa-f]{2}){8,2048}", re.ASCII), bytes.fromhex),
    (re.compile(r"[A-Za-z2-7]{20,4096}", re.ASCII), _from_base32),
)
"""What may hide a credential, and how it is undone."""


def holds_credential(text: str) -> bool:
    """Return whether a text, or what it holds in Base64, Base32 or hexadecimal, has a credential by
    its shape or its name.
    """
    if _credential_value().search(text):
        return True
    for pattern, decode in _HIDDEN:
        for match in set(pattern.findall(text)):
            with suppress(ValueError):
                hidden = decode(match).decode()
                if _credential_value().search(hidden) or _NAMED_SECRET.search(hidden):
                    return True
    return False


@cache
def _credential_value() -> re.Pattern[str]:
    """Return the pattern of what is a credential by its shape."""
    tokens = "|".join(load_table("agenttool_otel.readers", "data/token_shapes.json").values())
    return re.compile("|".join([f"{_WORD_START}(?:{tokens})", *_SHAPES]))
