"""Credentials that stand apart from their name, and the values of a Kubernetes Secret.

``- name: DB_PASSWORD`` with ``value: ...`` on the next line, ``<property
name="password">...</property>``. The places are those of ``known_places`` with a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.detectors.statements import fits, matches
from agenttool_otel.redaction.keys import classify, fits_class, is_service, kind_of_key
from agenttool_otel.redaction.patterns import find_all
from agenttool_otel.redaction.plausibility import has_digit, is_code, is_template
from agenttool_otel.redaction.types import Span

_MANIFEST: Final = r"(?m)^(?:data|stringData):[ \t]*\r?\n((?:[ \t]+[^\r\n]*(?:\r?\n|\z))+)"
_KIND_SECRET: Final = re.compile(rb"(?m)^kind:[ \t]*[\"']?Secret[\"']?[ \t]*(?:#.*)?\r?$")
_DOCUMENT_START: Final = re.compile(rb"(?m)^(?=---)")
_MANIFEST_VALUE: Final = re.compile(rb"(?m)^[ \t]+[\w.\-]+:[ \t]+[\"']?([^\s\"'|>][^\r\n\"']*)")


def find_in_pairs(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values that stand apart from their name, and of those of a Kubernetes Secret."""
    for statement, match in matches(data, lowered, named=True):
        start, end = match.span(2)
        if start < 0:
            # group 3 is a value without quotes: name=password value=get_password()
            start, end = match.span(3)
            if is_code(data[start:end]) and not has_digit(data[start:end]):
                continue
        name = match.group(1).decode()
        value = data[start:end]
        found = classify(name)
        if fits(statement, value) and fits_class(found, value, service=is_service(name)):
            yield Span(start, end, kind_of_key(found), "pair:" + found.value)
    if b"kind: secret" in lowered:
        yield from _manifests(data)


def _manifests(data: bytes) -> Iterable[Span]:
    """All values of each Kubernetes Secret in YAML, where documents begin with ``---``."""
    first = 0
    for document in _DOCUMENT_START.split(data):
        if _KIND_SECRET.search(document) is not None:
            yield from _values_of_manifest(document, first)
        first += len(document)


def _values_of_manifest(document: bytes, first: int) -> Iterable[Span]:
    """The values under ``data:`` and ``stringData:`` of a document that begins at a place."""
    for block in find_all(_MANIFEST, document):
        start = first + block.start(1)
        for line in _MANIFEST_VALUE.finditer(block.group(1)):
            if is_template(line.group(1)):
                continue
            begin, end = line.span(1)
            yield Span(start + begin, start + end, "credential", "kubernetes:secret")


DETECTOR: Final = BuiltIn(find=find_in_pairs, between_words=True)
