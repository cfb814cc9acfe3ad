"""Values as JSON data, as a copy, as canonical bytes, and what differs between two of them."""

from agenttool_otel.records.canonical import canonical_bytes, digest
from agenttool_otel.records.conversion import JsonLike, escape_surrogates, to_json_value, to_policy_value
from agenttool_otel.records.decided import decided_form
from agenttool_otel.records.pointers import changed_pointers, escape_token, unescape_token
from agenttool_otel.records.snapshot import NotCopyable, snapshot

__all__ = [
    "JsonLike",
    "NotCopyable",
    "canonical_bytes",
    "changed_pointers",
    "decided_form",
    "digest",
    "escape_surrogates",
    "escape_token",
    "snapshot",
    "to_json_value",
    "to_policy_value",
    "unescape_token",
]
