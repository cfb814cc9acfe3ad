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
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.authoring.project import Project
from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle import SIGNATURES, Bundle
from agenttool_otel.policy.bundles.bundle_files import bundle_files, write_archive
from agenttool_otel.policy.bundles.bundle_signature import (
    BundleVerification,
    VerificationKey,
    file_hash,
)
from agenttool_otel.policy.bundles.load import bundle_of_archive

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ALGORITHMS: Final = ("RS256", "ES256", "HS256")
"""Algorithms that bundles can be signed with."""

_HASH: Final = "SHA-256"
_MIN_SECRET: Final = 32
_EXTENSION_ROOTS: Final = ("agenttool/custom", "agenttool/settings")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key that a bundle is signed with."""

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
    """Build a bundle; return its archive.

    Args:
        project: The policy.
        revision: Its revision; by default the manifest's.
        with_base: Whether the stock bundle is put in, too.
        signing: The key to sign it with; ``None`` for none.

    Raises:
        ConfigurationError: There is no revision, or the key does not fit its algorithm.
        PolicyLoadError: What was built, read again, is not what was put in.
    """
    revision = revision or str(project.own.manifest.get("revision") or "")
    if not revision:
        raise ConfigurationError("the bundle needs a revision")
    source = project.own
    if with_base:
        source = project.whole
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
    if not _is_same(again, bundle):
        raise PolicyLoadError("the built bundle does not hold what was put into it")
    return archive


def _is_same(built: Bundle, source: Bundle) -> bool:
    if built.revision != source.revision:
        return False
    return built.modules == source.modules and built.data_json == source.data_json


def _roots(project: Project, *, with_base: bool) -> tuple[str, ...]:
    """The paths of data that the bundle owns: OPA refuses two bundles that own the same one."""
    own = project.own.roots
    if "roots" not in project.own.manifest and _is_extension(project):
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
    if project.base is None:
        return False
    places = set()
    for module in project.program.modules:
        if module.file in project.own.modules:
            places.add("/".join(module.package[:2]))
    for name, value in project.own.data.items():
        if isinstance(value, dict):
            places.update(f"{name}/{part}" for part in value)
        else:
            places.add(name)
    return places.issubset(_EXTENSION_ROOTS)


def _signed(files: dict[str, bytes], signing: SigningKey) -> tuple[bytes, BundleVerification]:
    """The content of ``.signatures.json``, and what checks it: a JWT over the hash of each file.

    https://www.openpolicyagent.org/docs/management-bundles#signature-format
    """
    listed = []
    for path, content in sorted(files.items()):
        listed.append(
            {
                "name": path,
                "hash": file_hash(path, content, _HASH),
                "algorithm": _HASH,
            }
        )
    payload: dict[str, Any] = {"files": listed, "keyid": signing.key_id}
    if signing.scope:
        payload["scope"] = signing.scope
    header = {"alg": signing.algorithm, "kid": signing.key_id, "typ": "JWT"}
    text = f"{_part(header)}.{_part(payload)}"
    signature, public = _signature(text.encode("ascii"), signing)
    token = f"{text}.{_base64(signature)}"
    document = json.dumps({"signatures": [token]}).encode("utf-8")
    key = VerificationKey(public, signing.algorithm, signing.scope)
    return document, BundleVerification({signing.key_id: key})


def _part(value: dict[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return _base64(text.encode("utf-8"))


def _base64(content: bytes) -> str:
    # RFC 7515, section 2: base64url "with all trailing '=' characters omitted"
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _signature(signed: bytes, signing: SigningKey) -> tuple[bytes, str]:
    """Sign; return the signature and the text of the key that verifies it."""
    if signing.algorithm not in ALGORITHMS:
        raise ConfigurationError(f"bundles are signed with one of {', '.join(ALGORITHMS)}")
    if signing.algorithm == "HS256":
        return _shared_secret_signature(signed, signing), signing.key
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    try:
        private = serialization.load_pem_private_key(signing.key.encode("utf-8"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(
            "the signing key is no PEM private key without a password"
        ) from None
    if signing.algorithm == "RS256" and isinstance(private, rsa.RSAPrivateKey):
        signature = private.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    elif signing.algorithm == "ES256" and isinstance(private, ec.EllipticCurvePrivateKey):
        signature = _curve_signature(signed, private)
    else:
        raise ConfigurationError(f"the signing key does not fit {signing.algorithm}")
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM,
        serialization.PublicFormat.SubjectPublicKeyInfo,
    )
    return signature, public.decode("ascii")


def _shared_secret_signature(signed: bytes, signing: SigningKey) -> bytes:
    secret = signing.key.encode("utf-8")
    if len(secret) < _MIN_SECRET:
        raise ConfigurationError(
            f"a secret for HS256 has {_MIN_SECRET} bytes or more (RFC 7518, section 3.2)"
        )
    return hmac.digest(secret, signed, hashlib.sha256)


def _curve_signature(signed: bytes, private: EllipticCurvePrivateKey) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    # RFC 7518, section 3.4: ES256 is "ECDSA using P-256 and SHA-256"
    if not isinstance(private.curve, ec.SECP256R1):
        raise ConfigurationError("the signing key does not fit ES256")
    try:
        # the same bundle and key give the same bytes (RFC 6979)
        encoded = private.sign(signed, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
    except (TypeError, UnsupportedAlgorithm):  # an older OpenSSL
        encoded = private.sign(signed, ec.ECDSA(hashes.SHA256()))
    # cryptography encodes both numbers in DER; a JWT has them as 32 bytes each
    r, s = utils.decode_dss_signature(encoded)
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")
