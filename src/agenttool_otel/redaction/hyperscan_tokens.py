"""Token formats with Hyperscan (extra ``hyperscan``): one pass over the text says which rules can match at all.

Where a rule matches is then asked of re2, because Hyperscan reports ends of matches and no groups.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from agenttool_otel.redaction.tokens import TokenDetector, TokenRule, load_rules

__all__ = ["HyperscanTokenDetector"]


@lru_cache(maxsize=1)
def _database() -> Any:
    try:
        import hyperscan
    except ImportError as error:
        raise ValueError("engine 'hyperscan' needs the extra agenttool-otel[hyperscan]") from error
    rules = load_rules()
    database = hyperscan.Database()
    # a superset is enough here, and prefiltering allows constructs that Hyperscan would refuse
    flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_PREFILTER
    database.compile(
        expressions=[rule.pattern.encode() for rule in rules],
        ids=list(range(len(rules))),
        elements=len(rules),
        flags=[flags] * len(rules),
    )
    return database


class HyperscanTokenDetector(TokenDetector):
    """The same rules and spans as ``TokenDetector``, found in one pass."""

    def __init__(self) -> None:
        """Compile the database.

        Raises:
            ValueError: Hyperscan isn't installed.
        """
        super().__init__("re2")
        self._database = _database()
        self._local = threading.local()

    def active(self, lowered: bytes) -> list[tuple[TokenRule, list[int] | None]]:
        """Rules by keyword; ``find`` doesn't need it."""
        return super().active(lowered)

    def find(self, data: bytes, lowered: bytes) -> Any:
        """Spans of all known formats."""
        hit: set[int] = set()

        def seen(index: int, *_: object) -> None:
            hit.add(index)

        self._database.scan(data, match_event_handler=seen, scratch=self._scratch())
        for index in sorted(hit):
            yield from self.apply(self._rules[index], data)

    def _scratch(self) -> Any:
        # a scratch space may serve one scan at a time
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            import hyperscan

            scratch = self._local.scratch = hyperscan.Scratch(self._database)
        return scratch
