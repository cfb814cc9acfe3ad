"""Where a value came from: the user's own words, or the output of a tool that reads the open world.

An agent that reads a page can be told by the page whom to pay. The ledger of a session remembers which tokens the user
wrote and which came out of which tool, as keyed digests and never as content, so that a policy can ask before a value
that only the outside world mentioned becomes a recipient, an address, a path or a command.

It recognises copies, not meaning: a value that was translated, encoded or put together from pieces is ``unknown``. The
memory is bounded; what was forgotten or could not be read makes later answers about unknown values uncertain.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from agenttool_otel.facts.tokens import Strong, texts_of, tokens_of
from agenttool_otel.facts.types import ProvenanceFact

_KEY: Final = secrets.token_bytes(32)
"""Of this process: digests can't be compared with those of another, nor searched for known words without it."""

_DIGEST_BYTES: Final = 12
_USER: Final = "user"
_UNKNOWN: Final = "unknown"
_MAX_SOURCES: Final = 256
_OTHER_TOOLS: Final = "tool:other"


def _digest(token: str) -> bytes:
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES, key=_KEY).digest()


class ProvenanceLedger:
    """The provenance of one session; safe to use from several threads.

    The user's tokens and the tools' are bounded apart, so that no amount of tool output makes the ledger forget what
    the user said."""

    def __init__(self, *, max_tokens: int = 32_768, max_user_tokens: int = 8_192) -> None:
        if max_tokens < 1 or max_user_tokens < 1:
            raise ValueError("a ledger remembers at least one token")
        self._max_tokens = max_tokens
        self._max_user_tokens = max_user_tokens
        self._lock = threading.Lock()
        self._user: OrderedDict[bytes, int] = OrderedDict()
        self._tools: OrderedDict[bytes, int] = OrderedDict()
        self._sources: list[str] = []
        self._bits: dict[tuple[str, bool], int] = {}
        self._open_mask = 0
        self._complete = True

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return len(self._user) + len(self._tools)

    def __repr__(self) -> str:
        return f"<ProvenanceLedger of {len(self)} tokens from {len(self._sources)} tools>"

    def record_user(self, text: Any) -> None:
        """Remember the tokens of what the user said."""
        tokens, complete = _tokens(text)
        with self._lock:
            self._complete &= _remember(self._user, map(_digest, tokens), 1, self._max_user_tokens) and complete

    def record_tool_output(self, tool_id: str, value: Any, open_world: bool) -> None:
        """Remember the tokens of a tool's output."""
        tokens, complete = _tokens(value)
        digests = [_digest(token) for token in tokens]
        with self._lock:
            bit = self._bit(tool_id, open_world)
            self._complete &= _remember(self._tools, digests, bit, self._max_tokens) and complete

    def lookup(self, value: Any) -> ProvenanceFact:
        """Return where a value was seen before; never raises.

        A value with addresses, URLs, paths, numbers or ids in it is judged by them, each for itself: it is untrusted
        when one of them is. Any other value is judged as a whole, or by all its words together."""
        try:
            texts, readable = texts_of(value, keys=False)
            with self._lock:
                return self._judge(texts, readable)
        except Exception:  # a fact that fails must look dangerous, not stop the decision
            return {"sources": [_UNKNOWN], "untrusted": True, "certain": False}

    def _bit(self, tool_id: str, open_world: bool) -> int:
        key = (tool_id, open_world)
        if key not in self._bits:
            if len(self._sources) >= _MAX_SOURCES:
                key = (_OTHER_TOOLS, open_world)
            if key not in self._bits:
                self._sources.append(key[0] if key[0] == _OTHER_TOOLS else f"tool:{key[0]}")
                # Bit 0 is the user's.
                self._bits[key] = 1 << len(self._sources)
                if open_world:
                    self._open_mask |= self._bits[key]
        return self._bits[key]

    def _mask(self, token: str) -> int:
        digest = _digest(token)
        mask = self._user.get(digest, 0)
        found = self._tools.get(digest)
        if found is not None:
            self._tools.move_to_end(digest)
            mask |= found
        return mask

    def _judge(self, texts: list[str], readable: bool) -> ProvenanceFact:
        union = 0
        untrusted = False
        unknown = not readable
        for text in texts:
            if not text.strip():
                continue
            tokens = tokens_of(text)
            whole = self._mask(tokens.whole) if tokens.whole is not None else 0
            if whole:
                masks = [whole]
            elif tokens.strong:
                masks = [self._strong_mask(strong) for strong in tokens.strong.values()]
            else:
                masks = [self._common_mask(tokens.words)]
            unknown = unknown or not tokens.complete or 0 in masks
            untrusted = untrusted or any(mask and not mask & ~self._open_mask for mask in masks)
            for mask in masks:
                union |= mask
        sources = [_USER] if union & 1 else []
        for index, name in enumerate(self._sources):
            if union >> (index + 1) & 1 and name not in sources:
                sources.append(name)
        if unknown or not sources:
            sources.append(_UNKNOWN)
        return {"sources": sources, "untrusted": untrusted, "certain": readable and (self._complete or not unknown)}

    def _strong_mask(self, strong: Strong) -> int:
        mask = self._mask(strong.token)
        for part in strong.parts:
            if mask:
                break
            mask = self._mask(part)
        return mask

    def _common_mask(self, words: set[str]) -> int:
        """Return the sources that mentioned every word."""
        common = -1
        for word in words:
            common &= self._mask(word)
            if not common:
                return 0
        return max(common, 0)


def _tokens(value: Any) -> tuple[set[str], bool]:
    texts, complete = texts_of(value, keys=True)
    found: set[str] = set()
    for text in texts:
        tokens = tokens_of(text)
        found.update(tokens.all())
        complete = complete and tokens.complete
    return found, complete


def _remember(memory: OrderedDict[bytes, int], digests: Iterable[bytes], bit: int, limit: int) -> bool:
    """Add tokens to a memory; return whether nothing had to be forgotten for it."""
    for digest in digests:
        memory[digest] = memory.get(digest, 0) | bit
        memory.move_to_end(digest)
    kept = len(memory) <= limit
    while len(memory) > limit:
        memory.popitem(last=False)
    return kept
