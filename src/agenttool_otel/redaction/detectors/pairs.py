"""Credentials that stand apart from their name, and the values of a Kubernetes Secret.

``- name: DB_PASSWORD`` with ``value: ...`` on the next line, ``<property
name="password">...</property>``. The places are those of ``known_places`` with a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.detectors.known_places.statement import Statement
from agenttool_otel.redaction.detectors.statements import fits, matches
from agenttool_otel.redaction.keys import classify, fits_class, is_service, kind_of_key
from agenttool_otel.redaction.patterns import MatchLike, find_all
from agenttool_otel.redaction.plausibility import has_digit, is_code, is_template
from agenttool_otel.redaction.types import Span

_MANIFEST: Final = r"(?m)^(?:data|stringData):[ \t]*\r?\n((?:[ \t]+[^\r\n]*(?:\r?\n|\z))+)"
_KIND_SECRET: Final = re.compile(rb"(?m)^kind:[ \t]*[\"']?Secret[\"']?[ \t]*(?:#.*)?\r?$")
_DOCUMENT_START: Final = re.compile(rb"(?m)^(?=---)")
_MANIFEST_VALUE: Final = re.compile(rb"(?m)^[ \t]+[\w.\-]+:[ \t]+[\"']?([^\s\"'|>][^\r\n\"']*)")


def find_in_pairs(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values that stand apart from their name, and of those of a Kubernetes Secret."""
    for statement, match in matches(data, lowered, named=True):
        span = _value_of(statement, match, data)
        if span is not None:
            yield span
    # kind: Secret
    if b"kind: secret" in lowered:
        yield from _manifests(data)


def _value_of(statement: Statement, match: MatchLike, data: bytes) -> Span | None:
    """The value beside a name, if it is a secret by that name."""
    start, end = match.span(2)
    is_quoted = start >= 0
    if not is_quoted:
        start, end = match.span(3)
    value = data[start:end]
    # name=password value=get_password()
    if not is_quoted and is_code(value) and not has_digit(value):
        return None
    if not fits(statement, value):
        return None
    name = match.group(1).decode()
    found = classify(name)
    if not fits_class(found, value, service=is_service(name)):
        return None
    kind = kind_of_key(found)
    return Span(start, end, kind, "pair:" + found.value)


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
            value = line.group(1)
            # password: {{ .Values.password | b64enc }} of a Helm chart
            if is_template(value):
                continue
            begin, end = line.span(1)
            yield Span(start + begin, start + end, "credential", "kubernetes:secret")


DETECTOR: Final = BuiltIn(find=find_in_pairs, between_words=True)
