"""Values as JSON data, as a copy, as canonical bytes, and what differs between two of them."""

from agenttool_otel.records.canonical import canonical_bytes, digest
from agenttool_otel.records.conversion import JsonLike, escape_surrogates, to_json_value
from agenttool_otel.records.pointers import changed_pointers, escape_token
from agenttool_otel.records.snapshot import snapshot

__all__ = [
    "JsonLike",
    "canonical_bytes",
    "changed_pointers",
    "digest",
    "escape_surrogates",
    "escape_token",
    "snapshot",
    "to_json_value",
]
