"""What a result refers to, where its payload is not shown.

"If a tool result is too large, private, expired, redacted [...], consumers should preserve the
invocation envelope, [...] resource/artifact refs" (standard, "Fail-safe guidance").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.records.base import JsonObject

_MAX_REFERENCES: Final = 100
_MAX_MEMBER_CHARS: Final = 2_048
_MEMBERS: Final = frozenset(
    {
        "access",
        "artifact_id",
        "digest",
        "expires_at",
        "id",
        "kind",
        "media_type",
        "name",
        "redaction_state",
        "relation",
        "size",
        "size_bytes",
        "uri",
        "version",
    }
)
"""What a reference is: "ids, URI or native ref, media type, digest when available, access
constraints, and source relation" (standard, "Resource and artifact refs"). A text, a description or
``_meta`` is payload.
"""


@dataclass(slots=True)
class References:
    """The references of a result, of which at most a hundred are kept."""

    resources: list[JsonObject] = field(default_factory=list)  # what a protocol can fetch
    artifacts: list[JsonObject] = field(default_factory=list)  # durable deliverables

    def add(self, value: Any) -> None:
        """Add what a result, or an item of a stream, refers to."""
        # only a result that is not shown needs it, and it is large
        from agenttool_otel.results.content.map_content import blocks_of, reference_kind

        for block in blocks_of(value):
            kept = self._list_of(reference_kind(block))
            if kept is None:
                continue
            if len(self.resources) + len(self.artifacts) >= _MAX_REFERENCES:
                return
            kept.append(_reference(block))

    def _list_of(self, kind: str | None) -> list[JsonObject] | None:
        if kind is None:
            return None
        return self.artifacts if kind == "artifact" else self.resources

    def cleaned(self, clean: Callable[[Any, str], Any] | None) -> References:
        """Return the references with their texts redacted.

        Args:
            clean: redacts a value that sits at a JSON pointer; ``None``: nothing is redacted.
        """
        if clean is None:
            return self
        return References(_clean(self.resources, clean), _clean(self.artifacts, clean))


def _reference(block: JsonObject) -> JsonObject:
    reference: JsonObject = {}
    for name, item in block.items():
        # a URI of 3,000 characters may hold the very payload that is too large
        if name in _MEMBERS and _is_short(item):
            reference[name] = item
    return reference


def _is_short(item: Any) -> bool:
    if isinstance(item, str):
        return len(item) <= _MAX_MEMBER_CHARS
    if isinstance(item, dict | list):
        return len(str(item)) <= _MAX_MEMBER_CHARS
    return True


def _clean(references: list[JsonObject], clean: Callable[[Any, str], Any]) -> list[JsonObject]:
    """Redact references; one of which redaction leaves no object is left out."""
    cleaned = [clean(reference, "") for reference in references]
    return [reference for reference in cleaned if isinstance(reference, dict)]
