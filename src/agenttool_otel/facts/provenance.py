"""Where a value came from: the user's own words, a tool that only the application writes, or text
that anybody wrote.

An agent that reads a page can be told by the page whom to pay. The ledger of a session remembers
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
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import islice
from operator import and_, or_
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.argument_names import is_paging
from agenttool_otel.facts.outputs import OutputTrust, decoded, id_kinds, stores_of
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
from agenttool_otel.names import ArgumentRole, Trust
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
_TOLD_AT_ONCE: Final = 4_096
_MAX_INPUTS: Final = 500
_MAX_CONFIRMATION: Final = 256
_PRIVATE: Final = "\3"  # before the folded token of a confidential source
_ANY_STORE: Final = ("", "")


class ProvenanceLedger:
    """The provenance of one session; safe to use from several threads.

    The user's tokens and the tools' are bounded apart, so that no amount of tool output makes the
    ledger forget what the user said. With a ``key`` its digests mean the same in every process that
    has it, and ``tell`` is told what is new, in the form that ``take`` and ``doubt`` of another
    process's ledger take.
    """

    def __init__(
        self,
        *,
        max_tokens: int = 65_536,
        max_user_tokens: int = 8_192,
        key: bytes = b"",
        tell: Callable[..., None] | None = None,
    ) -> None:
        if max_tokens < 1 or max_user_tokens < 1:
            raise ValueError("a ledger remembers at least one token")
        self._max_tokens = max_tokens
        self._max_user_tokens = max_user_tokens
        # the only form in which a token is kept; Python's own digests of text are keyed, unless the
        # key was stated
        own = (
            sys.flags.hash_randomization and os.environ.get("PYTHONHASHSEED", "random") == "random"
        )
        self._digest = hash if own and not key else partial(_keyed, key or secrets.token_bytes(32))
        self._tell = tell
        self.behind = False  # whether another process may know what this ledger does not, yet
        self._lock = new_lock()
        self._user: dict[Any, int] = {}
        self._tools: dict[Any, int] = {}
        self._given: dict[Any, int] = {}
        # who wrote what nobody vouches for: namespaces and tools
        self._fed: set[tuple[str, str]] = set()
        self._sources: list[_Source] = []
        self._bits: dict[_Source, int] = {}
        self._masks = [0] * len(_LEVELS)  # the sources of each level
        self._masks[0] = 1
        # facts of values seen whole, or nowhere
        self._plain: dict[tuple[int, ArgumentRole], ProvenanceFact] = {}
        self._bits_of_tools: dict[str, int] = {}
        self._labelled = 0  # the sources that have a label
        self._private = 0
        self._complete = True

    def copy(self) -> ProvenanceLedger:
        """Return another one that knows the same, and tells nobody what it is told."""
        other = ProvenanceLedger(max_tokens=self._max_tokens, max_user_tokens=self._max_user_tokens)
        with self._lock:
            for name, value in vars(self).items():
                setattr(
                    other, name, value.copy() if isinstance(value, (dict, list, set)) else value
                )
        other._tell, other._lock = None, new_lock()
        return other

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return len(self._user) + len(self._tools)

    def __repr__(self) -> str:
        return f"<ProvenanceLedger of {len(self)} tokens from {len(self._sources)} sources>"

    @property
    def speaks(self) -> bool:
        """Whether there is anything to say of a value: the user's words are known, or text that
        anybody wrote.
        """
        return bool(self._user or self._masks[_FREE] or not self._complete or self.behind)

    def record_user(self, text: Any) -> None:
        """Remember the tokens of what the user said."""
        from agenttool_otel.facts.mentions import tokens_of_mentions

        texts, complete = texts_of(text, keys=True)
        said = "\n".join(texts)
        tokens = {*_exact(said), *tokens_of_mentions(said)}
        with self._lock:
            self._keep(_USERS, False, self._digests(tokens))
            self._read(complete and len(said) <= MAX_TEXT_CHARS)

    def take(self, tool_id: str, trust: str, private: bool, digests: list[int]) -> None:
        """Remember what the ledger of another process was told."""
        with self._lock:
            self._remember((tool_id, Trust(trust), ""), private, digests)

    def doubt(self) -> None:
        """Know that not everything is known here."""
        self._complete = False

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
        cap = self._level_of_inputs(given, trust)
        own, marks = _tokens_given(given)
        with self._lock:
            self._note_given(marks)
            if trust.confirms and cap:
                self._feed(trust)
            elif not trust.is_lookup and self._is_fed(trust):
                cap = cap or Trust.UNKNOWN
            complete = reading.complete
            for level, texts in reading.texts.items():
                capped = cap if cap and level is Trust.TRUSTED and not trust.is_lookup else level
                tokens, read = _of_output(capped, texts, claims=bool(self._user))
                complete = complete and read
                if capped is Trust.FREE_TEXT:
                    digests = self._digests(self._new(tokens, own, trust, texts))
                elif capped is Trust.UNKNOWN:
                    self._note_given(_marks_of(texts))
                    continue
                else:
                    digests = [
                        digest for digest in self._digests(tokens) if digest not in self._given
                    ]
                    ids = (_typed_id(*one) for one in reading.ids if one[2] is level)
                    digests += self._digests(
                        typed for typed, word in ids if self._digest(word) not in self._given
                    )
                if trust.private:
                    digests += self._digests(_PRIVATE + normalize_text(token) for token in tokens)
                self._keep((tool_id, capped, label), trust.private, digests)
            self._read(complete)

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
                stack += [(str(key), child) for key, child in value.items()] + [
                    (name, str(key)) for key in value
                ]
            elif isinstance(value, (list, tuple, set, frozenset)):
                stack += [(name, child) for child in value]
            elif value in (None, "") or isinstance(value, bool) or is_paging(name, value):
                continue
            else:
                fact = self.lookup(value, name=name, role=ArgumentRole.CONTENT)
                if fact["untrusted"]:
                    return Trust.FREE_TEXT
                if fact["trust"] == Trust.UNKNOWN:
                    worst = Trust.UNKNOWN
        return Trust.UNKNOWN

    def _new(
        self, tokens: set[str], own: set[str], trust: OutputTrust, texts: list[str]
    ) -> set[str]:
        """Return the tokens of an output that its call was not given: what repeats them is no new
        source.

        What only a reader's argument has in common with its text may be another thing there, such
        as a number.
        """
        short = trust.confirms and sum(map(len, texts)) <= _MAX_CONFIRMATION
        return {
            token
            for token in tokens
            if token not in own or not (short or self._level(self._mask(token)) < _FREE)
        }

    def _feed(self, trust: OutputTrust) -> None:
        """Remember that something that nobody vouches for was written where a tool's store
        is read.
        """
        if (trust.family, trust.tool) not in self._fed and self._tell is not None:
            self._tell("fed", trust.family, trust.tool)
        self.take_fed(trust.family, trust.tool)

    def take_fed(self, family: str, tool: str) -> None:
        """Remember what the ledger of another process was told of a store, by the tool that wrote
        to it.
        """
        self._fed.add((family, tool) if len(self._fed) < _MAX_SOURCES else _ANY_STORE)

    def _is_fed(self, trust: OutputTrust) -> bool:
        if not self._fed:
            return False
        names = {
            store
            for family, tool in self._fed
            if family == trust.family
            for store in stores_of(family, tool)
        }
        return _ANY_STORE in self._fed or not names.isdisjoint(stores_of(trust.family, trust.tool))

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
        itself: it is untrusted when one of them is. Any other value is judged as a whole, or by all
        its words together. A short id counts among the ids of its kind alone, as its argument's
        name and the tool's family tell it.
        """
        try:
            kinds = id_kinds(name, family)
            if (
                not kinds
                and role is not ArgumentRole.CONTENT
                and isinstance(value, str)
                and _PLACE.fullmatch(value)
            ):
                with self._lock:
                    if mask := self._mask(value):
                        return self._seen_whole(mask, role)
            texts, readable = ([value], True) if type(value) is str else texts_of(value, keys=False)
            judged = _Judged(not readable, [])
            with self._lock:
                for text in texts:
                    self._judge(text, kinds, role, judged, _Argument(name, tool))
                return self._fact(judged, role, readable)
        except Exception:  # a fact that fails must look dangerous, not stop the decision
            return dict(UNREADABLE)  # type: ignore[return-value]

    def _digests(self, tokens: Iterable[str]) -> list[int]:
        return list(map(self._digest, tokens))

    def _keep(self, source: _Source, private: bool, digests: list[int]) -> None:
        """Remember tokens, and tell of them."""
        self._remember(source, private, digests)
        if self._tell is not None:
            for at in range(0, len(digests), _TOLD_AT_ONCE):
                self._tell(
                    "kept", source[0], source[1].value, private, digests[at : at + _TOLD_AT_ONCE]
                )

    def _read(self, complete: bool) -> None:
        """Note whether all of something was read."""
        if not complete and self._complete and self._tell is not None:
            self._tell("unread")
        self._complete &= complete

    def _remember(self, source: _Source, private: bool, digests: Collection[int]) -> None:
        """Add tokens to a memory; whether something had to be forgotten for it is
        remembered, too.
        """
        memory, limit, bit = self._tools, self._max_tokens, 1
        if source[1] in (Trust.USER, Trust.UNKNOWN):
            memory, limit = (self._user if source == _USERS else self._given), self._max_user_tokens
        elif digests:
            bit = self._bit(source, private)
        for digest in digests:
            if (known := memory.get(digest)) is None:
                memory[digest] = bit
            elif not known & bit:
                memory[digest] = known | bit
        excess = len(memory) - limit
        if excess > 0:
            for digest in list(islice(memory, excess)):
                del memory[digest]
            self._complete &= memory is self._given

    def _note_given(self, tokens: Iterable[str]) -> None:
        """Remember the arguments of a call for which nobody has vouched: a tool that repeats them
        does not, either.
        """
        self._keep(
            _GIVEN,
            False,
            self._digests(one for one in tokens if self._level(self._mask(one)) >= _FREE),
        )

    def _bit(self, key: _Source, private: bool) -> int:
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

    def _mask(self, token: str, exact: Mapping[str, list[str]] | None = None) -> int:
        """Return the sources of a token: of free text those of the folded token, all others of its
        exact forms.
        """
        digest = self._digest(token)
        known = self._user.get(digest, 0) | self._tools.get(digest, 0)
        if exact is None:
            return known
        masks = [self._mask(form) for form in exact.get(token, ())]
        free = self._masks[_FREE]
        vouching = reduce(and_, masks) if masks else 0
        return (known | reduce(or_, masks, 0)) & free | vouching & ~free

    def _seen_whole(self, mask: int, role: ArgumentRole) -> ProvenanceFact:
        if (fact := self._plain.get((mask, role))) is None:
            if len(self._plain) > _MAX_SOURCES:
                self._plain.clear()
            judged = _Judged(
                unknown=False, masks=[mask], private=0 if mask & 1 else mask & self._private
            )
            fact = self._plain[mask, role] = self._fact(judged, role, True)
        return fact

    def _fact(self, judged: _Judged, role: ArgumentRole, readable: bool) -> ProvenanceFact:
        union = reduce(or_, judged.masks, 0)
        certain = readable and ((self._complete and not self.behind) or not judged.unknown)
        nowhere = certain and not (union or judged.joined or judged.made_up_id)
        if nowhere and (known := self._plain.get((0, role))) is not None:
            return known
        levels = set(map(self._level, judged.masks))
        untrusted = judged.joined or _FREE in levels
        level = (
            _FREE if untrusted else _NOWHERE if judged.unknown else max(levels, default=_NOWHERE)
        )
        sources = ([_USER] if union & 1 else []) + self._tools_of(union)
        if judged.unknown or not sources:
            sources.append(_UNKNOWN)
        fact: ProvenanceFact = {
            "sources": sources,
            "untrusted": untrusted,
            "certain": certain,
            "trust": _LEVELS[level],
            "role": str(role),
            "seen_in": self._labels_of(union),
            "link": judged.link,
            "extended": judged.extended,
            "made_up_id": judged.made_up_id and level == _NOWHERE,
            "private": self._tools_of(judged.private),
            "broken": False,
        }
        if nowhere:
            self._plain[0, role] = fact
        return fact

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
        judged.exact = None if text == tokens.whole and text.isascii() else exact_tokens_of(text)
        whole = tokens.whole or ""
        if kinds and not tokens.strong:
            # another field that happens to hold the same number says nothing about an id
            mask = self._mask(whole, judged.exact) if whole else 0
            typed = next(filter(None, (self._mask(f"{kind}\0{whole}") for kind in kinds)), 0)
            masks = [typed | mask & (1 | self._masks[_FREE])]
            judged.made_up_id |= whole.isdecimal() and len(whole) <= _SHORT_ID and not mask & 1
        else:
            masks = self._masks_of(tokens, judged)
        if role is ArgumentRole.TARGET and self._user and any(masks):
            masks = self._without_other_senses(text, tokens, masks, argument)
        if 0 in masks:
            for form in decoded(tokens.given):
                masks += [
                    mask for mask in self._masks_of(tokens_of(form)) if self._level(mask) == _FREE
                ]
            # what has a form of its own, such as an address, is asked about where it is unknown; a
            # word would run
            if not tokens.strong and role is not ArgumentRole.CONTENT:
                judged.joined |= self._is_joined(_NOT_ALNUM.sub("", whole))
        judged.unknown |= 0 in masks or not tokens.complete
        judged.masks += masks

    def _without_other_senses(
        self, text: str, tokens: Tokens, masks: list[int], argument: _Argument
    ) -> list[int]:
        """Take away what vouches for a number or a plain word that was said of something else.

        What the user names as such a thing is the user's; what a record has and free text claims,
        is free text's.
        """
        from agenttool_otel.facts.mentions import (
            ANY_KIND,
            is_number,
            is_weak_number,
            nouns_of,
            otherwise,
            typed,
            vouching_tokens,
        )

        nouns = nouns_of(argument.name, argument.tool)
        ways = vouching_tokens(text, nouns)
        if ways is None:
            return masks
        if any(all(self._mask(token) & 1 for token in way) for way in ways):
            return [mask | 1 for mask in masks]  # said in so many words
        number = text.strip() if is_number(text) else ""
        if number and not is_weak_number(text):
            return [mask & ~1 for mask in masks] if self._mask(otherwise(number)) & 1 else masks
        masks = [mask & ~1 for mask in masks]
        claimed = number and reduce(
            or_, (self._mask(typed(noun, number)) for noun in (ANY_KIND, *nouns))
        )
        free = self._masks[_FREE]
        return [mask & free or mask for mask in masks] if claimed and claimed & free else masks

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
        """Return the sources of a token; note what matters where it is carried out: confidential
        data, and links that only free text has.
        """
        exact = judged.exact if judged is not None else None
        own = self._mask(token, exact)
        mask = own or next(filter(None, (self._mask(part, exact) for part in strong.parts)), 0)
        if judged is not None and not own & 1:
            judged.private |= (own | self._mask(_PRIVATE + token)) & self._private
        if judged is not None and strong.link and self._level(mask) == _FREE:
            judged.link = True
            seen = own or (
                "?" not in strong.tail and self._mask(strong.parts[0]) if strong.parts else own
            )
            judged.extended |= bool(strong.tail) and not seen
        return mask

    def _common_mask(self, words: set[str], exact: Mapping[str, list[str]] | None) -> int:
        """Return the sources that mentioned every word."""
        common = -1
        for word in words:
            common &= self._mask(word, exact)
            if not common:
                return 0
        return max(common, 0)

    def _is_joined(self, text: str) -> bool:
        """Tell whether a text can be put together of pieces, one of which only untrusted
        output has.
        """
        if len(text) > _MAX_JOINED:
            return False
        user, tools, whole, vouched = (
            self._user,
            self._tools,
            self._digest(text),
            sum(self._masks[:_FREE]),
        )
        # where the rest can be put together from, and whether such a piece is in it
        from_here = {len(text): False}
        for start in reversed(range(len(text))):
            for end, needed in list(from_here.items()):
                piece = self._digest(text[start:end])
                if (piece in tools or piece in user) and piece != whole:
                    free = piece not in user and not tools[piece] & vouched
                    from_here[start] = from_here.get(start, False) or needed or free
        return from_here.get(0, False)


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
    # of the text that is judged; none where it is its own exact form
    exact: Mapping[str, list[str]] | None = None


class _Argument(NamedTuple):
    """Whose value is looked up."""

    name: str
    tool: str  # the tool's name


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
}
"""The fact about a value that could not be judged."""


def _keyed(key: bytes, token: str) -> int:
    data = token.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=7, key=key, person=b"ledger").digest())


def _exact(text: str) -> set[str]:
    """Return the exact forms of a text's tokens."""
    return {form for forms in exact_tokens_of(text).values() for form in forms}


def _typed_id(kind: str, text: str, trust: Trust) -> tuple[str, str]:
    """Return the token of an id within its kind, and of the id alone."""
    word = normalize_text(text)
    return f"{kind}\0{word}", word


def _tokens_given(given: Any) -> tuple[set[str], set[str]]:
    """Return the tokens of a call's arguments, and those of them that are no mere words."""
    texts, _ = texts_of(given, keys=False)
    own: set[str] = set()
    for text in texts:
        own |= tokens_of(text).all()
    return own, _marks_of(texts)


def _marks_of(texts: Iterable[str]) -> set[str]:
    """Return the tokens of texts that are no mere words, folded and exact."""
    marks: set[str] = set()
    for text in texts:
        tokens = tokens_of(text)
        folded = {*tokens.lines, *tokens.strong, *filter(None, [tokens.whole])}
        exact = exact_tokens_of(text)
        marks |= folded | {form for token in folded for form in exact.get(token, ())}
    return marks


def _of_output(level: Trust, texts: list[str], *, claims: bool) -> tuple[set[str], bool]:
    """Return the tokens of an output's texts, and whether all was read: folded where they accuse,
    exact where not.

    What they claim of numbers is read where there are words of the user's that it could be held
    against.
    """
    text = "\n".join(dict.fromkeys(texts))
    if level is not Trust.FREE_TEXT:
        found = _exact(text)
        found.update(
            exact_form(" ".join(one.split()))
            for one in texts
            if "\n" in one and len(one) <= _MAX_WHOLE
        )
        return found, len(text) <= MAX_TEXT_CHARS
    tokens = tokens_of(text)
    forms = decoded(tokens.given)
    found = tokens.all().union(tokens_of("\n".join(forms)).all() if forms else ())
    if not text.isascii() or "xn--" in text:
        hosts = [
            word for word in text.split() if "." in word and ("xn--" in word or not word.isascii())
        ]
        found |= _exact(" ".join(hosts))
    if claims and any(map(str.isdecimal, found)):
        from agenttool_otel.facts.mentions import tokens_of_claims

        found.update(tokens_of_claims(text))
    short = (text for text in [*texts, *forms] if "\n" in text and len(text) <= _MAX_WHOLE)
    found.update(" ".join(normalize_text(text).split()) for text in short)
    return found, tokens.complete
