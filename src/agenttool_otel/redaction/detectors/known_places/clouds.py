"""Clusters, clouds and the tools that set them up."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    MAYBE_QUOTE,
    OPTIONAL_QUOTE,
    QUOTE,
    QUOTED_VALUE,
    TO_NEXT_LINE,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

SECRET_RESOURCE: Final = (
    r"\b\w*(?:ssm_parameter|secret_version|key_vault_secret|actions_secret)\b[^{}]{0,120}"
)
VALUE_OF_RESOURCE: Final = r"(?:value|secret_string|secret_data|plaintext_value)\s*=\s*"
MORE_USERS: Final = r"(?:[ \t\r]*\n[ \t]+(?:- )?[\w.-]{1,32}:[^\s:]{3,128}){0,6}"
KEY_VAULT_ADDRESS: Final = r"https://[^\"\s]{1,80}\.vault\.azure\.net/secrets/[^\"\s]{1,200}"

STATEMENTS: Final = (
    Statement(
        # --control-plane --certificate-key ...
        id="certificate_key",
        keywords=("certificate key", "certificate-key"),
        pattern=r"(?i)\bcertificate[ -]key(?:[:=]|[ \t])\s{0,4}([0-9a-f]{64})\b",
    ),
    Statement(
        # $ oc get secret pull -o jsonpath='{.data.key}'\n...
        id="kubernetes_secret_value",
        keywords=("get secret",),
        pattern=(
            r"(?i)\bget[ \t]+secrets?\b[^\r\n]*(?:jsonpath|go-template|custom-columns|base64)"
            + TO_NEXT_LINE
            + r"(?:[A-Z ]{1,32}\r?\n)?([^\s:\"'{}<>$]{4,1000})[ \t\r]*(?:\n|\z)"
        ),
        kind="credential",
    ),
    Statement(
        # K3S_TOKEN=K10...::server:...
        id="k3s_token",
        keywords=("::server:", "::node:"),
        pattern=r"\bK10[0-9a-f]{64}::(?:server|node):([0-9A-Za-z]{16,128})",
    ),
    Statement(
        # encrypt = "..."  # gossip key of consul
        id="gossip_key",
        keywords=("encrypt",),
        prefilter="encrypt" + OPTIONAL_QUOTE + r"\s*[:=]\s*[\"'][a-z0-9+/]{22}",
        pattern=(
            r"\bencrypt"
            + OPTIONAL_QUOTE
            + r"\s*[:=]\s*[\"']([A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{43}=)[\"']"
        ),
        kind="credential",
    ),
    Statement(
        # resource "random_password" "db" {\n  length = 24\n  result = "..."
        id="terraform_random_password",
        keywords=("random_password",),
        pattern=(r"\brandom_password\b[\s\S]{0,600}?\bresult\\{0,3}\"?\s*[:=]\s*" + QUOTED_VALUE),
    ),
    Statement(
        id="terraform_random_password",
        keywords=("random_password",),
        pattern=r"\bresult\\{0,3}\"\s*:\s*" + QUOTED_VALUE + "[^{]{0,200}random_password",
    ),
    Statement(
        # ~ resource "aws_ssm_parameter" "smtp" {\n      ~ value = "hunter2" -> "hunter2"
        id="secret_parameter_of_plan",
        keywords=("ssm_parameter", "secret_version", "key_vault_secret", "actions_secret"),
        pattern=(SECRET_RESOURCE + r"\{[^{}]*?\b" + VALUE_OF_RESOURCE + QUOTED_VALUE),
    ),
    Statement(
        id="secret_parameter_of_plan",
        keywords=("ssm_parameter", "secret_version", "key_vault_secret", "actions_secret"),
        pattern=(
            SECRET_RESOURCE
            + r"\{[^{}]*?\b"
            + VALUE_OF_RESOURCE
            + QUOTE
            + r"[^\"'\r\n]{0,256}"
            + QUOTE
            + r"\s*->\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # chpasswd:\n  list: |\n    root:hunter2
        id="cloud_init_password",
        keywords=("chpasswd:",),
        pattern=(
            r"\bchpasswd:\s[\s\S]{0,80}?list:[ \t]*[|>]?-?[ \t]*\r?\n[ \t]+(?:- )?[\w.-]{1,32}:"
            r"([^\s:]{3,128}" + MORE_USERS + ")"
        ),
    ),
    Statement(
        # rootpw --plaintext hunter2
        id="kickstart_password",
        keywords=("rootpw",),
        pattern=r"(?mi)^[ \t]*rootpw[ \t]+--plaintext[ \t]+" + OPTIONAL_QUOTE + word(3, 128),
    ),
    Statement(
        # {"keyName":"key1","permissions":"FULL","value":"..."}
        id="cloud_key",
        keywords=("keyname", "key_name"),
        pattern=r"(?i)\"key_?name\"[^{}]{0,160}\"value\"\s*:\s*\"([A-Za-z0-9+/=_-]{24,256})\"",
        kind="credential",
    ),
    Statement(
        # primaryKey: ...
        id="cloud_key",
        keywords=("primarykey", "secondarykey", "masterkey"),
        pattern=(
            r"(?i)\b(?:primary|secondary)(?:readonly)?(?:master)?key"
            + MAYBE_QUOTE
            + r"\s*[:=]\s*"
            + MAYBE_QUOTE
            + "([A-Za-z0-9+/]{40,90}={1,2})"
        ),
        kind="credential",
    ),
    Statement(
        # key1     full     ...==
        id="storage_account_key",
        keywords=("key1 ", "key2 "),
        pattern=r"(?m)^key[12][ \t]+(?i:full)[ \t]+([A-Za-z0-9+/]{86}==)",
        kind="credential",
    ),
    Statement(
        id="vault_value",
        keywords=("vault.azure.net/secrets/",),
        pattern=(
            r"(?s)\"id\":\s{0,4}\""
            + KEY_VAULT_ADDRESS
            + r"\".{1,400}?\"value\":\s{0,4}\"([^\"\r\n]{3,512})\""
        ),
    ),
    Statement(
        # Accessor ID  = eda21a08-2d44-44f6-bc9e-7623aaf1024a\nSecret ID    = ...
        id="accessor_and_secret",
        keywords=("accessor",),
        pattern=(
            r"(?i)\baccessor[ _-]?id\b"
            + TO_NEXT_LINE
            + r"[^\r\n]{0,8}\bsecret[ _-]?id"
            + MAYBE_QUOTE
            + r"\s*[:=]\s*"
            + MAYBE_QUOTE
            + r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
        ),
        kind="credential",
    ),
    Statement(
        # User: my HubSpot key is pat-eu1-..., can you list my deals?
        id="service_token",
        keywords=("pat-na", "pat-eu", "pat-ap"),
        pattern=r"\bpat-(?:na|eu|ap)\d-([0-9a-f-]{36})\b",
        kind="credential",
    ),
    Statement(
        # - routing_key: ...
        id="routing_key",
        keywords=("routing_key", "integration_key", "account.key."),
        pattern=(
            r"(?i)\b(?:(?:routing|integration)_key"
            + OPTIONAL_QUOTE
            + r"\s*[:=]\s*"
            + OPTIONAL_QUOTE
            + r"|account\.key\.[\w.-]{1,80}"
            + QUOTE
            + r"\s*,\s*"
            + QUOTE
            + ")([A-Za-z0-9+/=]{32,128})"
        ),
        kind="credential",
    ),
    Statement(
        # ERLANG_COOKIE=...
        id="erlang_cookie",
        keywords=("erlang_cookie", "erlang.cookie", "-setcookie"),
        pattern=(
            "(?i)(?:erlang[._]cookie"
            + OPTIONAL_QUOTE
            + r"\s{0,3}[:=]\s{0,3}"
            + OPTIONAL_QUOTE
            + r"|-setcookie[ \t]+"
            + OPTIONAL_QUOTE
            + ")([A-Za-z0-9_-]{6,255})"
        ),
        kind="credential",
    ),
)
