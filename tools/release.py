"""Build wheel and sdist and check them: contents, metadata, bare installs with each extra, a list
of parts (SBOM).

``python tools/release.py build`` makes and checks both files in ``dist`` and needs no network;
``install`` goes on with a bare environment for the base, one for each extra and one for all, and
writes ``dist/sbom.json`` (CycloneDX). ``tag`` gives the version its git tag at the end, where
nothing is open any more.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGE: Final = ROOT / "src" / "agenttool_otel"
STEM: Final = f"agenttool_otel-{PROJECT['version']}"
_LIST: Final = """
import json, sys
from importlib import metadata
found = [{"type": "library", "name": d.metadata["Name"], "version": d.version,
          "purl": f"pkg:pypi/{d.metadata['Name'].lower()}@{d.version}",
          "licenses": [{"license": {"name": d.metadata.get("License-Expression") or d.metadata.get("License") or "?"}}]}
         for d in metadata.distributions()]
json.dump(sorted(found, key=lambda part: part["name"].lower()), sys.stdout)
"""
TRY: Final = """
from agenttool_otel import ToolDenied, agent_context, govern
@govern(tool_kind="file_operation", access_kinds=["file_read"], read_only=True)
def read(path: str) -> str:
    "Read."
    return "read"
with agent_context(actor="agent:a", roots=["."]):
    assert read("a.txt") == "read"
    try:
        read("/etc/shadow")
    except ToolDenied:
        print("decided")
"""
_TRY_SQL: Final = """
import importlib.util
from agenttool_otel import agent_context, govern
@govern(sql_args=["sql"], read_only="classifier:command_read_only", destructive=False, access_kinds=["network"])
def query(sql: str) -> str:
    "Query."
    return "rows"
with agent_context(actor="agent:a"):
    behavior = query.tool.check(sql="select 1").behavior
assert behavior == ("allow" if importlib.util.find_spec("sqlglot") else "ask"), behavior
"""


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist.

    Args:
        folder: where to.

    Returns:
        Both files.
    """
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    return folder / f"{STEM}-py3-none-any.whl", folder / f"{STEM}.tar.gz"


def problems(wheel: Path, sdist: Path) -> list[str]:
    """Say what is wrong with the two files.

    Args:
        wheel: the wheel.
        sdist: the source distribution.
    """
    found: list[str] = []
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        metadata = archive.read(f"{STEM}.dist-info/METADATA").decode("utf-8")
    wanted = {f"agenttool_otel/{path.relative_to(PACKAGE)}" for path in _files(PACKAGE)}
    for name, folder in (("_policies", ROOT / "policies"), ("_demo", ROOT / "examples" / "demo")):
        wanted |= {f"agenttool_otel/{name}/{path.relative_to(folder)}" for path in _files(folder)}
    info = {
        f"{STEM}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
    }
    info |= {f"{STEM}.dist-info/licenses/LICENSE", "agenttool_otel/_compiled/stock.bin"}
    found += [f"the wheel lacks {name}" for name in sorted((wanted | info) - inside)]
    found += [f"the wheel has {name}" for name in sorted(inside - wanted - info)]
    for line in (
        f"Name: {PROJECT['name']}",
        f"Version: {PROJECT['version']}",
        "License-Expression: Apache-2.0",
    ):
        if line not in metadata.splitlines():
            found.append(f"the metadata lack {line}")
    extras = set(re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE))
    if extras != set(PROJECT["optional-dependencies"]):
        found.append(f"the metadata have the extras {sorted(extras)}")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "src/agenttool_otel/py.typed",
        "policies/.manifest",
    }
    found += [f"the sdist lacks {name}" for name in sorted(needed - names)]
    foreign = re.compile(r"(^|/)\.(venv|git|servers)(/|$)|\.db$")
    found += [f"the sdist has {name}" for name in sorted(names) if foreign.search(name)]
    return found


def _files(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]


def installs(wheel: Path) -> list[dict[str, Any]]:
    """Install the wheel in bare environments and try it; return the parts of the one with all extras.

    Args:
        wheel: the wheel.
    """
    extras = list(PROJECT["optional-dependencies"])
    parts: list[dict[str, Any]] = []
    for wanted in ("", *extras, ",".join(extras)):
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = str(Path(folder) / "bin" / "python")
            target = f"{wheel}[{wanted}]" if wanted else str(wheel)
            subprocess.run(
                [python, "-m", "pip", "install", "-q", "--only-binary", ":all:", target], check=True
            )
            subprocess.run([python, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([python, "-c", TRY], check=True, cwd=folder)
            subprocess.run([python, "-c", _TRY_SQL], check=True, cwd=folder)
            command = [str(Path(folder) / "bin" / "agenttool"), "--help"]
            status = subprocess.run(command, capture_output=True, text=True, check=False)
            if (status.returncode == 0) is not ("cli" in wanted) or (
                status.returncode and "cli" not in status.stderr
            ):
                raise SystemExit(f"agenttool --help with {wanted or 'no extra'}: {status.stderr}")
            if not wanted:
                removed = [python, "-m", "pip", "uninstall", "-q", "-y", "gordon-to-regorus"]
                subprocess.run(removed, check=True)
                subprocess.run(
                    [python, "-P", str(ROOT / "tools" / "without_engine.py")],
                    check=True,
                    cwd=folder,
                )
                print("decides by an OPA server without gordon-to-regorus", flush=True)
            listed = subprocess.run(
                [python, "-c", _LIST], check=True, capture_output=True, text=True
            ).stdout
            parts = json.loads(listed)
            print(
                f"installs and decides: {wanted or 'base'} ({len(parts)} distributions)", flush=True
            )
    return parts


def tag(root: Path, version: str) -> str:
    """Tag the present commit with the version, as ``v0.1.0``.

    Args:
        root: the repository.
        version: the version, as the package's metadata have it.

    Returns:
        The tag.

    Raises:
        SystemExit: the working tree is not clean, the changelog has no entry for the version or
            has entries that belong to none, or another commit has the tag.
    """
    if _git(root, "status", "--porcelain"):
        raise SystemExit("not tagged: the working tree is not clean")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    if f"\n## [{version}]" not in changelog:
        raise SystemExit(f"not tagged: CHANGELOG.md has no entry for {version}")
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if unreleased and unreleased[1].strip():
        raise SystemExit(
            "not tagged: give the entries under Unreleased in CHANGELOG.md a version, and pyproject.toml the same"
        )
    name = f"v{version}"
    if _git(root, "tag", "--list", name):
        if _git(root, "rev-parse", f"{name}^{{commit}}") != _git(root, "rev-parse", "HEAD"):
            raise SystemExit(f"not tagged: another commit is {name}; raise the version")
        return name
    _git(root, "tag", "--annotate", "--message", f"{PROJECT['name']} {version}", name)
    return name


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(words: list[str]) -> int:
    """Build and check; install and tag where asked to."""
    folder = ROOT / "dist"
    wheel, sdist = build(folder)
    found = problems(wheel, sdist)
    print("\n".join(found) or f"{wheel.name} and {sdist.name} hold what they should")
    if found:
        return 1
    if "install" in words:
        _install(wheel, folder)
    if "tag" in words:
        print(f"tagged {tag(ROOT, PROJECT['version'])}")
    return 0


def _install(wheel: Path, folder: Path) -> None:
    part = {"type": "application", "name": PROJECT["name"], "version": PROJECT["version"]}
    sbom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": part},
    }
    sbom["components"] = [item for item in installs(wheel) if item["name"] != PROJECT["name"]]
    (folder / "sbom.json").write_text(json.dumps(sbom, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
