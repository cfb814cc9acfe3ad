"""A sealed layer's changes of text files as a unified diff, redacted and bounded."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from typing import Final

from agenttool_otel.enforcement.rehearsal.manifest import Entry, Manifest
from agenttool_otel.enforcement.rehearsal.rehearsals import SealedLayer
from agenttool_otel.enforcement.rehearsal.types import Kind
from agenttool_otel.redaction import Redactor, default_redactor

DIFF_LIMIT_CHARS: Final = 20_000
_FILE_LIMIT_BYTES: Final = 200_000
_LINE_LIMIT_CHARS: Final = 500


def layer_diff(
    layer: SealedLayer,
    *,
    redactor: Redactor | None = None,
    limit_chars: int = DIFF_LIMIT_CHARS,
) -> str:
    """Return what a layer changes in text files, as ``diff -u`` writes it.

    Args:
        layer: the layer.
        redactor: takes secrets out of both sides before they are compared; the default one where
            ``None``.
        limit_chars: most characters; what is left out is counted in the last line.
    """
    kept = []
    size = 0
    left = 0
    for lines in _files(layer, redactor or default_redactor()):
        text = "\n".join(lines)
        if left or size + len(text) > limit_chars:
            left += 1
            continue
        kept.append(text)
        size += len(text) + 1
    if left:
        kept.append(f"({left} more files)")
    return "\n".join(kept)


def _files(layer: SealedLayer, redactor: Redactor) -> Iterator[list[str]]:
    manifest = layer.manifest
    for entry in sorted(manifest.entries, key=manifest.path):
        if not entry.operations or manifest.path(entry) in manifest.noise:
            continue
        lines = _file(layer, manifest, entry, redactor)
        if lines:
            yield lines


def _file(layer: SealedLayer, manifest: Manifest, entry: Entry, redactor: Redactor) -> list[str]:
    path = manifest.path(entry)
    old = new = ""
    if entry.before is not None and entry.before.kind is Kind.FILE:
        old_text = _text(path, redactor)
        if old_text is None:
            return [f"Binary or large file {path}"]
        old = old_text
    if entry.after is not None and entry.after.kind is Kind.FILE:
        new_text = _text(os.path.join(layer.upper(entry.root), entry.name), redactor)
        if new_text is None:
            return [f"Binary or large file {path}"]
        new = new_text
    before = path if entry.before is not None else os.devnull
    after = path if entry.after is not None else os.devnull
    changes = difflib.unified_diff(
        old.splitlines(), new.splitlines(), before, after, lineterm="", n=3
    )
    return [line[:_LINE_LIMIT_CHARS] for line in changes]


def _text(path: str, redactor: Redactor) -> str | None:
    """Return a file's redacted text, ``None`` if it is large or none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        content = file.read(_FILE_LIMIT_BYTES + 1)
    if len(content) > _FILE_LIMIT_BYTES or b"\0" in content:
        return None
    text = content.decode("utf-8", "replace")
    return str(redactor.redact_text(text).value)
