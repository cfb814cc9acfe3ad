"""Protocols of mail, files, directories and the web."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    LINE_END,
    MAYBE_QUOTE,
    OPTIONAL_QUOTE_OR_TICK,
    QUOTE,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

LOGIN_RESULT: Final = (
    r"(?:login|logon|auth\w*)[ \t]+(?:incorrect|ok|failed|failure|rejected|denied"
    r"|accepted):?[ \t]+(?:for[ \t]+)?"
)
REFUSED_OR_OK: Final = r"(?:failed|ok|rejected|denied|\(from)"
AUTH_MECHANISM_AND_USER: Final = r"(?:(?:plain|login)[ \t]+)?(?:[\"'`]?\w{1,32}[\"'`]?[ \t]+)?"

STATEMENTS: Final = (
    Statement(
        # C: A1 LOGIN ann@example.com hunter2
        id="imap_login",
        keywords=(" login ",),
        pattern=r"\b[A-Za-z]{0,4}\d+ LOGIN \S{1,128} \"?([^\s\"]{3,256})",
    ),
    Statement(
        # POP3 < USER ann\nPOP3 < PASS hunter2
        id="ftp_or_pop",
        keywords=("user ",),
        pattern=r"\bUSER \S{1,128}\s[\s\S]{0,240}?\bPASS (\S{3,256})",
    ),
    Statement(
        # user anna hunter2
        id="ftp_or_pop",
        keywords=("user ",),
        prefilter=r"(?:^|[\r\n])[ \t]*user[ \t]+\S{1,64}[ \t]+\S{4}",
        pattern=r"(?mi)^[ \t]*user[ \t]+[^\s;]{1,64}[ \t]+([^\s\"';]{6,128})" + LINE_END,
        mixed=True,
    ),
    Statement(
        # AUTH PLAIN ...
        id="auth_command",
        keywords=("auth",),
        pattern=(
            r"(?mi)(?:^|[\s\"'`>])auth"
            + OPTIONAL_QUOTE_OR_TICK
            + r"[ \t]+"
            + AUTH_MECHANISM_AND_USER
            + OPTIONAL_QUOTE_OR_TICK
            + r"([^\s\"'`\[\]]{8,256})"
            + OPTIONAL_QUOTE_OR_TICK
            + LINE_END
        ),
        likely=True,
    ),
    Statement(
        # < 334 UGFzc3dvcmQ6\n> ...
        id="auth_login_dialogue",
        keywords=("ugfzc3dvcmq6", "vxnlcm5hbwu6"),
        pattern=r"334 UGFzc3dvcmQ6\s{1,4}(?:[A-Z]?[<>:-]{0,3}[ \t])?([A-Za-z0-9+/=]{4,256})",
    ),
    Statement(
        # imapd: LOGIN ann hunter2 failed
        id="login_line",
        keywords=("login", "logon", "signin", "auth"),
        prefilter=r"\b(?:login|logon|auth)[\w ]{0,24}:?[ \t]+\[?[\w.@+-]{2,64}[ \t/:]",
        pattern=(
            r"(?i)\b(?:"
            + LOGIN_RESULT
            + r"\[?[\w.@+\\-]{1,64}[/:]|LOGIN[ \t]+\"?[\w.@+-]{1,64}\"?[ \t]+\"?)"
            r"([^\s\"\[\]/()=:]{6,128}?)(?:\]|\"|[ \t]+" + REFUSED_OR_OK + "|" + LINE_END + ")"
        ),
        mixed=True,
    ),
    Statement(
        # creds ann:hunter2 still work on staging
        id="rejected_pair",
        keywords=("credential", "creds", "login "),
        prefilter=r"(?:credentials?|creds|login)\b[ \t]+(?:for[ \t]+|of[ \t]+)?[\w.@+-]{2,64}:\S{6}",
        pattern=(
            r"(?i)\b(?:credentials?|creds|login)\b[ \t]+(?:for[ \t]+|of[ \t]+)?"
            r"[a-z][\w.@+-]{1,63}:([^\s\"'/:,;]{6,128})"
        ),
        mixed=True,
    ),
    Statement(
        # Authorization: Digest username="ops", realm="r", response="..."
        id="digest_response",
        keywords=("digest ",),
        pattern=r"(?i)\bdigest\s[^\r\n]*?\bresponse=\\{0,3}\"?([0-9a-f]{32,128})\b",
        kind="authorization",
    ),
    Statement(
        # proxy_set_header Authorization "Basic ...";
        id="authorization_directive",
        keywords=("authorization",),
        pattern=(
            r"(?i)\bauthorization[ \t]+" + QUOTE + r"(?:basic|bearer|token)[ \t]+([^\s\"']{8,})"
        ),
        kind="authorization",
    ),
    Statement(
        # X-Amz-Signature=...
        id="signature_of_address",
        keywords=("-signature", "-security-token"),
        pattern=(
            r"(?i)\bx-(?:amz|goog|oss|obs|cos|bce|tos|ms)-(?:signature|security-token)"
            + MAYBE_QUOTE
            + r"\s{0,2}[:=]\s{0,2}"
            + MAYBE_QUOTE
            + "([A-Za-z0-9%+/=_-]{16,})"
        ),
        kind="url_parameter",
    ),
)
