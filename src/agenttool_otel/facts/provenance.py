"""Where a value came from: the user's own words, a tool that only the application writes, or text that anybody wrote.

An agent that reads a page can be told by the page whom to pay. The ledger of a session remembers which tokens the user
wrote and which came out of which tool, as keyed digests and never as content, so that a policy can ask before a value
that only the outside world mentioned becomes a recipient, an address, a path or a command.

A value that a trusted source has, too, stays trusted where an attacker repeats it. A tool that only gives back what it
was given vouches for nothing, so trust does not grow by repetition. Copies are recognised, also in the encodings that
models undo and as pieces put together, but not meaning. The memory is bounded; what was forgotten or could not be read
makes later answers about unknown values uncertain.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from agenttool_otel.facts.outputs import OutputTrust, decoded, id_kinds
from agenttool_otel.facts.tokens import Strong, Tokens, normalize_text, texts_of, tokens_of
from agenttool_otel.facts.types import ProvenanceFact
from agenttool_otel.names import ArgumentRole, Trust

_USER: Final = "user"
_UNKNOWN: Final = "unknown"
_OTHER_TOOLS: Final = "tool:other"
_MAX_SOURCES: Final = 256
_MAX_LABELED: Final = 160
_MAX_JOINED: Final = 48
_MAX_WHOLE: Final = 1024
_SHORT_ID: Final = 6
_SHOWN: Final = 4
_LEVELS: Final = tuple(Trust)
_FREE: Final = _LEVELS.index(Trust.FREE_TEXT)
_NOWHERE: Final = _LEVELS.index(Trust.UNKNOWN)
_NOT_ALNUM: Final = re.compile(r"[^0-9a-z]+")
_OPEN: Final = OutputTrust(open_world=True)
_CLOSED: Final = OutputTrust(open_world=False)


class ProvenanceLedger:
    """The provenance of one session; safe to use from several threads.

    The user's tokens and the tools' are bounded apart, so that no amount of tool output makes the ledger forget what
    the user said."""

    def __init__(self, *, max_tokens: int = 65_536, max_user_tokens: int = 8_192) -> None:
        if max_tokens < 1 or max_user_tokens < 1:
            raise ValueError("a ledger remembers at least one token")
        self._max_tokens = max_tokens
        self._max_user_tokens = max_user_tokens
        # the only form in which a token is kept: nothing can be searched for in a ledger without its salt
        self._salted = secrets.token_hex(16).__add__
        self._lock = threading.Lock()
        self._user: dict[Any, int] = {}
        self._tools: dict[Any, int] = {}
        self._given: dict[Any, int] = {}
        self._sources: list[tuple[str, Trust, str]] = []
        self._bits: dict[tuple[str, Trust, str], int] = {}
        self._masks = [0] * len(_LEVELS)  # the sources of each level
        self._masks[0] = 1
        self._plain: dict[tuple[int, ArgumentRole], ProvenanceFact] = {}  # facts of values that were seen as a whole
        self._bits_of_tools: dict[str, int] = {}
        self._labelled = 0  # the sources that have a label
        self._private = 0
        self._complete = True

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return len(self._user) + len(self._tools)

    def __repr__(self) -> str:
        return f"<ProvenanceLedger of {len(self)} tokens from {len(self._sources)} sources>"

    @property
    def speaks(self) -> bool:
        """Whether there is anything to say of a value: the user's words are known, or text that anybody wrote."""
        return bool(self._user or self._masks[_FREE] or not self._complete)

    def record_user(self, text: Any) -> None:
        """Remember the tokens of what the user said."""
        texts, complete = texts_of(text, keys=True)
        tokens = tokens_of("\n".join(texts))
        with self._lock:
            kept = self._remember(self._user, tokens.all(), 1, self._max_user_tokens)
            self._complete &= kept and complete and tokens.complete

    def record_output(
        self, tool_id: str, value: Any, trust: OutputTrust, *, given: Any = None, label: str = ""
    ) -> None:
        """Remember the tokens of a tool's output.

        Args:
            tool_id: the tool.
            value: what it gave.
            trust: how far which field of it is trusted.
            given: its arguments: what of them comes back was not vouched for by the tool.
            label: what was read, for people; a path or a name.
        """
        reading = trust.read(value)
        taken = [(level, *_of_output(level, texts)) for level, texts in reading.texts.items()]
        with self._lock:
            if given is not None:
                self._note_given(given)
            complete = reading.complete
            for level, tokens, read in taken:
                if level is not Trust.FREE_TEXT and self._given:
                    tokens = {token for token in tokens if hash(self._salted(token)) not in self._given}
                bit = self._bit((tool_id, level, label), trust.private)
                complete &= self._remember(self._tools, tokens, bit, self._max_tokens) and read
            for kind, text, level in reading.ids:
                word = normalize_text(text)
                if hash(self._salted(word)) not in self._given:
                    bit = self._bit((tool_id, level, label), trust.private)
                    complete &= self._remember(self._tools, [f"{kind}\0{word}"], bit, self._max_tokens)
            self._complete &= complete

    def record_tool_output(self, tool_id: str, value: Any, open_world: bool) -> None:
        """Remember the tokens of an output that is trusted, or not, as a whole."""
        self.record_output(tool_id, value, _OPEN if open_world else _CLOSED)

    def lookup(
        self, value: Any, *, name: str = "", family: str = "", role: ArgumentRole = ArgumentRole.TARGET
    ) -> ProvenanceFact:
        """Return where a value was seen before; never raises.

        A value with addresses, URLs, paths, numbers or ids in it is judged by them, each for itself: it is untrusted
        when one of them is. Any other value is judged as a whole, or by all its words together. A short id counts
        among the ids of its kind alone, as its argument's name and the tool's family tell it."""
        try:
            kinds = id_kinds(name, family)
            if not kinds and role is not ArgumentRole.CONTENT and isinstance(value, str) and len(value) <= _MAX_WHOLE:
                with self._lock:
                    mask = self._mask(" ".join(normalize_text(value).split()))
                    if mask:
                        return self._seen_whole(mask, role)
            texts, readable = texts_of(value, keys=False)
            judged = _Judged(unknown=not readable)
            with self._lock:
                for text in texts:
                    self._judge(text, kinds, role, judged)
                return self._fact(judged, role, readable)
        except Exception:  # a fact that fails must look dangerous, not stop the decision
            return dict(UNREADABLE)  # type: ignore[return-value]

    def _remember(self, memory: dict[Any, int], tokens: Iterable[str], bit: int, limit: int) -> bool:
        """Add tokens to a memory; return whether nothing had to be forgotten for it."""
        get = memory.get
        for key in map(hash, map(self._salted, tokens)):
            memory[key] = get(key, 0) | bit
        excess = len(memory) - limit
        if excess > 0:
            for key in list(islice(memory, excess)):
                del memory[key]
        return excess <= 0

    def _note_given(self, given: Any) -> None:
        """Remember the arguments of a call for which nobody has vouched: a tool that repeats them does not, either."""
        texts, _ = texts_of(given, keys=False)
        for text in texts:
            tokens = tokens_of(text)
            fresh = [*tokens.lines, *tokens.strong, *filter(None, [tokens.whole])]
            fresh = [token for token in fresh if self._level(self._mask(token)) >= _FREE]
            self._remember(self._given, fresh, 1, self._max_user_tokens)

    def _bit(self, key: tuple[str, Trust, str], private: bool) -> int:
        if key not in self._bits:
            known = len(self._sources)
            if known >= _MAX_LABELED:
                key = (key[0] if known < _MAX_SOURCES else _OTHER_TOOLS, key[1], "")
            if key not in self._bits:
                self._sources.append(key)
                # Bit 0 is the user's.
                self._bits[key] = 1 << len(self._sources)
                self._masks[_LEVELS.index(key[1])] |= self._bits[key]
                name = key[0] if key[0] == _OTHER_TOOLS else f"tool:{key[0]}"
                self._bits_of_tools[name] = self._bits_of_tools.get(name, 0) | self._bits[key]
                if key[2]:
                    self._labelled |= self._bits[key]
                if private:
                    self._private |= self._bits[key]
        return self._bits[key]

    def _mask(self, token: str) -> int:
        key = hash(self._salted(token))
        return self._user.get(key, 0) | self._tools.get(key, 0)

    def _seen_whole(self, mask: int, role: ArgumentRole) -> ProvenanceFact:
        fact = self._plain.get((mask, role))
        if fact is None:
            if len(self._plain) > _MAX_SOURCES:
                self._plain.clear()
            judged = _Judged(unknown=False, masks=[mask], private=0 if mask & 1 else mask & self._private)
            fact = self._plain[mask, role] = self._fact(judged, role, True)
        return fact

    def _fact(self, judged: _Judged, role: ArgumentRole, readable: bool) -> ProvenanceFact:
        union = 0
        for mask in judged.masks:
            union |= mask
        levels = {self._level(mask) for mask in judged.masks}
        untrusted = judged.joined or _FREE in levels
        level = _FREE if untrusted else _NOWHERE if judged.unknown else max(levels, default=_NOWHERE)
        sources = ([_USER] if union & 1 else []) + self._tools_of(union)
        if judged.unknown or not sources:
            sources.append(_UNKNOWN)
        return {
            "sources": sources,
            "untrusted": untrusted,
            "certain": readable and (self._complete or not judged.unknown),
            "trust": _LEVELS[level].value,
            "role": role.value,
            "seen_in": self._labels_of(union),
            "link": judged.link,
            "extended": judged.extended,
            "made_up_id": judged.made_up_id and level == _NOWHERE,
            "private": self._tools_of(judged.private),
        }

    def _tools_of(self, mask: int) -> list[str]:
        """Return the names of the tools of a mask."""
        return [name for name, bits in self._bits_of_tools.items() if mask & bits] if mask else []

    def _labels_of(self, mask: int) -> list[str]:
        """Return the first labels of a mask."""
        labels: list[str] = []
        mask &= self._labelled
        while mask and len(labels) < _SHOWN:
            labels.append(self._sources[(mask & -mask).bit_length() - 2][2])
            mask &= mask - 1
        return labels

    def _level(self, mask: int) -> int:
        if not mask:
            return _NOWHERE
        masks = self._masks
        return 0 if mask & 1 else next(level for level in range(1, _NOWHERE) if mask & masks[level])

    def _judge(self, text: str, kinds: tuple[str, ...], role: ArgumentRole, judged: _Judged) -> None:
        if not text.strip():
            return
        whole = " ".join(normalize_text(text).split()) if len(text) <= _MAX_WHOLE else ""
        mask = self._mask(whole) if whole else 0
        tokens = tokens_of(text)
        if kinds and not tokens.strong:
            # another field that happens to hold the same number says nothing about an id
            typed = next(filter(None, (self._mask(f"{kind}\0{whole}") for kind in kinds)), 0)
            masks = [typed | mask & (1 | self._masks[_FREE])]
            judged.made_up_id |= whole.isdecimal() and len(whole) <= _SHORT_ID
        else:
            masks = [mask] if mask else self._masks_of(tokens)
        for strong in tokens.strong.values():
            self._note_strong(strong, judged)
        if 0 in masks:
            hidden = [mask for form in decoded(text) for mask in self._masks_of(tokens_of(form))]
            masks += [mask for mask in hidden if self._level(mask) == _FREE]
            # what has a form of its own, such as an address, is asked about where it is unknown; a word would run
            if not tokens.strong and role is not ArgumentRole.CONTENT:
                judged.joined |= self._is_joined(_NOT_ALNUM.sub("", whole))
        judged.unknown |= 0 in masks or not tokens.complete
        judged.masks += masks

    def _masks_of(self, tokens: Tokens) -> list[int]:
        whole = self._mask(tokens.whole) if tokens.whole is not None else 0
        if whole or not tokens.strong:
            return [whole or self._common_mask(tokens.words)]
        return [self._strong_mask(strong) for strong in tokens.strong.values()]

    def _note_strong(self, strong: Strong, judged: _Judged) -> None:
        """Note what matters where a value is carried out: links that only free text has, and confidential data."""
        mask = self._mask(strong.token)
        if not mask & 1:
            judged.private |= mask & self._private
        if strong.link and self._level(self._strong_mask(strong)) == _FREE:
            judged.link = True
            seen = mask or ("?" not in strong.tail and self._mask(strong.parts[0]) if strong.parts else mask)
            judged.extended |= bool(strong.tail) and not seen

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

    def _is_joined(self, text: str) -> bool:
        """Tell whether a text can be put together of pieces, one of which only untrusted output has."""
        if len(text) > _MAX_JOINED:
            return False
        reached = {0: False}
        for end in range(1, len(text) + 1):
            for start in range(end):
                if start in reached and (start, end) != (0, len(text)) and (mask := self._mask(text[start:end])):
                    reached[end] = reached.get(end, False) or reached[start] or self._level(mask) == _FREE
        return reached.get(len(text), False)


@dataclass(slots=True)
class _Judged:
    """What was found about the parts of one value."""

    unknown: bool
    masks: list[int] = field(default_factory=list)
    joined: bool = False
    link: bool = False
    extended: bool = False
    made_up_id: bool = False
    private: int = 0


UNREADABLE: Final[ProvenanceFact] = {
    "sources": [_UNKNOWN],
    "untrusted": True,
    "certain": False,
    "trust": Trust.UNKNOWN.value,
    "role": ArgumentRole.TARGET.value,
    "seen_in": [],
    "link": True,
    "extended": True,
    "made_up_id": False,
    "private": [],
}
"""The fact about a value that could not be judged."""


def _of_output(level: Trust, texts: list[str]) -> tuple[set[str], bool]:
    """Return the tokens of an output's texts, and whether all was read."""
    tokens = tokens_of("\n".join(texts))
    found = set(tokens.all())
    for text in texts:
        if "\n" in text and len(text) <= _MAX_WHOLE:
            found.add(" ".join(normalize_text(text).split()))
        if level is Trust.FREE_TEXT:
            for form in decoded(text):
                found.update(tokens_of(form).all())
    return found, tokens.complete
