"""``policy build`` makes bundles that load here and in a real OPA, and that nobody can
change unseen.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from policy_project import example_input, run, run_json, write

from agenttool_otel.authoring.project import load_project
from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import SIGNATURES
from agenttool_otel.policy.bundles.bundle_files import read_archive, write_archive
from agenttool_otel.policy.bundles.bundle_signature import BundleVerification, VerificationKey
from agenttool_otel.policy.bundles.load import load_bundle
from samples import one_in

ALGORITHMS = ["RS256", "ES256", "HS256"]


def _keys(algorithm: str, folder: Path) -> tuple[Path, Path]:
    """Files with the private and the public key, made now."""
    private, public = folder / "private.key", folder / "public.key"
    if algorithm == "HS256":
        for path in (private, public):
            path.write_text("-".join(["not", "a", "real", "secret"] * 3) + "\n", "utf-8")
        return private, public
    key = (
        ec.generate_private_key(ec.SECP256R1())
        if algorithm == "ES256"
        else rsa.generate_private_key(65537, 2048)
    )
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


def _verification(algorithm: str, public: Path, scope: str = "") -> BundleVerification:
    return BundleVerification(
        {"default": VerificationKey(public.read_text("utf-8").strip(), algorithm, scope)}
    )


def _built(project: Path, target: Path, *options: str | Path) -> Path:
    done = run("build", project, "-o", target, "--revision", "r-7", *options)
    assert done.exit_code == 0, done.output
    return target


def test_a_bundle_holds_the_rules_and_data_without_tests(project: Path, tmp_path: Path) -> None:
    status, told = run_json(
        "build", project, "-o", tmp_path / "b.tar.gz", "--revision", "r-7", "--json"
    )
    assert status == 0
    assert told["revision"] == "r-7"
    files = read_archive((tmp_path / "b.tar.gz").read_bytes(), origin="b")
    assert set(files) == {".manifest", "data.json", "agenttool/custom/deployments.rego"}
    bundle = load_bundle(tmp_path / "b.tar.gz")
    assert bundle.revision == "r-7"
    assert bundle.roots == ("agenttool/custom", "agenttool/settings")
    assert bundle.data == load_project(project).own.data


@pytest.mark.slow
def test_the_same_files_give_the_same_bytes(project: Path, tmp_path: Path) -> None:
    first = _built(project, tmp_path / "1.tar.gz").read_bytes()
    (project / "agenttool/custom/deployments.rego").touch()
    assert _built(project, tmp_path / "2.tar.gz").read_bytes() == first
    write(project, {"agenttool/custom/data.json": "{}"})
    assert _built(project, tmp_path / "3.tar.gz").read_bytes() != first


def test_the_built_bundle_decides_as_the_folder_does(project: Path, tmp_path: Path) -> None:
    bundle = _built(project, tmp_path / "b.tar.gz")
    for time in ("2026-11-20T12:00:00Z", "2026-11-19T12:00:00Z"):
        text = json.dumps(example_input(project, time=time))
        built, folder = (
            run_json("decide", "--bundle", place, stdin=text) for place in (bundle, project)
        )
        assert built[0] == folder[0]
        assert built[1]["reason"] == folder[1]["reason"]
    assert (
        run_json("explain", bundle, project / "input.json", "--json")[1]["decided_by"][0]["line"]
        == 18
    )


@pytest.mark.parametrize("algorithm", one_in(4, ALGORITHMS))
def test_a_signed_bundle_is_verified(project: Path, tmp_path: Path, algorithm: str) -> None:
    private, public = _keys(algorithm, tmp_path)
    options = ("--sign-key", private, "--algorithm", algorithm, "--scope", "write")
    target = _built(project, tmp_path / "b.tar.gz", *options)
    bundle = load_bundle(target, verification=_verification(algorithm, public, "write"))
    assert bundle.verified
    assert _built(project, tmp_path / "again.tar.gz", *options).read_bytes() == target.read_bytes()
    with pytest.raises(PolicyLoadError, match="another scope"):
        load_bundle(target, verification=_verification(algorithm, public, "read"))
    with pytest.raises(PolicyLoadError, match="no verification key"):
        load_bundle(target)


@pytest.mark.parametrize("algorithm", one_in(4, ALGORITHMS))
def test_a_signed_bundle_is_asked_only_with_its_key(
    project: Path, tmp_path: Path, algorithm: str
) -> None:
    private, public = _keys(algorithm, tmp_path)
    target = _built(project, tmp_path / "b.tar.gz", "--sign-key", private, "--algorithm", algorithm)
    text = (project / "input.json").read_text("utf-8")
    key = ("--verification-key", public, "--algorithm", algorithm)
    code, asked = run_json("decide", "--bundle", project, stdin=text)
    verified = run_json("decide", "--bundle", target, *key, stdin=text)
    assert (verified[0], verified[1]["reason"]) == (code, asked["reason"])
    assert run_json("explain", target, project / "input.json", *key, "--json")[0] == 0
    (tmp_path / "other").mkdir()
    _, its_public = _keys(algorithm, tmp_path / "other")
    if algorithm == "HS256":
        its_public.write_text("another-" * 8, "utf-8")
    for wrong in ((), ("--verification-key", its_public, "--algorithm", algorithm)):
        code, refused = run_json("decide", "--bundle", target, *wrong, stdin=text)
        assert (code, refused["behavior"]) == (2, "deny")
    code, refused = run_json("decide", "--bundle", project, *key, stdin=text)
    assert (code, refused["behavior"]) == (2, "deny")
    assert "not signed" in refused["error"]


@pytest.mark.parametrize("algorithm", one_in(4, ALGORITHMS))
def test_a_change_after_signing_is_seen(project: Path, tmp_path: Path, algorithm: str) -> None:
    private, public = _keys(algorithm, tmp_path)
    target = _built(project, tmp_path / "b.tar.gz", "--sign-key", private, "--algorithm", algorithm)
    files = read_archive(target.read_bytes(), origin="b")
    changed = [
        {**files, "agenttool/custom/deployments.rego": b"package agenttool.custom\n"},
        {**files, "extra.rego": b"package extra\n"},
        {name: content for name, content in files.items() if name != "data.json"},
    ]
    for content in changed:
        target.write_bytes(write_archive(content))
        with pytest.raises(PolicyLoadError):
            load_bundle(target, verification=_verification(algorithm, public))


@pytest.mark.opa
@pytest.mark.parametrize("algorithm", one_in(4, ALGORITHMS))
def test_opa_verifies_and_runs_a_signed_bundle(
    project: Path, tmp_path: Path, algorithm: str, real_opa: str
) -> None:
    private, public = _keys(algorithm, tmp_path)
    target = _built(
        project,
        tmp_path / "b.tar.gz",
        "--with-base",
        "--sign-key",
        private,
        "--algorithm",
        algorithm,
    )
    key = public.read_text("utf-8").strip() if algorithm == "HS256" else str(public)
    verifying = (
        "build", "--bundle", str(target), "--verification-key", key, "--signing-alg", algorithm,
        "--verification-key-id", "default", "-o", str(tmp_path / "again.tar.gz"),
    )  # fmt: skip
    # it signs again what it verified, with the same key
    signing = (
        "--signing-key",
        private.read_text("utf-8").strip() if algorithm == "HS256" else str(private),
    )
    done = subprocess.run(
        [real_opa, *verifying, *signing], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = read_archive(target.read_bytes(), origin="b")
    files["data.json"] = files["data.json"].replace(b"Friday", b"Freeday")
    target.write_bytes(write_archive(files))
    refused = subprocess.run(
        [real_opa, *verifying, *signing], capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "digest" in refused.stdout + refused.stderr


@pytest.mark.opa
def test_opa_decides_alike_with_a_whole_bundle(
    project: Path, tmp_path: Path, real_opa: str
) -> None:
    target = _built(project, tmp_path / "b.tar.gz", "--with-base")
    arguments = (
        "eval",
        "--format",
        "json",
        "--bundle",
        str(target),
        "--input",
        str(project / "input.json"),
    )
    done = subprocess.run(
        [real_opa, *arguments, "data.agenttool.permission.decision"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    ours = run_json(
        "decide", "--bundle", target, stdin=(project / "input.json").read_text("utf-8")
    )[1]
    assert value["behavior"] == ours["behavior"] == "deny"
    assert (
        value["reason"]["rule_ref"] == ours["reason"]["rule_ref"] == "custom.deployments.frozen_day"
    )


@pytest.mark.opa
def test_the_bundle_lies_beside_the_stock_one_in_one_opa(
    project: Path, tmp_path: Path, real_opa: str
) -> None:
    from agenttool_otel.policy.bundles.bundle import default_bundle_path

    (project / ".manifest").unlink()
    target = _built(project, tmp_path / "b.tar.gz")
    bundles = ("--bundle", str(target), "--bundle", str(default_bundle_path()))
    done = subprocess.run(
        [real_opa, "eval", "--format", "json", *bundles, "--input", str(project / "input.json"),
         "data.agenttool.permission.decision.behavior"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"value": "deny"' in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sign-key", "{short}", "--algorithm", "HS256"], "32 bytes"),
        (["--sign-key", "{rsa}", "--algorithm", "ES256"], "does not fit ES256"),
        (["--sign-key", "{rsa}", "--algorithm", "none"], "signed with one of"),
        (["--sign-key", "{short}"], "no PEM private key"),
        (["--sign-key", "{missing}"], "can't be read"),
    ],
)
def test_a_key_that_does_not_fit_writes_nothing(
    project: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    private, _ = _keys("RS256", tmp_path)
    (tmp_path / "short").write_text("short", "utf-8")
    places = {"short": tmp_path / "short", "rsa": private, "missing": tmp_path / "missing"}
    target = tmp_path / "b.tar.gz"
    done = run("build", project, "-o", target, *(option.format(**places) for option in options))
    assert done.exit_code == 2
    assert message in done.stderr
    assert not target.exists()


def test_a_broken_project_is_not_built_and_keeps_its_bundle(project: Path, tmp_path: Path) -> None:
    target = _built(project, tmp_path / "b.tar.gz")
    before = target.read_bytes()
    write(
        project,
        {"agenttool/custom/more.rego": "package agenttool.custom.more\n\na if b\n\nb if a\n"},
    )
    done = run("build", project, "-o", target)
    assert done.exit_code == 2
    assert "agenttool/custom/more.rego:3" in done.stderr
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.glob(".b.tar.gz.*")] == []


def test_a_bundle_needs_a_revision(project: Path, tmp_path: Path) -> None:
    (project / ".manifest").unlink()
    done = run("build", project, "-o", tmp_path / "b.tar.gz")
    assert done.exit_code == 2
    assert "revision" in done.stderr
    assert (
        run("build", project, "-o", tmp_path / "nowhere" / "b.tar.gz", "--revision", "1").exit_code
        == 2
    )


def test_signatures_are_in_the_place_that_opa_defines(project: Path, tmp_path: Path) -> None:
    private, _ = _keys("HS256", tmp_path)
    target = _built(project, tmp_path / "b.tar.gz", "--sign-key", private, "--algorithm", "HS256")
    files = read_archive(target.read_bytes(), origin="b")
    assert list(json.loads(files[SIGNATURES])) == ["signatures"]
