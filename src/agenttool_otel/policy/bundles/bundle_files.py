"""Reading a bundle's files from a directory or a ``.tar.gz``, with every limit applied
while reading.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import (
    MANIFEST,
    MAX_BUNDLE_BYTES,
    MAX_BUNDLE_FILES,
    SIGNATURES,
    Bundle,
)

_DATA_NAMES = ("data.json", "data.yaml", "data.yml")


def _wanted(name: str, *, top: bool) -> bool:
    if top and name in (MANIFEST, SIGNATURES):
        return True
    return name.endswith(".rego") or name in _DATA_NAMES


def _bundle_paths(root: Path) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for folder, names, files in os.walk(root):
        # hidden directories are version control, editors, and the other half of a Kubernetes mount
        names[:] = sorted(name for name in names if not name.startswith("."))
        here = Path(folder)
        is_top = here == root
        for name in sorted(files):
            if not _wanted(name, top=is_top):
                continue
            path = here / name
            relative = path.relative_to(root)
            found.append((relative.as_posix(), path))
            if len(found) > MAX_BUNDLE_FILES:
                raise PolicyLoadError(f"{root.name}: more than {MAX_BUNDLE_FILES} files")
    return found


def read_directory(root: Path) -> dict[str, bytes]:
    """Read the bundle files below a directory."""
    if not root.is_dir():
        raise PolicyLoadError(f"policy directory {root} does not exist")
    files: dict[str, bytes] = {}
    total = 0
    try:
        for relative, path in _bundle_paths(root):
            if not path.is_file():
                raise PolicyLoadError(f"{relative}: not a regular file")
            total += path.stat().st_size
            if total > MAX_BUNDLE_BYTES:
                raise PolicyLoadError(f"{root.name}: more than {MAX_BUNDLE_BYTES} bytes")
            files[relative] = path.read_bytes()
    except OSError as error:
        raise PolicyLoadError(f"policy directory {root}: {error.strerror or error}") from None
    return files


def directory_stamp(path: Path) -> tuple[object, ...]:
    """Return what changes whenever a bundle file or directory changes: names, sizes, times
    and inodes.
    """
    try:
        files = _bundle_paths(path) if path.is_dir() else [("", path)]
        stamps: list[object] = []
        for name, file in files:
            stat = file.stat()
            stamps.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ino))
        return tuple(stamps)
    except OSError as error:
        raise PolicyLoadError(f"policy bundle {path}: {error.strerror or error}") from None


def _archive_path(name: str, origin: str) -> str:
    path = PurePosixPath(name.lstrip("/"))
    if ".." in path.parts or "\\" in name or "\0" in name:
        raise PolicyLoadError(f"{origin}: a file name leaves the archive")
    return path.as_posix()


def read_archive(content: bytes, *, origin: str) -> dict[str, bytes]:
    """Unpack a gzipped tar archive in memory."""
    import gzip
    import tarfile

    files: dict[str, bytes] = {}
    total = 0
    members = 0
    try:
        # unpacked whole and first: gzip's length and checksum distinguish a half written archive
        # from a small one
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            unpacked = packed.read(MAX_BUNDLE_BYTES + 1)
        if len(unpacked) > MAX_BUNDLE_BYTES:
            raise _too_large(origin)
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            for member in archive:
                members += 1
                total += member.size
                if members > MAX_BUNDLE_FILES or total > MAX_BUNDLE_BYTES:
                    raise _too_large(origin)
                if member.isdir():
                    continue
                path = _archive_path(member.name, origin)
                if not member.isfile():
                    raise PolicyLoadError(f"{origin}: {path} is not a regular file")
                if path in files:
                    raise PolicyLoadError(f"{origin}: {path} is in it twice")
                stream = archive.extractfile(member)
                files[path] = b"" if stream is None else stream.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        kind = type(error).__name__
        raise PolicyLoadError(f"{origin}: not a complete .tar.gz bundle ({kind})") from None
    if not files:
        raise PolicyLoadError(f"{origin}: the archive is empty")
    return files


def _too_large(origin: str) -> PolicyLoadError:
    return PolicyLoadError(f"{origin}: unpacks to more than a bundle may hold")


def bundle_files(bundle: Bundle, *, tests: bool = False) -> dict[str, bytes]:
    """Return the files of a bundle, as a directory or archive of it would hold them."""
    manifest = {**bundle.manifest, "revision": bundle.revision}
    files = {MANIFEST: json.dumps(manifest, sort_keys=True).encode("utf-8")}
    texts = dict(bundle.modules)
    if tests:
        texts.update(bundle.tests)
    for path, text in texts.items():
        files[path] = text.encode("utf-8")
    if bundle.data_json != "{}":
        files["data.json"] = bundle.data_json.encode("utf-8")
    return files


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """Pack files into a ``.tar.gz``; the same files give the same bytes."""
    import gzip
    import tarfile

    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in sorted(files):
            member = tarfile.TarInfo(path)
            member.size = len(files[path])
            archive.addfile(member, io.BytesIO(files[path]))
    return buffer.getvalue()
