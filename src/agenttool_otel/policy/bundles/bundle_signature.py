"""Signed bundles, verified as OPA does it (OPA docs, "Bundles", "Signing").

``.signatures.json`` holds one JSON Web Token whose payload lists every file with its hash. JSON and
YAML files are hashed in a canonical form, others as bytes. The algorithm comes from the configured
key, never from the token, so a token can't choose a weaker one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle import SIGNATURES

_HMAC: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
_HASHES: Final = {"SHA-224", "SHA-256", "SHA-384", "SHA-512"}


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """One key."""

    key: str = field(repr=False)  # PEM text of the public key, or the secret for HS algorithms
    # HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or ES512
    algorithm: str = "RS256"
    scope: str = ""  # scope that the token has to state, if not empty


@dataclass(frozen=True, slots=True)
class BundleVerification:
    """How a bundle's signature is checked."""

    keys: Mapping[str, VerificationKey]  # keys by id
    # id of the key to use, whichever the token names; empty: the token's own ``keyid`` or ``kid``
    key_id: str = ""
    scope: str = ""  # scope that the token has to state, if not empty
    # files that need not be signed, as exact paths or patterns of ``PurePosixPath.match``
    exclude_files: tuple[str, ...] = ()


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise PolicyLoadError(f"{SIGNATURES}: the token is not base64url") from None


class _Number(str):
    """A number as it is spelt, because the canonical form keeps the spelling."""

    __slots__ = ()


def _go_string(text: str) -> str:
    # Go's encoder writes these two line separators escaped even where HTML escaping is off
    return (
        json.dumps(text, ensure_ascii=False)
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def _canonical(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        members = [f"{_go_string(key)}:{_canonical(value[key])}" for key in sorted(value)]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, str):
        return _go_string(value)
    return json.dumps(value)


def _structured(path: str, content: bytes) -> Any:
    try:
        if path.endswith((".yaml", ".yml")):
            import yaml

            return yaml.safe_load(content)
        return json.loads(content, parse_float=_Number, parse_int=_Number)
    except Exception as error:
        raise PolicyLoadError(f"{path}: can't be hashed ({type(error).__name__})") from None


def file_hash(path: str, content: bytes, algorithm: str = "SHA-256") -> str:
    """Return the hash of a bundle file as a signature lists it."""
    if algorithm not in _HASHES:
        raise PolicyLoadError(
            f"{SIGNATURES}: {path} is hashed with the unsupported algorithm {algorithm[:20]!r}"
        )
    name = PurePosixPath(path).name
    if name.endswith((".json", ".yaml", ".yml")) or name == ".manifest":
        try:
            content = _canonical(_structured(path, content)).encode("utf-8")
        except RecursionError:
            raise PolicyLoadError(f"{path}: nested too deeply") from None
    return hashlib.new(algorithm.replace("-", "").lower(), content).hexdigest()


def _verify_token(key: VerificationKey, signed: bytes, signature: bytes) -> bool:
    if key.algorithm in _HMAC:
        expected = hmac.digest(key.key.encode("utf-8"), signed, _HMAC[key.algorithm])
        return hmac.compare_digest(expected, signature)
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    digest = _digest_of(key.algorithm)
    family = key.algorithm[:2]
    public = _public_key(key)
    try:
        if family == "ES" and isinstance(public, ec.EllipticCurvePublicKey):
            return _verify_ecdsa(public, signed, signature, digest)
        if family in ("RS", "PS") and isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, signed, _rsa_padding(family, digest), digest)
            return True
    except InvalidSignature:
        return False
    raise ConfigurationError(f"the bundle verification key does not fit {key.algorithm}")


def _digest_of(algorithm: str) -> Any:
    """Return the hash of an algorithm such as ``RS256``."""
    from cryptography.hazmat.primitives import hashes

    digests: dict[str, Any] = {
        "256": hashes.SHA256(),
        "384": hashes.SHA384(),
        "512": hashes.SHA512(),
    }
    digest = digests.get(algorithm[2:])
    if digest is None or algorithm[:2] not in ("RS", "PS", "ES"):
        raise ConfigurationError(f"unsupported signature algorithm {algorithm!r}")
    return digest


def _public_key(key: VerificationKey) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    pem = key.key.encode("utf-8")
    try:
        if key.key.lstrip().startswith("-----BEGIN CERTIFICATE"):
            return x509.load_pem_x509_certificate(pem).public_key()
        return serialization.load_pem_public_key(pem)
    except ValueError:
        raise ConfigurationError("the bundle verification key is not a PEM public key") from None


def _verify_ecdsa(public: Any, signed: bytes, signature: bytes, digest: Any) -> bool:
    """Verify a signature whose two numbers stand one behind the other, as in a token (RFC 7518,
    section 3.4).
    """
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    half = (public.curve.key_size + 7) // 8
    if len(signature) != 2 * half:
        return False
    r = int.from_bytes(signature[:half], "big")
    s = int.from_bytes(signature[half:], "big")
    public.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(digest))
    return True


def _rsa_padding(family: str, digest: Any) -> Any:
    from cryptography.hazmat.primitives.asymmetric import padding

    if family == "RS":
        return padding.PKCS1v15()
    return padding.PSS(padding.MGF1(digest), padding.PSS.AUTO)


def _json_part(text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(_unbase64(text))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise PolicyLoadError(f"{SIGNATURES}: the token's {what} is not a JSON object")
    return value


def _payload(content: bytes, verification: BundleVerification) -> dict[str, Any]:
    """Return the payload of the signatures file, once its one signature is verified."""
    parts = _token(content).split(".")
    if len(parts) != 3:
        raise PolicyLoadError(f"{SIGNATURES}: the signature is no compact token")
    header = _json_part(parts[0], "header")
    payload = _json_part(parts[1], "payload")
    key = _key_of(header, payload, verification)
    if header.get("alg") != key.algorithm:
        raise PolicyLoadError(
            f"{SIGNATURES}: the token's algorithm is not the key's ({key.algorithm})"
        )
    signed = f"{parts[0]}.{parts[1]}".encode("ascii", "replace")
    signature = _unbase64(parts[2])
    if not _verify_token(key, signed, signature):
        raise PolicyLoadError(f"{SIGNATURES}: the signature is wrong")
    scope = verification.scope or key.scope
    if scope and payload.get("scope") != scope:
        raise PolicyLoadError(f"{SIGNATURES}: the signature is for another scope")
    return payload


def _token(content: bytes) -> str:
    """Return the one token of a signatures file: ``{"signatures": ["eyJ..."]}``."""
    try:
        tokens = json.loads(content)["signatures"]
    except (ValueError, KeyError, TypeError, RecursionError):
        tokens = None
    if isinstance(tokens, list) and len(tokens) == 1:
        token = tokens[0]
        if isinstance(token, str):
            return token
    raise PolicyLoadError(f"{SIGNATURES}: exactly one signature is expected")


def _key_of(
    header: Mapping[str, Any],
    payload: Mapping[str, Any],
    verification: BundleVerification,
) -> VerificationKey:
    """Return the configured key that a token names, unless the configuration names one."""
    key_id = verification.key_id or header.get("kid") or payload.get("keyid") or ""
    key = None
    if isinstance(key_id, str):
        key = verification.keys.get(key_id)
    if key is None:
        raise PolicyLoadError(f"{SIGNATURES}: no key is configured for this signature")
    return key


def verify_signatures(
    files: Mapping[str, bytes], verification: BundleVerification | None, *, origin: str
) -> bool:
    """Check a bundle's signature over all its files."""
    content = files.get(SIGNATURES)
    if verification is None:
        if content is not None:
            raise PolicyLoadError(
                f"{origin}: the bundle is signed, but no verification key is configured"
            )
        return False
    if content is None:
        raise PolicyLoadError(
            f"{origin}: a verification key is configured, but the bundle is not signed"
        )
    listed = _payload(content, verification).get("files")
    if not isinstance(listed, list):
        raise PolicyLoadError(f"{SIGNATURES}: the payload lists no files")
    remaining = _files_to_sign(files, verification)
    for entry in listed:
        remaining.discard(_verify_entry(entry, files))
    if remaining:
        raise PolicyLoadError(f"{SIGNATURES}: {min(remaining)} is not covered by the signature")
    return True


def _files_to_sign(files: Mapping[str, bytes], verification: BundleVerification) -> set[str]:
    """Return the files that a signature has to cover."""
    names = {path for path in files if not _is_excluded(path, verification)}
    names.discard(SIGNATURES)
    return names


def _is_excluded(path: str, verification: BundleVerification) -> bool:
    if path in verification.exclude_files:
        return True
    place = PurePosixPath(path)
    return any(place.match(pattern) for pattern in verification.exclude_files)


def _verify_entry(entry: Any, files: Mapping[str, bytes]) -> str:
    """Check one file of the payload; return its name."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise PolicyLoadError(f"{SIGNATURES}: an entry of the payload has no name")
    name = name.lstrip("/")
    if name not in files:
        raise PolicyLoadError(f"{SIGNATURES}: {name} is listed, but not in the bundle")
    algorithm = entry.get("algorithm") or "SHA-256"
    actual = file_hash(name, files[name], str(algorithm))
    expected = entry.get("hash")
    if isinstance(expected, str) and hmac.compare_digest(actual, expected.lower()):
        return name
    raise PolicyLoadError(f"{SIGNATURES}: {name} was changed after it was signed")
