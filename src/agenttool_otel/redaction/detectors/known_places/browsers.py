"""Browsers: fields, forms, cookies, addresses."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    OPTIONAL_QUOTE,
    QUOTE,
    QUOTED_VALUE,
    TO_NEXT_LINE,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

TYPED_TEXT: Final = (
    r"(?:\s(?:value|text|with)=|,?\s(?:with|value|text):?\s?|,\s?(?:value|text)\s?=\s?)"
)

STATEMENTS: Final = (
    Statement(
        # await page.fill('#password', 'hunter2');
        id="browser_fill",
        keywords=(".fill(", ".type(", "sendkeys(", "send_keys(", "setvalue("),
        pattern=(
            r"(?i)\.(?:fill|type|sendkeys|send_keys|setvalue)\(\s*"
            + QUOTE
            + r"[^\r\n]{0,160}?(?:passw|pwd|otp|cvv|cvc|secret)[^\r\n]{0,80}?"
            + QUOTE
            + r"\s*,\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # cy.get('#pwd').type('hunter2{enter}')
        id="browser_fill",
        keywords=(".send_keys(", ".sendkeys(", ".type(", ".fill(", "sequentially("),
        pattern=(
            r"(?i)(?:passw|pwd|otp|#pass)[^\r\n\"']{0,30}(?:"
            + QUOTE
            + r"\]?){1,2}\s*\){1,2}\.(?:send_keys|sendkeys|type|fill|press_?sequentially)\(\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # {"tool": "browser.fill", "selector": "#password", "text": "hunter2"}
        id="browser_field",
        keywords=("selector", "locator", "xpath", "element"),
        pattern=(
            "(?i)"
            + QUOTE
            + "(?:selector|locator|xpath|element)"
            + QUOTE
            + r"\s*:\s*"
            + QUOTE
            + r"[^\r\n]{0,200}?(?:passw|pwd|otp|cvv|cvc|secret)[^\r\n]{0,60}?"
            + QUOTE
            + r"\s*,\s*"
            + QUOTE
            + "(?:value|text|input|content)"
            + QUOTE
            + r"\s*:\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # <add key="SmtpPassword" value="hunter2" />
        id="typed_into_field",
        keywords=("passw", "#pass", "#pwd"),
        prefilter=r"(?:passw|#pass|#pwd)[\w -]{0,20}[^\w\s]",
        pattern=(
            r"(?i)(?:passwor[dt]|passwd|#pass|#pwd)[\w -]{0,16}[\"'\]]{0,5}"
            + TYPED_TEXT
            + QUOTED_VALUE
        ),
        mixed=True,
    ),
    Statement(
        # typed "hunter2" into the password field
        id="typed_into_field",
        keywords=("type ", "typed ", "fill ", "filled ", "enter ", "entered "),
        pattern=(
            r"(?i)\b(?:typed?|fill(?:ed)?|enter(?:ed)?)\s"
            + QUOTED_VALUE
            + r"\s(?:in|into|as|for)\s(?:the\s)?[\"'`#]?pass"
        ),
        mixed=True,
    ),
    Statement(
        # <type target="password">hunter2</type>
        id="typed_into_field",
        keywords=("password",),
        prefilter=r"password[^<>]{0,80}>[^<>\s]{4}",
        pattern=(
            r"(?i)<(?:type|fill|input)\b[^<>]{0,120}\bpassword\b[^<>]{0,80}>([^<>\r\n]{4,128})</"
            "(?:type|fill|input)>"
        ),
        mixed=True,
    ),
    Statement(
        # <input type="password" id="pw" value="hunter2">
        id="html_password_field",
        keywords=("<input",),
        pattern=(
            r"(?i)<input\b[^<>]*?type="
            + OPTIONAL_QUOTE
            + "password"
            + OPTIONAL_QUOTE
            + r"[^<>]*?\svalue=[\"']([^\"'<>]{1,256})[\"']"
        ),
    ),
    Statement(
        # Content-Disposition: form-data; name="password"\n\nhunter2
        id="multipart_form",
        keywords=("form-data",),
        pattern=(
            r"(?i)\bname=\"[\w.-]{0,40}(?:passw|pwd|secret|token)[\w.-]{0,20}\""
            + TO_NEXT_LINE
            + r"(?:[\w-]+:"
            + TO_NEXT_LINE
            + r")?\r?\n([^\r\n]{1,512})"
        ),
    ),
    Statement(
        # .example.com\tTRUE\t/\tTRUE\t1767225600\tsessionid\t...
        id="cookie_file",
        keywords=("\ttrue\t", "\tfalse\t"),
        pattern=(
            r"(?m)^[^\s\t]+\t(?:TRUE|FALSE)\t[^\t\r\n]+\t(?:TRUE|FALSE)\t\d+\t[^\t\r\n]+\t"
            r"([^\t\r\n]{3,})"
        ),
        kind="cookie",
    ),
    Statement(
        # X-Metabase-Session: ...
        id="session_header",
        keywords=("session",),
        prefilter="[-_]session(?:-id|-token)?" + OPTIONAL_QUOTE + r"\s?[:=]",
        pattern=(
            r"(?i)\b(?:x-[\w-]{0,30}session(?:-id|-token)?|metabase_session)"
            + OPTIONAL_QUOTE
            + r"\s?[:=]\s?"
            + OPTIONAL_QUOTE
            + r"([\w-]{24,256})"
        ),
        kind="cookie",
    ),
    Statement(
        # response body: {"ok":true,"session":"...","role":"editor"}
        id="session_in_json",
        keywords=('session"', 'session_id"', 'sessionid"'),
        prefilter=r"session(?:_?id)?\\?\"\s*:\s*\\?\"[\w.~-]{40}",
        pattern=r"(?i)\bsession(?:_?id)?\\{0,3}\"\s*:\s*\\{0,3}\"([\w.~-]{40,512})\\{0,3}\"",
        kind="credential",
        likely=True,
    ),
    Statement(
        # https://app.example.com/login/magic/...
        id="sign_in_link",
        keywords=("/magic", "/reset/", "/invite/", "oobcode="),
        pattern=(
            "(?i)(?:/(?:magic(?:-?link)?|reset|invite)"
            r"(?:/|\?(?:t|c|k|token|token_hash|hash|code|key)=)|[?&]oobCode=)([\w-]{24,512})"
        ),
        kind="url_parameter",
        likely=True,
    ),
    Statement(
        # https://corp.webhook.office.com/webhookb2/...@.../IncomingWebhook/.../...
        id="webhook_address",
        keywords=("incomingwebhook",),
        pattern="(?i)/IncomingWebhook/([0-9a-f]{32}/[0-9a-f-]{36})",
        kind="url_parameter",
    ),
    Statement(
        # https://api.telegram.org/bot7352018842:AA.../getMe
        id="bot_address",
        keywords=("/bot",),
        pattern=r"/bot\d{6,12}:([A-Za-z0-9_-]{30,50})",
        kind="url_parameter",
    ),
    Statement(
        id="oauth_basic_user",
        keywords=(":x-oauth-basic@",),
        pattern="://([A-Za-z0-9_-]{16,256}):x-oauth-basic@",
        kind="url_password",
    ),
    Statement(
        id="api_token_answer",
        keywords=('"status"',),
        prefilter=r"\"status\"\s*:\s*\"active\"",
        pattern=r"\"status\"\s*:\s*\"active\"[^{}]{0,80}\"value\"\s*:\s*\"([\w-]{32,128})\"",
        kind="credential",
        likely=True,
    ),
)
