"""Makes a bundle of a project: checked, with a revision, without tests, the same bytes each time,
signed on request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from agenttool_otel.authoring.project import Project
from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle import SIGNATURES
from agenttool_otel.policy.bundles.bundle_files import bundle_files, write_archive
from agenttool_otel.policy.bundles.bundle_signature import (
    BundleVerification,
    VerificationKey,
    file_hash,
)
from agenttool_otel.policy.bundles.load import bundle_of_archive

ALGORITHMS: Final = ("RS256", "ES256", "HS256")
"""Algorithms that bundles can be signed with."""

_HASH: Final = "SHA-256"
_MIN_SECRET: Final = 32
_EXTENSION_ROOTS: Final = ("agenttool/custom", "agenttool/settings")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What a bundle is signed with."""

    # PEM text of the private key, or the secret for HS256 (32 bytes or more)
    key: str = field(repr=False)
    algorithm: str = "RS256"  # one of ``ALGORITHMS``
    key_id: str = "default"  # how the verifier calls the key; OPA's own default is ``default``
    scope: str = ""  # scope that the signature states, if not empty


def build_bundle(
    project: Project,
    *,
    revision: str = "",
    with_base: bool = False,
    signing: SigningKey | None = None,
) -> bytes:
    """Build a bundle."""
    revision = revision or str(project.own.manifest.get("revision") or "")
    if not revision:
        raise ConfigurationError("the bundle needs a revision")
    source = project.whole if with_base else project.own
    manifest = {
        **source.manifest,
        "revision": revision,
        "roots": list(_roots(project, with_base=with_base)),
        "rego_version": 1,
    }
    # the manifest's own members, not those that the loader made up
    bundle = replace(source, revision=revision, manifest=MappingProxyType(manifest))
    files = bundle_files(bundle)
    verification = None
    if signing is not None:
        files[SIGNATURES], verification = _signed(files, signing)
    archive = write_archive(files)
    again = bundle_of_archive(archive, origin="the built bundle", verification=verification)
    if (again.modules, again.data_json, again.revision) != (
        bundle.modules,
        bundle.data_json,
        bundle.revision,
    ):
        raise PolicyLoadError("the built bundle does not hold what was put into it")
    return archive


def _roots(project: Project, *, with_base: bool) -> tuple[str, ...]:
    own = project.own.roots
    if "roots" not in project.own.manifest and project.base is not None and _is_extension(project):
        own = _EXTENSION_ROOTS
    if not with_base or project.base is None:
        return own
    if "" in own:
        return ("",)
    return tuple(sorted({*own, *project.base.roots}))


def _is_extension(project: Project) -> bool:
    """Whether all of it lies where extensions do, so that the bundle can lie beside the stock one
    in an OPA.
    """
    places = [
        "/".join(module.package[:2])
        for module in project.program.modules
        if module.file in project.own.modules
    ]
    for name, value in project.own.data.items():
        places += [f"{name}/{part}" for part in value] if isinstance(value, dict) else [name]
    return set(places) <= set(_EXTENSION_ROOTS)


def _signed(files: dict[str, bytes], signing: SigningKey) -> tuple[bytes, BundleVerification]:
    listed = [
        {"name": path, "hash": file_hash(path, content, _HASH), "algorithm": _HASH}
        for path, content in sorted(files.items())
    ]
    payload: dict[str, Any] = {"files": listed, "keyid": signing.key_id}
    if signing.scope:
        payload["scope"] = signing.scope
    header = {"alg": signing.algorithm, "kid": signing.key_id, "typ": "JWT"}
    text = f"{_part(header)}.{_part(payload)}"
    signature, public = _signature(text.encode("ascii"), signing)
    token = f"{text}.{_base64(signature)}"
    key = VerificationKey(public, signing.algorithm, signing.scope)
    return json.dumps({"signatures": [token]}).encode("utf-8"), BundleVerification(
        {signing.key_id: key}
    )


def _part(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":"), sort_keys=True).encode("utf-8"))


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _signature(signed: bytes, signing: SigningKey) -> tuple[bytes, str]:
    """Sign, and return what verifies it."""
    if signing.algorithm not in ALGORITHMS:
        raise ConfigurationError(f"bundles are signed with one of {', '.join(ALGORITHMS)}")
    if signing.algorithm == "HS256":
        secret = signing.key.encode("utf-8")
        if len(secret) < _MIN_SECRET:
            raise ConfigurationError(
                f"a secret for HS256 has {_MIN_SECRET} bytes or more (RFC 7518, section 3.2)"
            )
        return hmac.digest(secret, signed, hashlib.sha256), signing.key
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    try:
        private = serialization.load_pem_private_key(signing.key.encode("utf-8"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(
            "the signing key is no PEM private key without a password"
        ) from None
    if signing.algorithm == "RS256" and isinstance(private, rsa.RSAPrivateKey):
        signature = private.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    elif (
        signing.algorithm == "ES256"
        and isinstance(private, ec.EllipticCurvePrivateKey)
        and isinstance(private.curve, ec.SECP256R1)
    ):
        try:
            # the same bundle and key give the same bytes (RFC 6979)
            encoded = private.sign(signed, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        except (TypeError, UnsupportedAlgorithm):
            encoded = private.sign(signed, ec.ECDSA(hashes.SHA256()))
        signature = b"".join(
            number.to_bytes(32, "big") for number in utils.decode_dss_signature(encoded)
        )
    else:
        raise ConfigurationError(f"the signing key does not fit {signing.algorithm}")
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return signature, public.decode("ascii")
