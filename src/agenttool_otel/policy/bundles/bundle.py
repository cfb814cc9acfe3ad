"""A bundle in memory: Rego modules, one data document and a manifest, as OPA defines them, and
immutable.

What counts is what OPA loads from a bundle (docs "Bundles", "Bundle File Format"): ``*.rego``,
``data.json`` and ``data.yaml`` whose directory is their place in ``data``, and ``.manifest``.
``_test.rego`` files are kept apart: they are for testing and never take part in a decision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.values.conversion import loads_unique

MANIFEST: Final = ".manifest"
"""Name of the manifest at the top of a bundle."""

SIGNATURES: Final = ".signatures.json"
"""Name of the signatures file at the top of a bundle."""

TEST_SUFFIX: Final = "_test.rego"
"""End of the names of files that only ``policy test`` reads."""

MAX_BUNDLE_BYTES: Final = 64 * 1024 * 1024
"""Most bytes that all files of a bundle may take together, unpacked."""

MAX_BUNDLE_FILES: Final = 10_000
"""Most files of a bundle."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Policies and data of one revision; nothing in it changes after it was made."""

    modules: Mapping[str, str]  # Rego text by its path in the bundle, without tests
    data_json: str  # the data document as JSON text
    revision: str  # the manifest's revision, or the digest's first 16 digits where it states none
    # SHA-256 over modules, data and manifest, as hexadecimal digits. Two bundles with the same
    # digest decide alike, whatever their revisions are
    digest: str
    # paths below ``data`` that the bundle owns; an empty string means all
    roots: tuple[str, ...] = ("",)
    # the manifest as written
    manifest: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    # Rego text of ``_test.rego`` files
    tests: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    origin: str = ""  # where it came from, for messages
    verified: bool = False  # a signature over all its files was checked

    @property
    def data(self) -> dict[str, Any]:
        """A fresh copy of the data document."""
        document: dict[str, Any] = json.loads(self.data_json)
        return document


def default_bundle_path() -> Path:
    """Return the directory of the stock bundle: inside the installed package, else the repository's
    ``policies/``.
    """
    package = Path(__file__).resolve().parents[2]
    for candidate in (package / "_policies", package.parent.parent / "policies"):
        if candidate.is_dir():
            return candidate
    raise PolicyLoadError("the stock policy bundle is missing from this installation")


def _parse_data(path: str, content: bytes) -> Any:
    try:
        text = content.decode("utf-8")
        if path.endswith((".yaml", ".yml")):
            return _parse_yaml(path, text)
        return loads_unique(text)
    except RecursionError:
        raise PolicyLoadError(f"{path}: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise PolicyLoadError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except ValueError as error:
        raise PolicyLoadError(f"{path}: not usable as data: {error}") from None


def _parse_yaml(path: str, text: str) -> Any:
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise PolicyLoadError(
            f"{path}{line}: not YAML: {getattr(error, 'problem', 'syntax error')}"
        ) from None
    # only what JSON can hold: dates and other YAML types have no meaning in Rego
    return json.loads(json.dumps(value, allow_nan=False))


def _merge(target: dict[str, Any], source: dict[str, Any], path: str) -> None:
    """Merge iteratively; two files that define the same place differently are a broken bundle."""
    pending = [(target, source, "")]
    while pending:
        into, new, place = pending.pop()
        for key, value in new.items():
            present = into.get(key)
            if key not in into:
                into[key] = value
            elif isinstance(present, dict) and isinstance(value, dict):
                pending.append((present, value, f"{place}/{key}"))
            else:
                raise PolicyLoadError(f"{path}: data{place}/{key} is defined twice")


def _parse_manifest(content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {}
    manifest = _parse_data(MANIFEST, content)
    if not isinstance(manifest, dict):
        raise PolicyLoadError(f"{MANIFEST}: not an object")
    revision = manifest.get("revision", "")
    if not isinstance(revision, str):
        raise PolicyLoadError(f"{MANIFEST}: revision is not a string")
    if not _are_roots(manifest.get("roots")):
        raise PolicyLoadError(f"{MANIFEST}: roots is not a list of strings")
    version = manifest.get("rego_version", 1)
    if version != 1 or manifest.get("file_rego_versions"):
        raise PolicyLoadError(f"{MANIFEST}: only Rego v1 is supported")
    if manifest.get("wasm"):
        raise PolicyLoadError(f"{MANIFEST}: WASM modules in a bundle are not supported")
    return manifest


def _are_roots(roots: Any) -> bool:
    if roots is None:
        return True
    return isinstance(roots, list) and all(isinstance(root, str) for root in roots)


def in_roots(path: str, roots: tuple[str, ...]) -> bool:
    """Return whether a slash-separated path below ``data`` is one of the roots or lies below one."""
    return any(_is_in(path, root) for root in roots)


def _is_in(path: str, root: str) -> bool:
    if root in ("", path):
        return True
    # "agenttool" holds "agenttool/rules", not "agenttools"
    return path.startswith(f"{root}/")


def _check_data_roots(data: dict[str, Any], roots: tuple[str, ...]) -> None:
    if "" in roots:
        return
    pending: list[tuple[str, Any]] = list(data.items())
    while pending:
        path, value = pending.pop()
        if in_roots(path, roots):
            continue
        leads_to_root = isinstance(value, dict) and value and _is_above(path, roots)
        if not leads_to_root:
            raise PolicyLoadError(f"data/{path} lies outside the manifest's roots")
        for key, child in value.items():
            pending.append((f"{path}/{key}", child))


def _is_above(path: str, roots: tuple[str, ...]) -> bool:
    return any(root.startswith(f"{path}/") for root in roots)


def bundle_from_files(files: Mapping[str, bytes], *, origin: str, verified: bool = False) -> Bundle:
    """Make a bundle of the files of a directory or archive."""
    if len(files) > MAX_BUNDLE_FILES:
        raise PolicyLoadError(f"{origin}: more than {MAX_BUNDLE_FILES} files")
    if sum(map(len, files.values())) > MAX_BUNDLE_BYTES:
        raise PolicyLoadError(f"{origin}: more than {MAX_BUNDLE_BYTES} bytes")
    manifest = _parse_manifest(files.get(MANIFEST))
    roots = tuple(root.strip("/") for root in manifest.get("roots", [""]))
    modules: dict[str, str] = {}
    tests: dict[str, str] = {}
    data: dict[str, Any] = {}
    for path in sorted(files):
        name = PurePosixPath(path).name
        if name.endswith(TEST_SUFFIX):
            tests[path] = _rego_text(path, files[path])
        elif name.endswith(".rego"):
            modules[path] = _rego_text(path, files[path])
        elif name in ("data.json", "data.yaml", "data.yml"):
            _merge(data, _placed_data(path, files[path]), path)
    if not modules:
        raise PolicyLoadError(
            f"{origin}: no Rego policy in it", cause=FailClosedCause.BUNDLE_MISSING
        )
    _check_data_roots(data, roots)
    data_json = _data_text(data, origin)
    parts: list[str] = []
    for path in sorted(modules):
        parts += [path, modules[path]]
    digest = digest_of([*parts, data_json, json.dumps(manifest, sort_keys=True)])
    return Bundle(
        modules=MappingProxyType(modules),
        data_json=data_json,
        revision=manifest.get("revision") or digest[:16],
        digest=digest,
        roots=roots,
        manifest=MappingProxyType(manifest),
        tests=MappingProxyType(tests),
        origin=origin,
        verified=verified,
    )


def data_bundle(path: Path) -> Bundle:
    """Return a bundle of one JSON or YAML file alone, to be laid over another.

    Raises:
        PolicyLoadError: It can't be read, or is no object.
    """
    try:
        value = _parse_data(path.name, path.read_bytes())
    except OSError as error:
        raise PolicyLoadError(f"{path}: {error.strerror or error}") from None
    if not isinstance(value, dict):
        raise PolicyLoadError(f"{path}: the policy data is not an object")
    text = _data_text(value, str(path))
    digest = digest_of([text])
    return Bundle(MappingProxyType({}), text, revision=digest[:16], digest=digest, origin=str(path))


def _rego_text(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PolicyLoadError(f"{path}: not UTF-8 at byte {error.start}") from None


def _placed_data(path: str, content: bytes) -> dict[str, Any]:
    """Return a data file's content in its place: ``a/b/data.json`` is ``{"a": {"b": ...}}``."""
    value = _parse_data(path, content)
    for part in reversed(PurePosixPath(path).parent.parts):
        value = {part: value}
    if not isinstance(value, dict):
        raise PolicyLoadError(f"{path}: the top of the data document is not an object")
    return value


def _data_text(data: dict[str, Any], origin: str) -> str:
    try:
        return json.dumps(
            data,
            ensure_ascii=True,
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )
    except (RecursionError, ValueError):
        raise PolicyLoadError(f"{origin}: the data can't be written as JSON") from None


def digest_of(parts: Iterable[str]) -> str:
    """Return a digest of texts, as hexadecimal digits."""
    state = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        # each part with its length, so that no two different lists join to the same bytes
        state.update(len(encoded).to_bytes(8, "big"))
        state.update(encoded)
    return state.hexdigest()
