"""Signed bundles: OPA signs, we verify; whatever is changed afterwards is refused."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from opa_program import require_opa

from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle_files import read_archive, write_archive
from agenttool_otel.policy.bundles.bundle_signature import (
    BundleVerification,
    VerificationKey,
    file_hash,
)
from agenttool_otel.policy.bundles.load import load_bundle

pytestmark = pytest.mark.opa

FILES = {
    "agenttool/p.rego": 'package agenttool.permission\n\ndecision := {"behavior": "deny"}\n',
    "agenttool/data.json": '{"z": 1.50, "a": "é\\u2028<&>\\b", "n": [1e3, null, true], "o": {"b": 1, "a": {}}}',
    ".manifest": '{"revision": "signed-1", "roots": ["agenttool"]}',
}


def keys(kind: str) -> tuple[str, str]:
    """Private and public key, made now."""
    if kind.startswith("HS"):
        secret = "-".join(["not", "a", "real", "secret"])
        return secret, secret
    private = (
        ec.generate_private_key(ec.SECP256R1())
        if kind.startswith("ES")
        else rsa.generate_private_key(65537, 2048)
    )
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem.decode(), public.decode()


def signed_by_opa(folder: Path, algorithm: str, private: str, *, scope: str = "") -> Path:
    source = folder / "src"
    for name, text in FILES.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    key = folder / "key.pem"
    key.write_text(private)
    target = folder / "bundle.tar.gz"
    arguments = ["--signing-alg", algorithm, "--signing-key", str(key)]
    if scope:
        claims = folder / "claims.json"
        claims.write_text(json.dumps({"scope": scope}))
        arguments += ["--claims-file", str(claims)]
    subprocess.run(
        [require_opa(), "build", "-b", ".", "-o", str(target), *arguments], cwd=source, check=True
    )
    return target


def verification(algorithm: str, public: str, **options: str) -> BundleVerification:
    key = VerificationKey(public, algorithm, options.pop("key_scope", ""))
    return BundleVerification({"default": key}, key_id="default", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256", "PS512", "RS384"])
def test_what_opa_signs_is_accepted(tmp_path: Path, algorithm: str) -> None:
    private, public = keys(algorithm)
    bundle = load_bundle(
        signed_by_opa(tmp_path, algorithm, private), verification=verification(algorithm, public)
    )
    assert bundle.verified
    assert bundle.revision == "signed-1"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], str]:
    private, public = keys("ES256")
    archive = signed_by_opa(tmp_path_factory.mktemp("signed"), "ES256", private, scope="write")
    return read_archive(archive.read_bytes(), origin="x"), public


class TestRefused:
    """One changed byte, another key, another algorithm, no signature: no bundle."""

    def load(self, folder: Path, files: dict[str, bytes], check: BundleVerification | None) -> None:
        path = folder / "x.tar.gz"
        path.write_bytes(write_archive(files))
        load_bundle(path, verification=check)

    def test_a_changed_policy(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        files, public = signed
        name = next(path for path in files if path.endswith(".rego"))
        with pytest.raises(PolicyLoadError, match="was changed after it was signed"):
            self.load(tmp_path, {**files, name: files[name] + b"#"}, verification("ES256", public))

    def test_changed_data(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        files, public = signed
        with pytest.raises(PolicyLoadError, match=r"data\.json was changed"):
            self.load(
                tmp_path,
                {**files, "data.json": files["data.json"].replace(b"1", b"2", 1)},
                verification("ES256", public),
            )

    def test_a_file_nobody_signed(
        self, tmp_path: Path, signed: tuple[dict[str, bytes], str]
    ) -> None:
        files, public = signed
        with pytest.raises(PolicyLoadError, match=r"extra\.rego is not covered"):
            self.load(
                tmp_path, {**files, "extra.rego": b"package x"}, verification("ES256", public)
            )

    def test_a_missing_file(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        files, public = signed
        less = {path: content for path, content in files.items() if path != "data.json"}
        with pytest.raises(PolicyLoadError, match="not in the bundle"):
            self.load(tmp_path, less, verification("ES256", public))

    def test_another_key(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        with pytest.raises(PolicyLoadError, match="the signature is wrong"):
            self.load(tmp_path, signed[0], verification("ES256", keys("ES256")[1]))

    def test_the_token_does_not_choose_the_algorithm(
        self, tmp_path: Path, signed: tuple[dict[str, bytes], str]
    ) -> None:
        # the public key used as an HMAC secret: the classic confusion
        with pytest.raises(PolicyLoadError, match="not the key's"):
            self.load(tmp_path, signed[0], verification("HS256", signed[1]))

    def test_another_scope(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        files, public = signed
        self.load(tmp_path, files, verification("ES256", public, scope="write"))
        with pytest.raises(PolicyLoadError, match="another scope"):
            self.load(tmp_path, files, verification("ES256", public, scope="read"))

    def test_unsigned_although_a_key_is_configured(
        self, tmp_path: Path, signed: tuple[dict[str, bytes], str]
    ) -> None:
        files, public = signed
        less = {path: content for path, content in files.items() if path != ".signatures.json"}
        with pytest.raises(PolicyLoadError, match="not signed"):
            self.load(tmp_path, less, verification("ES256", public))

    def test_signed_although_no_key_is_configured(
        self, tmp_path: Path, signed: tuple[dict[str, bytes], str]
    ) -> None:
        with pytest.raises(PolicyLoadError, match="no verification key"):
            self.load(tmp_path, signed[0], None)

    def test_no_key_of_that_id(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        with pytest.raises(PolicyLoadError, match="no key is configured"):
            self.load(tmp_path, signed[0], BundleVerification({}))

    def test_a_key_that_is_none(self, tmp_path: Path, signed: tuple[dict[str, bytes], str]) -> None:
        with pytest.raises(ConfigurationError, match="not a PEM"):
            self.load(tmp_path, signed[0], verification("ES256", "nonsense"))

    @pytest.mark.parametrize(
        "content",
        [b"", b"[]", b'{"signatures": []}', b'{"signatures": ["a", "b"]}', b'{"signatures": ["a.b"]}',
         b'{"signatures": ["!.!.!"]}', b'{"signatures": ["W10.W10.W10"]}'],
    )  # fmt: skip
    def test_nonsense_for_a_signature(
        self, tmp_path: Path, signed: tuple[dict[str, bytes], str], content: bytes
    ) -> None:
        with pytest.raises(PolicyLoadError, match="signatures"):
            self.load(
                tmp_path,
                {**signed[0], ".signatures.json": content},
                verification("ES256", signed[1]),
            )


def test_opa_refuses_what_we_refuse(tmp_path: Path) -> None:
    """The same changed archive, on OPA itself."""
    private, public = keys("ES256")
    archive = signed_by_opa(tmp_path, "ES256", private)
    files = read_archive(archive.read_bytes(), origin="x")
    name = next(path for path in files if path.endswith(".rego"))
    changed = tmp_path / "changed.tar.gz"
    changed.write_bytes(write_archive({**files, name: files[name] + b"\n# x\n"}))
    key = tmp_path / "pub.pem"
    key.write_text(public)
    assert tarfile.is_tarfile(changed)
    for path, good in ((archive, True), (changed, False)):
        done = subprocess.run(
            [require_opa(), "build", "-b", str(path), "-o", str(tmp_path / "out.tar.gz"),
             "--verification-key", str(key), "--signing-alg", "ES256"],
            capture_output=True, check=False,
        )  # fmt: skip
        try:
            load_bundle(path, verification=verification("ES256", public))
            ours = True
        except PolicyLoadError:
            ours = False
        assert (done.returncode == 0) is good is ours


def test_the_hash_of_data_is_that_of_its_canonical_form() -> None:
    assert file_hash("data.json", b'{"b": 1, "a": [1.0]}') == file_hash(
        "data.json", b'{"a":[1.0],"b":1}'
    )
    assert file_hash("data.json", b'{"a": 1.0}') != file_hash("data.json", b'{"a": 1}')
    assert file_hash("p.rego", b"a ") != file_hash("p.rego", b"a")
