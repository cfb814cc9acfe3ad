"""The texts of rules, without the arguments that they put into it: where content is off, no message may
carry one out.

A text that stands in the bundle as it is, is the rule's own. Of any other, as ``sprintf`` makes
them, each value of the call is taken out, and each word that is part of one, unless it is a word of
the bundle. Words of one or two characters stay: taking each ``5`` or ``no`` out would destroy the
message and hide little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cachetools import LRUCache, cached

from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.types import Verdict
from agenttool_otel.redaction.encodings import encoded_forms
from agenttool_otel.values.forks import new_lock

PLACEHOLDER: Final = "[argument]"
"""What stands for an argument's value in a rule's text."""

_LITERAL: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`')
_WORD: Final = re.compile(r"\w[^\s\"'`,;()\[\]{}<>]*\w|\w", re.UNICODE)
_MIN_CHARS: Final = 3
_MAX_VALUES: Final = 2_000
_MAX_CHARS: Final = 200_000
_MAX_BUNDLES: Final = 8


class OwnTexts(NamedTuple):
    """The texts that stand in the rules of a bundle themselves, the empty one included."""

    texts: frozenset[str]  # whole texts
    words: frozenset[str]  # their words

    def has(self, text: str) -> bool:
        """Return whether a text stands in the rules, as it is or as two that a dot joins."""
        if text in self.texts:
            return True
        # concat(".", ["agenttool.rules.paths", "sensitive"])
        package, dot, name = text.rpartition(".")
        return dot == "." and package in self.texts and name in self.texts


def own_texts(bundle: Bundle | None) -> frozenset[str]:
    """Return the texts that stand in a bundle as they are, the empty one included.

    Args:
        bundle: the policy; the stock bundle where it is not known.
    """
    return texts_of(bundle).texts


def texts_of(bundle: Bundle | None) -> OwnTexts:
    """Return the texts that stand in a bundle, and their words.

    Args:
        bundle: the policy; the stock bundle where it is not known.
    """
    return _words_of(_stock() if bundle is None else bundle)


def without_arguments(
    bundle: Bundle | None, arguments: Iterable[Mapping[str, Any]], fixed: Container[str] = ()
) -> Callable[[str], str]:
    """Return what takes a call's arguments out of a rule's text.

    Args:
        bundle: the policy, whose own words stay; the stock bundle's where it is not known, as with
          an OPA server.
        arguments: the arguments of the call, in each form in which a rule may have seen them.
        fixed: further texts that are no argument's, such as the stated answers of an engine without
          rules.
    """
    return _Cleaner(texts_of(bundle), arguments, fixed).clean


class _Cleaner:
    """Takes a call's arguments out of texts; what they hold is collected at the first that needs it."""

    def __init__(
        self,
        own: OwnTexts,
        arguments: Iterable[Mapping[str, Any]],
        fixed: Container[str],
    ) -> None:
        self._own = own
        self._arguments = arguments
        self._fixed = fixed
        self._found: _Found | None = None

    def clean(self, text: str) -> str:
        # most calls are answered by constant texts, such as "the tool only reads"
        if self._own.has(text) or text in self._fixed:
            return text
        if self._found is None:
            self._found = _collect(self._arguments, self._own)
        for form in self._found.forms:
            text = text.replace(form, PLACEHOLDER)
        return _WORD.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        word = match[0]
        if len(word) < _MIN_CHARS or word in self._own.words or word == PLACEHOLDER.strip("[]"):
            return word
        if self._found is not None and word.casefold() in self._found.everything:
            return PLACEHOLDER
        return word


def verdict_without_arguments(
    verdict: Verdict,
    bundle: Bundle | None,
    arguments: Iterable[Mapping[str, Any]],
    fixed: Container[str] = (),
) -> Verdict:
    """Return a verdict without a call's arguments in its texts, those of its shadow included.

    Args:
        verdict: the verdict.
        bundle: the policy, whose own words stay.
        arguments: the arguments of the call, in each form in which a rule may have seen them.
        fixed: further texts that are no argument's.
    """
    clean = without_arguments(bundle, arguments, fixed)
    cleaned = _with_clean_texts(verdict, clean)
    if verdict.shadow is None:
        return cleaned
    shadow = _with_clean_texts(verdict.shadow, clean)
    return cleaned if shadow is verdict.shadow else replace(cleaned, shadow=shadow)


def _with_clean_texts(verdict: Verdict, clean: Callable[[str], str]) -> Verdict:
    cleaned = replace(
        verdict,
        message=clean(verdict.message),
        rule_ref=clean(verdict.rule_ref),
        rule_refs=tuple(map(clean, verdict.rule_refs)),
        alternatives=tuple(_with_clean_reason(offer, clean) for offer in verdict.alternatives),
        suggested_updates=tuple(
            _with_clean_reason(offer, clean) for offer in verdict.suggested_updates
        ),
    )
    return verdict if cleaned == verdict else cleaned


def _with_clean_reason(offer: dict[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """Clean the one text of an offer that is for people: its tool, arguments and facts are what is
    offered.
    """
    reason = offer.get("reason")
    return {**offer, "reason": clean(reason)} if isinstance(reason, str) else offer


class _Found(NamedTuple):
    """What the arguments of a call hold."""

    forms: list[str]  # their values and the usual encodings, longest first
    everything: str  # all of it, without case


def _collect(arguments: Iterable[Mapping[str, Any]], own: OwnTexts) -> _Found:
    values: set[str] = set()
    for given in arguments:
        values.update(_texts(given))
    forms: set[str] = set()
    for value in values:
        if value in own.words:
            continue
        for form in encoded_forms(value):
            if len(form) >= _MIN_CHARS:
                forms.add(form)
    everything = "\0".join([*values, *forms])
    return _Found(sorted(forms, key=len, reverse=True), everything.casefold())


def _texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts and numbers of arguments, at all depths, and the names that they have below
    the top.
    """
    waiting: list[Any] = list(arguments.values())
    seen = 0
    size = 0
    while waiting and seen < _MAX_VALUES and size < _MAX_CHARS:
        value = waiting.pop()
        seen += 1
        if isinstance(value, Mapping):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, str):
            size += len(value)
            yield value[:_MAX_CHARS]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield json.dumps(value)


@cached(LRUCache(_MAX_BUNDLES), key=lambda bundle: bundle.digest, lock=new_lock())
def _words_of(bundle: Bundle) -> OwnTexts:
    texts = {""}
    for module in bundle.modules.values():
        for match in _LITERAL.finditer(module):
            quoted, raw = match.groups()
            texts.add(raw if quoted is None else quoted)
    words: set[str] = set()
    for text in texts:
        words.update(_WORD.findall(text))
    return OwnTexts(frozenset(texts), frozenset(words))


@lru_cache(maxsize=1)
def _stock() -> Bundle:
    return load_bundle(default_bundle_path())
