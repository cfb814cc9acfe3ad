"""The patterns of secrets in files, and of names that only look like secrets, part by part."""

from __future__ import annotations

import re

import pytest

from agenttool_otel.readers.paths import credentials, harmless

DRAWN = "hT7kQ92mzXw04LqPv8Rt"
MANIFEST = f"kind: Secret\nmetadata:\n  name: db\ndata:\n  password: {DRAWN}\n"


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (credentials._KEY, "api_key"),
        (credentials._KEY, "master-key"),
        (credentials.LABEL_STARTS, "passw"),
        (credentials.LABEL_STARTS, "ansible_"),
        (credentials._TOKEN, "token"),
        (credentials._ANSIBLE, "ansible_become_pass"),
        (credentials._LABEL, "passwd"),
        (credentials._LABEL, "secret"),
        (credentials._NO_ATTRIBUTE, ""),
        (credentials._REST_OF_NAME, '_2"]'),
        (credentials._SIGN, " => "),
        (credentials._XML_VALUE, '" value='),
        (credentials._JSON_VALUE, '{ "value": '),
        (credentials._ASSIGNS, ': "'),
        (credentials._ASSIGNS, ">"),
        (credentials._ASSIGNS, ': {"value": "'),
        (credentials._INVENTED, "changeme"),
        (credentials._VAULTS, "process.env"),
        (credentials._REFERENCES, "vault:"),
        (credentials._REFERENCES, "sha256-"),
        (credentials._VERSION_OR_DATE, "v1.2.3"),
        (credentials._VERSION_OR_DATE, "2026-11"),
        (credentials._NO_REFERENCE, ""),
        (credentials._DRAWN, "a"),
        (credentials._DRAWN_VALUE, "hT7kQ92m"),
        (credentials.ASSIGNED, "password: hT7kQ92m"),
        (credentials.ASSIGNED, "token>hT7kQ92m"),
        (credentials.ASSIGNED, 'api_key" value="hT7kQ92m'),
        (credentials._KUBERNETES_KIND, "kind: Secret"),
        (credentials._KUBERNETES_DATA, "\nstringData:"),
        (credentials._KUBERNETES_VALUE, "\n  password: hT7kQ92m"),
        (credentials.data_name(["ya?ml"]), "values.yml"),
        (credentials.data_name(["ya?ml"]), ".npmrc"),
        (credentials.data_name(["ya?ml"]), "config"),
        (harmless._EXAMPLE, ".env.example"),
        (harmless._EXAMPLE, "secrets-sample.yaml"),
        (harmless._ROOT_KEY[1:], "root-ec-p384"),
        (harmless._CERTIFICATES, "fullchain"),
        (harmless._CERTIFICATE, "fullchain.pem"),
        (harmless._CERTIFICATE, "my-ca.crt.pem"),
    ],
)
def test_a_part_of_a_pattern_of_files_matches(part: str, sample: str) -> None:
    assert re.fullmatch(part, sample)


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (credentials._KEY, "public_key"),
        (credentials._TOKEN, "tokenizer"),
        (credentials._TOKEN, "tokens_per_minute"),
        (credentials._ANSIBLE, "ansible_host"),
        (credentials._LABEL, "secretary"),
        (credentials._NO_ATTRIBUTE, "_file: x"),
        (credentials._NO_ATTRIBUTE, "_ttl = 5"),
        (credentials._SIGN, "is"),
        (credentials._XML_VALUE, "value="),
        (credentials._ASSIGNS, "is"),
        (credentials._REFERENCES, "hunter:"),
        (credentials._VERSION_OR_DATE, "v1"),
        (credentials._NO_REFERENCE, "/run/secrets/db"),
        (credentials._NO_REFERENCE, "https://vault"),
        (credentials._NO_REFERENCE, "my-example-1"),
        (credentials._NO_REFERENCE, "env:DB"),
        (credentials._NO_REFERENCE, "1.2.3"),
        (credentials._DRAWN, "{"),
        (credentials._DRAWN_VALUE, "abcdefgh"),
        (credentials._DRAWN_VALUE, "12345678"),
        (credentials.ASSIGNED, "password_file: hT7kQ92m"),
        (credentials.ASSIGNED, "password: ${PASSWORD1}"),
        (credentials.ASSIGNED, "token: example-1234"),
        (credentials._KUBERNETES_KIND, "kind: SecretStore"),
        (credentials._KUBERNETES_DATA, "\nspec:"),
        (credentials._KUBERNETES_VALUE, "\n  password: ''"),
        (rf"(?:{credentials.data_name(['ya?ml'])})\Z", "main.py"),
        (harmless._EXAMPLE + r"\Z", "example.env.key"),
        (harmless._CERTIFICATE, "ca-key.pem"),
        (harmless._CERTIFICATE, "root-rsa-4096.pem"),
        (harmless._CERTIFICATE, "server.pem"),
    ],
)
def test_a_part_of_a_pattern_of_files_does_not_match(part: str, sample: str) -> None:
    assert not re.match(part, sample)


def test_data_far_below_the_kind_of_a_kubernetes_secret() -> None:
    assert re.search(credentials.KUBERNETES_SECRET, MANIFEST)
    assert not re.search(credentials.KUBERNETES_SECRET, MANIFEST.replace("Secret", "ConfigMap"))
