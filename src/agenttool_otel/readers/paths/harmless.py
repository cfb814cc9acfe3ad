"""Patterns of names that look like those of secrets, and are of what is published.

The shorter ones are in ``data/sensitive_paths.json``. Names are compared in lower case.
"""

from __future__ import annotations

from typing import Final

_EXAMPLE_WORDS: Final = "example|sample|template|schema|dist|defaults|tmpl|tpl"
_SETTINGS_ENDINGS: Final = "json|ya?ml|toml|env|ini|xml|properties|tfvars|conf|cfg"
_TEXT_ENDINGS: Final = "md|txt|py|rb|php|[jt]s"
_EXAMPLE: Final = rf".*[-_.](?:{_EXAMPLE_WORDS})(?:\.(?:{_SETTINGS_ENDINGS}|{_TEXT_ENDINGS}))?"
"""``.env.example``, ``secrets-sample.yaml``."""

_ROOT_KEY: Final = "^root[-_](?:ec|rsa|ed)[-_.]?p?[0-9]{3}"
_PRIVATE: Final = f"(?!.*(?:priv|key|{_ROOT_KEY}))"
_CERTIFICATES: Final = "certs?|crt|fullchain|chain|cacerts?|ca|ca-bundle|intermediates?|roots?"
_CERTIFICATE: Final = rf"{_PRIVATE}(?:.*[-_.])?(?:{_CERTIFICATES})(?:[-_.].*)?\.pem"
"""``fullchain.pem``, but not ``ca-key.pem`` and ``root_rsa4096.pem``."""

HARMLESS_NAMES: Final = (_EXAMPLE, _CERTIFICATE)
