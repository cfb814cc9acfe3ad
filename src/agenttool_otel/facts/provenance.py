"""Where a value came from: the user's own words, a tool that only the application writes, or text
of outsiders.

A page that an agent reads can hold instructions of whom to pay. The ledger of a session remembers
which tokens the user wrote and which came out of which tool, as keyed digests and never as content,
so that a policy can ask before a value that only the outside world mentioned becomes a recipient,
an address, a path or a command.

A value that a trusted source has, too, stays trusted where an attacker repeats it. A tool that only
gives back what it was given vouches for nothing, so trust does not grow by repetition. Copies are
recognised, also in the encodings that models undo and as pieces put together, but not meaning. The
memory is bounded; what was forgotten or could not be read makes later answers about unknown values
uncertain.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import islice
from operator import and_, or_
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.argument_names import is_paging
from agenttool_otel.facts.outputs import (
    OutputId,
    OutputTrust,
    Reading,
    decoded,
    id_kinds,
    stores_of,
)
from agenttool_otel.facts.sources import ArgumentSources, names_tool
from agenttool_otel.facts.tokens import (
    MAX_TEXT_CHARS,
    Strong,
    Tokens,
    exact_form,
    exact_tokens_of,
    normalize_text,
    texts_of,
    tokens_of,
)
from agenttool_otel.facts.types import ProvenanceFact
from agenttool_otel.names import ArgumentRole, Sourced, Trust
from agenttool_otel.values.forks import new_lock

_USER: Final = "user"
_UNKNOWN: Final = "unknown"
_OTHER_TOOLS: Final = "tool:other"
_MAX_SOURCES: Final = 256
_MAX_LABELED: Final = 160
_MAX_JOINED: Final = 48
_MAX_WHOLE: Final = 1024
_SHORT_ID: Final = 6
_SHOWN: Final = 4
_LEVELS: Final = tuple(map(str, Trust))
_FREE: Final = _LEVELS.index(Trust.FREE_TEXT)
_NOWHERE: Final = _LEVELS.index(Trust.UNKNOWN)
_NOT_ALNUM: Final = re.compile(r"[^0-9a-z]+")
_PLACE: Final = re.compile(
    r"[a-z0-9._+-]{1,64}@[a-z0-9.-]{1,255}|[a-z0-9._-]{1,64}(?:/[a-z0-9._-]{1,64}){1,8}"
)
"""An address or a path that is its own exact form, and none of whose parts is judged for itself."""
_Source = tuple[str, Trust, str]  # tool, its level, what was read
_USERS: Final[_Source] = ("", Trust.USER, "")
_GIVEN: Final[_Source] = ("", Trust.UNKNOWN, "")
_PUBLISHED_AT_ONCE: Final = 4_096
_MAX_INPUTS: Final = 500
_MAX_CONFIRMATION: Final = 256
_PRIVATE: Final = "\3"  # before the folded token of a confidential source
_LISTED: Final = "\4"  # before the exact form of what a stated source of arguments gave
_ANY_STORE: Final = ("", "")


class ProvenanceLedger:
    """The provenance of one session; safe to use from several threads.

    The user's tokens and the tools' are bounded apart, so that no amount of tool output makes the
    ledger forget what the user wrote. With a ``key`` its digests mean the same in every process that
    has it, and ``publish`` is called with what is new, in the form that ``take`` and
    ``mark_incomplete`` of another process's ledger need.
    """

    def __init__(
        self,
        *,
        max_tokens: int = 65_536,
        max_user_tokens: int = 8_192,
        key: bytes = b"",
        publish: Callable[..., None] | None = None,
    ) -> None:
        if max_tokens < 1 or max_user_tokens < 1:
            raise ValueError("a ledger remembers at least one token")
        self._max_tokens = max_tokens
        self._max_user_tokens = max_user_tokens
        self._digest = _digester(key)
        self._publish = publish
        self.behind = False  # whether another process may have recorded what this ledger lacks, yet
        self._lock = new_lock()
        # the sources of each token, as bits
        self._user: dict[Any, int] = {}
        self._tools: dict[Any, int] = {}
        self._given: dict[Any, int] = {}
        # namespaces and tools that wrote what no trusted source has
        self._fed: set[tuple[str, str]] = set()
        self._sources: list[_Source] = []
        self._bits: dict[_Source, int] = {}
        self._masks = [0] * len(_LEVELS)  # the sources of each level
        self._masks[0] = 1
        # facts of values seen whole, or nowhere
        self._plain: dict[tuple[int, ArgumentRole], ProvenanceFact] = {}
        self._bits_of_tools: dict[str, int] = {}
        self._labelled = 0  # the sources that have a label
        self._private = 0  # the confidential sources
        self._complete = True

    def copy(self) -> ProvenanceLedger:
        """Return another with the same entries, whose changes are not published."""
        other = ProvenanceLedger(
            max_tokens=self._max_tokens,
            max_user_tokens=self._max_user_tokens,
        )
        with self._lock:
            other._digest = self._digest
            other.behind = self.behind
            other._user = dict(self._user)
            other._tools = dict(self._tools)
            other._given = dict(self._given)
            other._fed = set(self._fed)
            other._sources = list(self._sources)
            other._bits = dict(self._bits)
            other._masks = list(self._masks)
            other._plain = dict(self._plain)
            other._bits_of_tools = dict(self._bits_of_tools)
            other._labelled = self._labelled
            other._private = self._private
            other._complete = self._complete
        return other

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return len(self._user) + len(self._tools)

    def __repr__(self) -> str:
        return f"<ProvenanceLedger of {len(self)} tokens from {len(self._sources)} sources>"

    @property
    def has_evidence(self) -> bool:
        """Whether a value can be compared with anything: words of the user or text of outsiders is
        recorded, or was and is missing.
        """
        if not self._complete or self.behind:
            return True
        return bool(self._user or self._masks[_FREE])

    def record_user(self, text: Any) -> None:
        """Remember the tokens of what the user wrote."""
        from agenttool_otel.facts.mentions import tokens_of_mentions

        texts, complete = texts_of(text, keys=True)
        whole = "\n".join(texts)
        tokens = {*_exact(whole), *tokens_of_mentions(whole)}
        with self._lock:
            self._keep(_USERS, False, self._digests(tokens))
            self._note_read(complete and len(whole) <= MAX_TEXT_CHARS)

    def take(self, tool_id: str, trust: str, private: bool, digests: list[int]) -> None:
        """Remember what the ledger of another process recorded."""
        with self._lock:
            self._remember((tool_id, Trust(trust), ""), private, digests)

    def mark_incomplete(self) -> None:
        """Mark the ledger as incomplete."""
        self._complete = False

    def record_output(
        self,
        tool_id: str,
        value: Any,
        trust: OutputTrust,
        *,
        given: Any = None,
        label: str = "",
        listed: bool = False,
    ) -> None:
        """Remember the tokens of a tool's output.

        Args:
            tool_id: the tool.
            value: what it gave.
            trust: how far which field of it is trusted.
            given: its arguments: what of them comes back was not vouched for by the tool.
            label: what was read, for people; a path or a name.
            listed: whether the ``sources`` of some tool's argument name this tool.
        """
        reading = trust.read(value, ids=listed)
        cap = self._level_of_inputs(given, trust)
        own, marks = _tokens_given(given)
        with self._lock:
            self._note_given(marks)
            if trust.confirms and cap:
                self._feed(trust)
            elif not trust.is_lookup and self._is_fed(trust):
                cap = cap or Trust.UNKNOWN
            if trust.is_lookup:
                cap = None  # the arguments only choose what is read
            output = _Output(tool_id, label, trust, cap, own, reading.ids)
            if listed:
                self._record_listed(reading, output)
            complete = reading.complete
            for level, texts in reading.texts.items():
                is_read = self._record_texts(level, texts, output)
                complete = complete and is_read
            self._note_read(complete)

    def _record_listed(self, reading: Reading, output: _Output) -> None:
        """Remember, apart from all else, what a tool gave that arguments may come from.

        It vouches for nothing that its own arguments had, nor where untrusted text steered it or
        was saved where it reads, unless it is stated that these only choose what is read.
        """
        trust = output.trust
        if not trust.is_lookup and (output.cap is Trust.FREE_TEXT or self._is_fed(trust)):
            return
        echoed = {token for token in output.own if self._level(self._mask(token)) >= _FREE}
        texts = [text for several in reading.texts.values() for text in several]
        whole = "\n".join(dict.fromkeys(texts))
        words = [word for word in _exact(whole) if word not in echoed]
        for found in reading.ids:
            typed, word = _typed_id(found.kind, found.text)
            if word not in echoed:
                words.append(typed)
        digests = [self._digest(_LISTED + word) for word in words if not self._is_given(word)]
        self._keep((output.tool_id, Trust.RECORD, output.label), False, digests)

    def _is_given(self, word: str) -> bool:
        return self._digest(word) in self._given

    def _record_texts(self, level: Trust, texts: list[str], output: _Output) -> bool:
        """Remember the tokens of an output's texts of one level; return whether all were read."""
        capped = level
        if output.cap is not None and level is Trust.TRUSTED:
            capped = output.cap
        tokens, is_read = _of_output(capped, texts, claims=bool(self._user))
        if capped is Trust.UNKNOWN:
            self._note_given(_marks_of(texts))
            return is_read
        if capped is Trust.FREE_TEXT:
            digests = self._digests(self._new(tokens, texts, output))
        else:
            digests = self._vouched(tokens, output.ids, level)
        private = output.trust.private
        if private:
            folded = (_PRIVATE + normalize_text(token) for token in tokens)
            digests += self._digests(folded)
        self._keep((output.tool_id, capped, output.label), private, digests)
        return is_read

    def _vouched(
        self,
        tokens: set[str],
        ids: list[OutputId],
        level: Trust,
    ) -> list[int]:
        """Return the tokens and ids of an output that it vouches for: those that were not given."""
        digests = [digest for digest in self._digests(tokens) if digest not in self._given]
        for found in ids:
            if found.trust is not level:
                continue
            typed, word = _typed_id(found.kind, found.text)
            if self._digest(word) not in self._given:
                digests.append(self._digest(typed))
        return digests

    def _level_of_inputs(self, given: Any, trust: OutputTrust) -> Trust | None:
        """Return how little the arguments of a call are trusted, where it is too little to trust
        what they become.
        """
        if not isinstance(given, dict) or (trust.is_lookup and not trust.confirms):
            return None
        worst = None
        stack: list[tuple[str, Any]] = list(given.items())
        for _ in range(_MAX_INPUTS):
            if not stack:
                return worst
            name, value = stack.pop()
            if isinstance(value, dict):
                stack += [(str(key), child) for key, child in value.items()]
                stack += [(name, str(key)) for key in value]
            elif isinstance(value, (list, tuple, set, frozenset)):
                stack += [(name, child) for child in value]
            elif value not in (None, "") and not isinstance(value, bool):
                level = self._level_of_input(name, value)
                if level is Trust.FREE_TEXT:
                    return level
                worst = level or worst
        return Trust.UNKNOWN

    def _level_of_input(self, name: str, value: Any) -> Trust | None:
        if is_paging(name, value):
            return None  # limit=20 decides nothing
        fact = self.lookup(value, name=name, role=ArgumentRole.CONTENT)
        if fact["untrusted"]:
            return Trust.FREE_TEXT
        if fact["trust"] == Trust.UNKNOWN:
            return Trust.UNKNOWN
        return None

    def _new(self, tokens: set[str], texts: list[str], output: _Output) -> set[str]:
        """Return the tokens of an output that its call was not given: what repeats them is no new
        source.

        What only a reader's argument has in common with its text may be another thing there, such
        as a number.
        """
        length = sum(map(len, texts))
        confirms = output.trust.confirms and length <= _MAX_CONFIRMATION
        new: set[str] = set()
        for token in tokens:
            is_given = token in output.own
            if is_given and (confirms or self._level(self._mask(token)) < _FREE):
                continue
            new.add(token)
        return new

    def _feed(self, trust: OutputTrust) -> None:
        """Remember that a tool wrote to its store what no trusted source has."""
        if (trust.family, trust.tool) not in self._fed and self._publish is not None:
            self._publish("fed", trust.family, trust.tool)
        self.take_fed(trust.family, trust.tool)

    def take_fed(self, family: str, tool: str) -> None:
        """Remember what the ledger of another process recorded of a store.

        Args:
            family: the namespace of the tool that wrote to it.
            tool: the tool's name.
        """
        if len(self._fed) < _MAX_SOURCES:
            self._fed.add((family, tool))
        else:
            self._fed.add(_ANY_STORE)

    def _is_fed(self, trust: OutputTrust) -> bool:
        if not self._fed:
            return False
        if _ANY_STORE in self._fed:
            return True
        read = set(stores_of(trust.family, trust.tool))
        for family, tool in self._fed:
            written = stores_of(family, tool)
            if family == trust.family and not read.isdisjoint(written):
                return True
        return False

    def lookup(
        self,
        value: Any,
        *,
        name: str = "",
        family: str = "",
        tool: str = "",
        role: ArgumentRole = ArgumentRole.TARGET,
    ) -> ProvenanceFact:
        """Return where a value was seen before; never raises.

        A value with addresses, URLs, paths, numbers or ids in it is judged by them, each for
        itself: it is untrusted when any of them is. Any other value is judged as a whole, or by all
        its words together. A short id counts among the ids of its kind alone.

        Args:
            value: the value.
            name: its argument's name, which names the kind of an id: ``file_id``.
            family: the tools within which an ``id`` means the same.
            tool: the tool's name, which names the kind where the argument's does not.
            role: what the value does in the call.
        """
        try:
            kinds = id_kinds(name, family)
            if not kinds and role is not ArgumentRole.CONTENT and _is_place(value):
                with self._lock:
                    mask = self._mask(value)
                    if mask:
                        return self._seen_whole(mask, role)
            texts, readable = texts_of(value, keys=False)
            judged = _Judged(unknown=not readable)
            argument = _Argument(name, tool)
            with self._lock:
                for text in texts:
                    self._judge(text, kinds, role, judged, argument)
                return self._fact(judged, role, readable)
        except Exception:  # a fact that fails must look dangerous, not stop the decision
            return dict(UNREADABLE)  # type: ignore[return-value]

    def is_from(
        self,
        value: Any,
        stated: ArgumentSources,
        *,
        name: str = "",
        family: str = "",
        tool: str = "",
    ) -> bool:
        """Return whether all of a value stands in the stated sources; never raises.

        Each address, URL, path, number or id of it may come from another of them.

        Args:
            value: the value.
            stated: where it may come from.
            name: its argument's name.
            family: the tools within which an ``id`` means the same.
            tool: the tool's name.
        """
        try:
            texts, readable = texts_of(value, keys=False)
            argument = _Argument(name, tool)
            kinds = id_kinds(name, family)
            with self._lock:
                tools = self._mask_of(stated.tools)
                return readable and _holds(
                    texts,
                    lambda text: self._is_listed(text, kinds, argument, stated.by_user, tools),
                )
        except Exception:  # a fact that fails must look dangerous, not stop the decision
            return False

    def _mask_of(self, globs: tuple[str, ...]) -> int:
        """Return the sources that are tools of some globs."""
        mask = 0
        for name, bits in self._bits_of_tools.items():
            if name != _OTHER_TOOLS and names_tool(globs, name.removeprefix("tool:")):
                mask |= bits
        return mask

    def _is_listed(
        self,
        text: str,
        kinds: tuple[str, ...],
        argument: _Argument,
        by_user: bool,
        tools: int,
    ) -> bool:
        """Return whether a text, or each thing that it names, stands in the user's words or in what
        some tools gave.
        """

        def stands(piece: str) -> bool:
            if by_user and self._is_users(piece, kinds, argument):
                return True
            return bool(tools and self._listing(piece, kinds) & tools)

        if stands(text):
            return True
        pieces = list(tokens_of(text, fold=str).strong)
        return len(pieces) > 1 and all(map(stands, pieces))

    def _is_users(self, text: str, kinds: tuple[str, ...], argument: _Argument) -> bool:
        judged = _Judged(unknown=False)
        self._judge(text, kinds, ArgumentRole.TARGET, judged, argument)
        if judged.unknown or judged.joined:
            return False
        return _holds(judged.masks, lambda mask: bool(mask & 1))

    def _listing(self, text: str, kinds: tuple[str, ...]) -> int:
        """Return the listed sources that hold a text as it is written."""
        tokens = tokens_of(text)
        if not tokens.complete:
            return 0
        if kinds and not tokens.strong:
            word = tokens.whole or ""
            masks = [self._listed_mask([_typed_id(kind, word)[0]]) for kind in kinds]
            return reduce(or_, masks, 0)  # "13" of the calendar is not "13" of the drive
        exact = exact_tokens_of(text)
        whole = self._listed_mask(exact.get(tokens.whole or "", ()))
        if whole:
            return whole
        parts = [self._listed_mask(exact.get(token, ())) for token in tokens.strong or tokens.words]
        return reduce(and_, parts) if parts else 0

    def _listed_mask(self, forms: Iterable[str]) -> int:
        masks = [self._tools.get(self._digest(_LISTED + form), 0) for form in forms]
        return reduce(and_, masks) if masks else 0

    def _digests(self, tokens: Iterable[str]) -> list[int]:
        return list(map(self._digest, tokens))

    def _keep(self, source: _Source, private: bool, digests: list[int]) -> None:
        """Remember tokens, and report them."""
        self._remember(source, private, digests)
        if self._publish is None:
            return
        tool_id, trust, _ = source
        for start in range(0, len(digests), _PUBLISHED_AT_ONCE):
            part = digests[start : start + _PUBLISHED_AT_ONCE]
            self._publish("kept", tool_id, trust.value, private, part)

    def _note_read(self, complete: bool) -> None:
        """Note whether all of a text or an output was read."""
        if complete:
            return
        if self._complete and self._publish is not None:
            self._publish("unread")
        self._complete = False

    def _remember(
        self,
        source: _Source,
        private: bool,
        digests: Collection[int],
    ) -> None:
        """Add tokens to a memory; where others had to be forgotten for them, the ledger is incomplete."""
        trust = source[1]
        limit = self._max_user_tokens
        bit = 1
        if source == _USERS:
            memory = self._user
        elif trust in (Trust.USER, Trust.UNKNOWN):
            memory = self._given
        else:
            memory = self._tools
            limit = self._max_tokens
            if digests:
                bit = self._bit(source, private)
        for digest in digests:
            known_sources = memory.get(digest, 0)
            if not known_sources & bit:
                memory[digest] = known_sources | bit
        excess = len(memory) - limit
        if excess <= 0:
            return
        for digest in list(islice(memory, excess)):
            del memory[digest]
        if memory is not self._given:
            self._complete = False

    def _note_given(self, tokens: Iterable[str]) -> None:
        """Remember the arguments of a call that no trusted source has: a tool that repeats them
        does not vouch for them.
        """
        free = [token for token in tokens if self._level(self._mask(token)) >= _FREE]
        self._keep(_GIVEN, False, self._digests(free))

    def _bit(self, source: _Source, private: bool) -> int:
        """Return the bit of a source; beyond a number of them, sources share a bit."""
        if source not in self._bits:
            tool_id, trust, _ = source
            known = len(self._sources)
            if known >= _MAX_SOURCES:
                source = (_OTHER_TOOLS, trust, "")
            elif known >= _MAX_LABELED:
                source = (tool_id, trust, "")
        if source not in self._bits:
            self._add_source(source, private)
        return self._bits[source]

    def _add_source(self, source: _Source, private: bool) -> None:
        tool_id, trust, label = source
        self._sources.append(source)
        bit = 1 << len(self._sources)  # bit 0 is the user's
        self._bits[source] = bit
        self._masks[_LEVELS.index(trust)] |= bit
        name = tool_id if tool_id == _OTHER_TOOLS else f"tool:{tool_id}"
        self._bits_of_tools[name] = self._bits_of_tools.get(name, 0) | bit
        if label:
            self._labelled |= bit
        if private:
            self._private |= bit

    def _mask(self, token: str, exact: Mapping[str, list[str]] | None = None) -> int:
        """Return the sources of a token: of free text those of the folded token, all others of its
        exact forms.
        """
        digest = self._digest(token)
        known = self._user.get(digest, 0) | self._tools.get(digest, 0)
        if exact is None:
            return known
        # a token accuses in any spelling, and vouches only where all exact forms of it do
        accusing = known
        vouching = 0
        masks = [self._mask(form) for form in exact.get(token, ())]
        if masks:
            accusing |= reduce(or_, masks)
            vouching = reduce(and_, masks)
        free = self._masks[_FREE]
        return accusing & free | vouching & ~free

    def _seen_whole(self, mask: int, role: ArgumentRole) -> ProvenanceFact:
        known = self._plain.get((mask, role))
        if known is not None:
            return known
        if len(self._plain) > _MAX_SOURCES:
            self._plain.clear()
        by_user = mask & 1
        private = 0 if by_user else mask & self._private
        judged = _Judged(unknown=False, masks=[mask], private=private)
        fact = self._fact(judged, role, True)
        self._plain[mask, role] = fact
        return fact

    def _fact(
        self,
        judged: _Judged,
        role: ArgumentRole,
        readable: bool,
    ) -> ProvenanceFact:
        union = reduce(or_, judged.masks, 0)
        all_known = self._complete and not self.behind
        certain = readable and (all_known or not judged.unknown)
        nowhere = certain and not (union or judged.joined or judged.made_up_id)
        if nowhere:
            known = self._plain.get((0, role))
            if known is not None:
                return known
        level = self._worst_level(judged)
        sources = self._tools_of(union)
        if union & 1:
            sources.insert(0, _USER)
        if judged.unknown or not sources:
            sources.append(_UNKNOWN)
        fact: ProvenanceFact = {
            "sources": sources,
            "untrusted": level == _FREE,
            "certain": certain,
            "trust": _LEVELS[level],
            "role": str(role),
            "seen_in": self._labels_of(union),
            "link": judged.link,
            "extended": judged.extended,
            "made_up_id": judged.made_up_id and level == _NOWHERE,
            "private": self._tools_of(judged.private),
            "broken": False,
            "sourced": Sourced.UNSTATED.value,
            "allowed": [],
        }
        if nowhere:
            self._plain[0, role] = fact
        return fact

    def _worst_level(self, judged: _Judged) -> int:
        """Return the level of the least trusted part of a value; free text is worse than nothing."""
        levels = set(map(self._level, judged.masks))
        if judged.joined or _FREE in levels:
            return _FREE
        if judged.unknown or not levels:
            return _NOWHERE
        return max(levels)

    def _tools_of(self, mask: int) -> list[str]:
        """Return the names of the tools of a mask."""
        if not mask:
            return []
        return [name for name, bits in self._bits_of_tools.items() if mask & bits]

    def _labels_of(self, mask: int) -> list[str]:
        """Return the first labels of a mask."""
        labels: list[str] = []
        mask &= self._labelled
        while mask and len(labels) < _SHOWN:
            lowest = mask & -mask
            source = self._sources[lowest.bit_length() - 2]  # bit 0 is the user's
            labels.append(source[2])
            mask -= lowest
        return labels

    def _level(self, mask: int) -> int:
        """Return the level of the most trusted of some sources."""
        for level in range(_NOWHERE):
            if mask & self._masks[level]:
                return level
        return _NOWHERE

    def _judge(
        self,
        text: str,
        kinds: tuple[str, ...],
        role: ArgumentRole,
        judged: _Judged,
        argument: _Argument,
    ) -> None:
        if not text.strip():
            return
        tokens = tokens_of(text)
        judged.exact = None
        if text != tokens.whole or not text.isascii():
            judged.exact = exact_tokens_of(text)
        if kinds and not tokens.strong:
            masks = [self._mask_of_id(tokens.whole or "", kinds, judged)]
        else:
            masks = self._masks_of(tokens, judged)
        if role is ArgumentRole.TARGET and self._user and any(masks):
            masks = self._without_other_senses(text, tokens, masks, argument)
        if 0 in masks:
            masks += self._free_masks_of_encoded(tokens)
            self._judge_unseen(tokens, role, judged)
        if not tokens.complete:
            judged.unknown = True
        judged.masks += masks

    def _judge_unseen(self, tokens: Tokens, role: ArgumentRole, judged: _Judged) -> None:
        """Note that a part of a text was not seen before, as it stands."""
        judged.unknown = True
        # a policy asks about an address or a path that is unknown, but not about a word: "air" and
        # "port" of two pages are recognised in "airport"
        if not tokens.strong and role is not ArgumentRole.CONTENT:
            letters = _NOT_ALNUM.sub("", tokens.whole or "")
            judged.joined = judged.joined or self._is_joined(letters)

    def _mask_of_id(self, text: str, kinds: tuple[str, ...], judged: _Judged) -> int:
        """Return the sources of an id among those of its kinds.

        Another field that happens to hold the same number is no source of an id.
        """
        mask = self._mask(text, judged.exact) if text else 0
        if text.isdecimal() and len(text) <= _SHORT_ID and not mask & 1:
            judged.made_up_id = True
        by_user_or_free = mask & (1 | self._masks[_FREE])
        for kind in kinds:
            typed = self._mask(f"{kind}\0{text}")
            if typed:
                return typed | by_user_or_free
        return by_user_or_free

    def _free_masks_of_encoded(self, tokens: Tokens) -> list[int]:
        """Return the sources of what a text holds in an encoding, where it is free text's."""
        found: list[int] = []
        for form in decoded(tokens.given):
            for mask in self._masks_of(tokens_of(form)):
                if self._level(mask) == _FREE:
                    found.append(mask)
        return found

    def _without_other_senses(
        self,
        text: str,
        tokens: Tokens,
        masks: list[int],
        argument: _Argument,
    ) -> list[int]:
        """Take away what vouches for a number or a plain word that was written of something else.

        What the user names as such a thing is the user's; what a record has and free text claims,
        is free text's.
        """
        from agenttool_otel.facts.mentions import (
            is_number,
            is_weak_number,
            nouns_of,
            otherwise,
            vouching_tokens,
        )

        nouns = nouns_of(argument.name, argument.tool)
        ways = vouching_tokens(text, nouns)
        if ways is None:
            return masks
        for way in ways:
            if all(self._mask(token) & 1 for token in way):
                return [mask | 1 for mask in masks]  # in so many words
        not_users = [mask & ~1 for mask in masks]
        if not is_number(text):
            return not_users
        number = text.strip()
        if not is_weak_number(text):
            # "invoice 4711234" vouches for no account of that number
            named_otherwise = self._mask(otherwise(number)) & 1
            return not_users if named_otherwise else masks
        if not self._is_claimed(number, nouns):
            return not_users
        free = self._masks[_FREE]
        return [mask & free or mask for mask in not_users]

    def _is_claimed(self, number: str, nouns: tuple[str, ...]) -> bool:
        """Return whether free text names a number as a thing of such a kind: "share file 3"."""
        from agenttool_otel.facts.mentions import ANY_KIND, typed

        free = self._masks[_FREE]
        return any(self._mask(typed(noun, number)) & free for noun in (ANY_KIND, *nouns))

    def _masks_of(self, tokens: Tokens, judged: _Judged | None = None) -> list[int]:
        exact = judged.exact if judged is not None else None
        whole = self._mask(tokens.whole, exact) if tokens.whole is not None else 0
        masks = [
            self._strong_mask(token, strong, judged) for token, strong in tokens.strong.items()
        ]
        if masks and not whole:
            return masks
        if judged is not None and whole and not whole & 1:
            judged.private |= whole & self._private
        return [whole or self._common_mask(tokens.words, exact)]

    def _strong_mask(self, token: str, strong: Strong, judged: _Judged | None) -> int:
        """Return the sources of a token; note what matters if the call sends it: confidential data,
        and links that only free text has.
        """
        exact = judged.exact if judged is not None else None
        own = self._mask(token, exact)
        mask = own
        for part in strong.parts:
            mask = mask or self._mask(part, exact)
        if judged is None:
            return mask
        if not own & 1:
            judged.private |= (own | self._mask(_PRIVATE + token)) & self._private
        if strong.link and self._level(mask) == _FREE:
            judged.link = True
            if strong.tail and not self._is_link_seen(own, strong):
                judged.extended = True
        return mask

    def _is_link_seen(self, own: int, strong: Strong) -> bool:
        """Return whether a link was seen with all that it carries; without a query its spelling may
        differ.
        """
        if own or not strong.parts:
            return bool(own)
        return "?" not in strong.tail and bool(self._mask(strong.parts[0]))

    def _common_mask(self, words: set[str], exact: Mapping[str, list[str]] | None) -> int:
        """Return the sources that mentioned every word."""
        common = -1
        for word in words:
            common &= self._mask(word, exact)
            if not common:
                return 0
        return max(common, 0)

    def _is_joined(self, text: str) -> bool:
        """Return whether a text can be put together of pieces of which only untrusted output has
        some.
        """
        if len(text) > _MAX_JOINED:
            return False
        whole = self._digest(text)
        vouched = sum(self._masks[:_FREE])
        # where the rest can be put together from, and whether such a piece is in it
        from_here = {len(text): False}
        for start in reversed(range(len(text))):
            for end, needed in list(from_here.items()):
                piece = self._digest(text[start:end])
                if piece == whole:
                    continue
                by_user = piece in self._user
                if not by_user and piece not in self._tools:
                    continue
                free = not by_user and not self._tools[piece] & vouched
                from_here[start] = from_here.get(start, False) or needed or free
        return from_here.get(0, False)


@dataclass(slots=True)
class _Judged:
    """What was found about the parts of a value."""

    unknown: bool
    masks: list[int] = field(default_factory=list)
    joined: bool = False
    link: bool = False
    extended: bool = False
    made_up_id: bool = False
    private: int = 0
    # of the text that is judged; none where it is its own exact form
    exact: Mapping[str, list[str]] | None = None


class _Argument(NamedTuple):
    """The argument whose value is looked up."""

    name: str
    tool: str  # the tool's name


class _Output(NamedTuple):
    """An output that is being recorded."""

    tool_id: str
    label: str
    trust: OutputTrust
    cap: Trust | None  # what the arguments leave of the trust; ``None`` leaves all
    own: set[str]  # the tokens of the call's arguments
    ids: list[OutputId]


UNREADABLE: Final[ProvenanceFact] = {
    "sources": ["unknown"],
    "untrusted": True,
    "certain": False,
    "trust": Trust.UNKNOWN.value,
    "role": ArgumentRole.TARGET.value,
    "seen_in": [],
    "link": True,
    "extended": True,
    "made_up_id": False,
    "private": [],
    "broken": False,
    "sourced": Sourced.UNSTATED.value,
    "allowed": [],
}
"""The fact about a value that could not be judged."""


def _digester(key: bytes) -> Callable[[str], int]:
    """Return the function whose result is the only form in which a token is kept."""
    # Python's own digests of text are keyed, unless the key was stated
    random = os.environ.get("PYTHONHASHSEED", "random") == "random"
    if not key and random and sys.flags.hash_randomization:
        return hash
    return partial(_keyed, key or secrets.token_bytes(32))


def _keyed(key: bytes, token: str) -> int:
    data = token.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=7, key=key, person=b"ledger").digest()
    return int.from_bytes(digest)


def _is_place(value: Any) -> bool:
    return isinstance(value, str) and _PLACE.fullmatch(value) is not None


def _holds(items: list[Any], holds: Callable[[Any], bool]) -> bool:
    """Return whether something holds of each of some things, of which there is one at least."""
    return bool(items) and all(map(holds, items))


def _exact(text: str) -> set[str]:
    """Return the exact forms of a text's tokens."""
    return {form for forms in exact_tokens_of(text).values() for form in forms}


def _typed_id(kind: str, text: str) -> tuple[str, str]:
    """Return the token of an id within its kind, and of the id alone."""
    word = normalize_text(text)
    return f"{kind}\0{word}", word


def _tokens_given(given: Any) -> tuple[set[str], set[str]]:
    """Return the tokens of a call's arguments, and those of them that are no mere words."""
    texts, _ = texts_of(given, keys=False)
    own: set[str] = set()
    marks: set[str] = set()
    for text in texts:
        tokens = tokens_of(text)
        own |= tokens.all()
        marks |= _marks(text, tokens)
    return own, marks


def _marks_of(texts: Iterable[str]) -> set[str]:
    """Return the tokens of texts that are no mere words, folded and exact."""
    marks: set[str] = set()
    for text in texts:
        marks |= _marks(text, tokens_of(text))
    return marks


def _marks(text: str, tokens: Tokens) -> set[str]:
    exact = exact_tokens_of(text)
    folded = tokens.lines.union(tokens.strong)
    if tokens.whole is not None:
        folded.add(tokens.whole)
    marks = set(folded)
    for token in folded:
        marks.update(exact.get(token, ()))
    return marks


def _of_output(
    level: Trust,
    texts: list[str],
    *,
    claims: bool,
) -> tuple[set[str], bool]:
    """Return the tokens of an output's texts, and whether all was read: folded where they accuse,
    exact where not.

    Args:
        level: the texts' trust.
        texts: the texts.
        claims: whether free text's claims about numbers are read; they matter beside words of the
            user.
    """
    text = "\n".join(dict.fromkeys(texts))
    if level is not Trust.FREE_TEXT:
        found = _exact(text)
        for several in _short_with_lines(texts):
            found.add(exact_form(" ".join(several.split())))
        return found, len(text) <= MAX_TEXT_CHARS
    tokens = tokens_of(text)
    found = tokens.all()
    forms = decoded(tokens.given)
    if forms:
        found |= tokens_of("\n".join(forms)).all()
    if not text.isascii() or "xn--" in text:
        found |= _exact(" ".join(_foreign_hosts(text)))
    if claims and any(map(str.isdecimal, found)):
        from agenttool_otel.facts.mentions import tokens_of_claims

        found.update(tokens_of_claims(text))
    for several in _short_with_lines([*texts, *forms]):
        found.add(" ".join(normalize_text(several).split()))
    return found, tokens.complete


def _short_with_lines(texts: Iterable[str]) -> Iterator[str]:
    """Return the texts that are recognised as a whole though they have several lines."""
    for text in texts:
        if "\n" in text and len(text) <= _MAX_WHOLE:
            yield text


def _foreign_hosts(text: str) -> Iterator[str]:
    """Return the words that may be hosts with other letters than ASCII's."""
    for word in text.split():
        if "." in word and ("xn--" in word or not word.isascii()):
            yield word
