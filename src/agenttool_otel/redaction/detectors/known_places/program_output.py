"""What programs print."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    LINE_END,
    OPTIONAL_QUOTE,
    OPTIONAL_QUOTE_OR_TICK,
    QUOTE,
    QUOTED_VALUE,
    TO_NEXT_LINE,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

HAS_BEEN_MADE: Final = (
    r"\b(?:reset|changed|generated|created|updated|set|erstellt|zurückgesetzt)"
    r"\b[^\r\n]{0,60}"
)
NEW_VALUE_LABEL: Final = (
    r"(?:(?:new|your|neuer|neues)?[ \t]?(?:value|password|passwort|wert|one)"
    r"[ \t]*[:=][ \t]*)?"
)
CHANGED_THINGS: Final = "(?:password|passphrase|passcode|secret|token|(?:api|access) key)"
CAT_AUTH_FILE: Final = r"\bcat [^\s]*(?:\.auth|auth\.txt|userpass\S*|auth-user-pass)[ \t]*\r?\n"
LONG_WORD: Final = r"([^\s:\"'<>{}]{12,128})"

STATEMENTS: Final = (
    Statement(
        # A temporary password is generated for root@localhost: ...
        id="generated_password",
        keywords=("is generated",),
        pattern=r"(?i)\bpassword[ \t]+is[ \t]+generated\b[^\r\n:]{0,40}:[ \t]*(\S{6,64})",
    ),
    Statement(
        # Temporary password is: root@localhost: ...
        id="generated_password",
        keywords=("temporary password", "initial password", "generated password"),
        pattern=(
            r"(?i)\b(?:temporary|initial|generated)[ \t]+password\b[^\r\n:]{0,40}:[ \t]*"
            r"[\w.-]{1,64}@[\w.-]{1,80}:[ \t]*(\S{6,64})"
        ),
    ),
    Statement(
        # A new password was generated:\n...
        id="generated_password",
        keywords=("password", "passphrase", "passwort", "credential"),
        prefilter=(
            r"passw[^\r\n]{1,120}(?:reset|changed|generated|created|updated|set|erstellt"
            r"|zurückgesetzt)[^\r\n]{0,60}\r?\n"
        ),
        pattern=(
            r"(?im)\b(?:passwor[dt]|passphrase|credentials?)\b[^\r\n]{0,120}"
            + HAS_BEEN_MADE
            + r"\r?\n(?:[ \t]*\r?\n)?[ \t]*"
            + NEW_VALUE_LABEL
            + OPTIONAL_QUOTE
            + r"([^\s\"':]{8,128})"
            + OPTIONAL_QUOTE
            + LINE_END
        ),
        likely=True,
    ),
    Statement(
        # $ aws ecr get-login-password --region eu-west-1\n...
        id="printed_password",
        keywords=("get-login-password",),
        pattern=r"(?i)\bget-login-password\b" + TO_NEXT_LINE + r"([^\s\"']{16,})",
        likely=True,
    ),
    Statement(
        # jenkins: hudson.util.Secret decrypted value: hunter2
        id="decrypted_value",
        keywords=("decrypted ",),
        pattern=r"(?i)\bdecrypted[ \t]+(?:value|password|secret)\b[^\r\n:]{0,30}:[ \t]*(\S{4,256})",
        mixed=True,
    ),
    Statement(
        # {"api_key":{"name":"shipper","id":"...","api_key":"...","encoded":"..."}}
        id="encoded_api_key",
        keywords=('"encoded"',),
        pattern=r"\"api_key\"[^{}]{0,200}\"encoded\"\s*:\s*" + QUOTED_VALUE,
        kind="credential",
    ),
    Statement(
        id="password_on_the_next_line",
        keywords=("password ", "passphrase "),
        prefilter=r"(?:password|passphrase)\s[^\r\n]{1,80}:[ \t]*\r?\n",
        pattern=(
            r"(?i)\b(?:password|passphrase)[ \t][^\r\n]{0,80}:[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t]*"
            + LONG_WORD
            + r"[ \t]*(?:\r?\n|\z)"
        ),
        likely=True,
    ),
    Statement(
        # ~ password = "hunter2" -> "hunter2" # forces replacement
        id="changed_value",
        keywords=("-> ", "→ ", "=> "),
        prefilter=(
            r"(?:passw\w*|pwd|secret|token|api_key)"
            + OPTIONAL_QUOTE
            + r"\s*[=:]\s*\\*[\"'][^\"'\r\n]{0,256}\\*[\"']\s*(?:->|→|=>)"
        ),
        pattern=(
            r"(?i)\b\w*(?:passw\w*|pwd|secret|token|api_key)"
            + QUOTE
            + r"?\s*[=:]\s*"
            + QUOTE
            + r"[^\"'\r\n]{0,256}"
            + QUOTE
            + r"\s*(?:->|→|=>)\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # the root password of db1 was changed from hunter2 to hunter2
        id="changed_value",
        keywords=(" from ",),
        prefilter=r"(?:password|passphrase|passcode|secret|token|key)\b[^\r\n]{0,60}?\sfrom\s",
        pattern=(
            r"(?i)\b"
            + CHANGED_THINGS
            + r"\b[^\r\n:]{0,60}?\bfrom[ \t]+"
            + OPTIONAL_QUOTE_OR_TICK
            + r"([^\s\"'`,;/]{6,128}"
            + OPTIONAL_QUOTE_OR_TICK
            + r"[ \t]+to[ \t]+"
            + OPTIONAL_QUOTE_OR_TICK
            + r"[^\s\"'`,;/]{6,128})"
        ),
        mixed=True,
    ),
    Statement(
        # DEBUG HikariConfig - password........................"hunter2"
        id="dotted_leader",
        keywords=("......",),
        prefilter=r"(?:passw\w*|secret|token|api_?key)\.{3}",
        pattern=(
            r"(?i)(?:passw\w*|secret|token|api_?key)[ \t]*\.{3,}[ \t]*[:=]?[ \t]*"
            + OPTIONAL_QUOTE
            + r"([^\s\"'.<>*][^\s\"'<>]{3,255})"
        ),
        mixed=True,
    ),
    Statement(
        # signing     ...
        id="vault_column",
        keywords=("signing ",),
        pattern=r"(?mi)^[ \t]*(?:[a-z]+_)?signing[ \t]{2,}(\S{20,256})" + LINE_END,
        mixed=True,
    ),
    Statement(
        id="plesk_secret_key",
        keywords=("secret_key -c", "secret_key --create"),
        pattern=(
            r"(?i)\bsecret_key (?:-c|--create)\b[^\r\n]{0,200}\r?\n[ \t]*"
            "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
        ),
    ),
    Statement(
        # doveadm auth test -x service=imap buchhaltung '...'
        id="doveadm_auth",
        keywords=("doveadm auth",),
        pattern=(
            r"\bdoveadm auth (?:test|login)(?:[ \t]+-\S+(?:[ \t]+[^\s=]+=\S+)?)*"
            r"[ \t]+[\w.@-]{1,80}[ \t]+" + OPTIONAL_QUOTE + word(3, 128)
        ),
    ),
    Statement(
        # $ sudo cat /etc/openvpn/client/filiale-lyon.auth\nfiliale-lyon\n...
        id="openvpn_auth_file",
        keywords=("auth", "pass", "cred"),
        prefilter=r"\bcat [^\s]*(?:\.auth|auth\.txt|userpass|auth-user-pass)",
        pattern=(
            r"(?m)^[^\r\n]{0,60}"
            + CAT_AUTH_FILE
            + r"[\w.@-]{2,64}[ \t]*\r?\n([^\s\"'<>]{6,128})[ \t]*$"
        ),
    ),
    Statement(
        # 2024-08-01T07:55:10.812345+00:00  key1       FULL           ...
        id="azure_storage_table",
        keywords=("full",),
        pattern=r"(?i)\bfull[ \t]+([A-Za-z0-9+/]{86}==)",
    ),
)
