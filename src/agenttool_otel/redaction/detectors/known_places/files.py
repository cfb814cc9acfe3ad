"""Files: settings, keys, hashes."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    LINE_END,
    MAYBE_QUOTE,
    OPTIONAL_QUOTE,
    QUOTED_VALUE,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

USES_OF_KEY: Final = (
    "ACCESS|AUTH|ENCRYPTION|FERNET|INTEGRATION|LICENSE|MASTER|ROUTING|SIGNING|WRITE"
)
OWNERS_OF_KEY: Final = "ACCOUNT|API|APP|CENSUS|KAGGLE|SERVICE"
KEY_VARIABLE: Final = f"(?:{USES_OF_KEY}|{OWNERS_OF_KEY})_KEY"
PASSWORD_SCHEMES: Final = (
    "(?:noop|plain(?:text)?|cleartext|s?sha-?(?:256|384|512)?|s?md5|crypt"
    r"|pbkdf2[\w-]{0,12}|argon2\w{0,12}|scrypt\w{0,12})"
)
LETTER_THEN_DIGIT: Final = r"[^\s\"'=:,.]*[a-z][^\s\"'=:,.]*\d[^\s\"'=:,]{0,64}"
DIGIT_THEN_LETTER: Final = r"[^\s\"'=:,.]*\d[^\s\"'=:,.]*[a-z][^\s\"'=:,]{0,64}"

STATEMENTS: Final = (
    Statement(
        # {"kty":"EC","crv":"P-256","kid":"sig-2025","x":"...","y":"...","d":"..."}
        id="jwk",
        keywords=('"kty"',),
        pattern=r"\"kty\"[^{}]*?\"(?:d|k)\"\s*:\s*\"([A-Za-z0-9_-]{16,})\"",
        kind="private_key",
    ),
    Statement(
        # {"d": "...", "crv": "P-256", "kty": "EC"}
        id="jwk",
        keywords=('"kty"',),
        pattern=r"[{,]\s*\"(?:d|k)\"\s*:\s*\"([A-Za-z0-9_-]{16,})\"[^{}]*?\"kty\"",
        kind="private_key",
    ),
    Statement(
        # default login ops password hunter2
        id="netrc",
        keywords=("login", "user"),
        prefilter=r"(?:login|user)\s+\S+\s+(?:account\s+\S+\s+)?password",
        pattern=(
            r"(?i)\b(?:machine\s+\S+|default)\s+(?:login|user)\s+\S+\s+(?:account\s+\S+\s+)?"
            r"password\s+([^\s\"'<]+)"
        ),
    ),
    Statement(
        # rootpw hunter2
        id="ldap_bind_password",
        keywords=("bindpw", "rootpw", "bindpass"),
        pattern=(
            r"(?mi)^[ \t]*(?:\w+_)?(?:bindpw|rootpw|bindpasswd|bindpassword)[ \t]+"
            + OPTIONAL_QUOTE
            + r"([^\s\"'{]{3,256})"
        ),
    ),
    Statement(
        # $ cat config/master.key\n...
        id="rails_master_key",
        keywords=("master.key", "credentials.yml"),
        pattern=r"(?i)(?:master\.key|credentials\.yml)\b[^\r\n]{0,80}\r?\n[ \t]*([0-9a-f]{32})\b",
        kind="credential",
    ),
    Statement(
        # define( 'AUTH_KEY', '...' );
        id="wordpress_salt",
        keywords=("_key", "_salt"),
        pattern=(
            r"(?i)\bdefine\(\s*[\"'](?:secure_auth|auth|logged_in|nonce)_(?:key|salt)[\"']\s*,\s*'"
            r"([^'\r\n]{16,256})'\s*\)"
        ),
        kind="credential",
    ),
    Statement(
        # storePassword "hunter2"
        id="gradle_signing",
        keywords=("storepassword", "keypassword"),
        pattern=r"\b(?:store|key)Password[ \t]+" + QUOTED_VALUE,
    ),
    Statement(
        # secret "...";
        id="signing_secret",
        keywords=('secret "',),
        pattern=r"(?i)\bsecret[ \t]+\"([A-Za-z0-9+/=]{16,256})\"[ \t]*;",
        kind="credential",
    ),
    Statement(
        # bob:$2b$12$...
        id="shadow_file",
        keywords=(":$",),
        pattern=(
            r"(?m)(?:^|[^\w.-])[a-z_][\w.-]{0,31}:(\$(?:1|5|6|7|y|gy|2[abxy]|apr1|argon2\w{1,2})"
            r"\$[^:\s]{13,256})(?::\d*:|" + LINE_END + ")"
        ),
        kind="password_hash",
    ),
    Statement(
        # spring.security: {noop}hunter2
        id="scheme_of_password",
        keywords=(
            "{noop}",
            "{plain",
            "{cleartext}",
            "{sha",
            "{ssha",
            "{md5",
            "{smd5",
            "{crypt}",
            "{pbkdf2",
            "{argon2",
            "{scrypt",
        ),
        pattern=r"(?i)\{" + PASSWORD_SCHEMES + r"\}([^\s\"'<>,;{}]{4,256})",
    ),
    Statement(
        id="password_hash",
        keywords=("pbkdf2_sha", "bcrypt_sha256$", "$argon2", "$2a$", "$2b$", "$2y$"),
        pattern=(
            r"((?:\bpbkdf2_sha(?:1|256|512)|\bbcrypt_sha256|\$argon2[id]{1,2}\$v=\d+"
            r"|\$2[aby]\$\d\d)\$[^\s\"';]{24,256})"
        ),
        kind="password_hash",
    ),
    Statement(
        # token\t...
        id="name_and_value_line",
        keywords=("pass", "pw", "secret", "token", "api"),
        pattern=(
            r"(?mi)^[ \t]*(?:[\w.-]+[ \t]+)?[\w.-]*(?:password|passwd|passphrase|pass|pw|pwd"
            r"|secret|token|api[_-]?key)[ \t]+"
            + OPTIONAL_QUOTE
            + r"([^\s\"'=:*&][^\s\"'=:]{5,255})"
            + OPTIONAL_QUOTE
            + ";?"
            + LINE_END
        ),
        likely=True,
    ),
    Statement(
        id="password_at_end",
        keywords=("password ", "passphrase "),
        pattern=(
            r"(?mi)\b(?:password|passphrase)[ \t]+("
            + LETTER_THEN_DIGIT
            + "|"
            + DIGIT_THEN_LETTER
            + ")"
            + LINE_END
        ),
    ),
    Statement(
        # RAILS_MASTER_KEY=...
        id="key_variable",
        keywords=("_key",),
        prefilter=r"_key[\"'\])]{0,3}\s*[=:,]",
        pattern=(
            r"\b(?:[A-Z0-9_]+_)?"
            + KEY_VARIABLE
            + r"[\"'\])]{0,3}\s*[=:,]\s*"
            + MAYBE_QUOTE
            + r"([0-9a-f]{32,64}|[A-Za-z0-9_-]{40,43}=?)\b"
        ),
        kind="credential",
    ),
    Statement(
        # {"username":"analyst","key":"..."}  # kaggle.json
        id="user_and_key",
        keywords=('"username"',),
        prefilter=r"\"key\"\s*:\s*\"[0-9a-f]{32}",
        pattern=r"\"username\"\s*:\s*\"[^\"]{1,64}\"\s*,\s*\"key\"\s*:\s*\"([0-9a-f]{32,64})\"",
        kind="credential",
    ),
)
