"""Canonical bytes and digests: what an approval and a decision are bound to.

The form is RFC 8785 (JSON Canonicalization Scheme) through ``rfc8785``, with one addition: what
JSON can't express is tagged, and a tag can't be imitated, because an object key of the value that
begins with ``$`` gets one more ``$``. So not-a-number is not ``null``, two huge integers are not
one float, bytes are not text and a lone surrogate is not its escape. JSON data without such keys
has exactly its RFC 8785 bytes. A tuple counts as a list and an enum member as its value, as in
JSON; paths, UUIDs, decimals, times and sets differ from their texts, because a tool may treat them
differently.

Nothing is left out: there is no limit on size. Long strings and bytes enter as their length and
SHA-256; values deeper or larger than a serialiser can take enter as a hash tree. An object of an
unknown class enters as its class name only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from math import isfinite
from typing import Any, Final

import rfc8785

from agenttool_otel.values.conversion import JsonLike, bytes_tag, scalar_text
from agenttool_otel.values.ids import uuid7_hex
from agenttool_otel.values.inspection import CONTAINERS, Kind, class_name, kind_of, parts_of

DIGEST_KEY: Final = "AGENTTOOL_DIGEST_KEY"
_PROCESS_KEY: Final = secrets.token_bytes(32)
_SAFE_INT: Final = 2**53 - 1
_LONG_TEXT: Final = 1 << 20
_CHUNK: Final = 1 << 18
_QUICK_CHARS: Final = 1 << 16
_TREE_DEPTH: Final = 100
_TREE_NODES: Final = 1_000_000
_NO_LIMIT: Final = 1 << 62
# For data of text, small integers, booleans and null with ASCII keys, this encoder's output is RFC
# 8785's (a property test compares the two), at a third of the cost.
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
).encode


def digest(value: Any) -> str:
    """Return ``sha256:`` and the SHA-256 of ``canonical_bytes(value)`` in hexadecimal."""
    return "sha256:" + hashlib.sha256(canonical_bytes(value)).hexdigest()


def keyed_digest(value: Any) -> str:
    """Return ``hmac-sha256:`` and the HMAC of ``canonical_bytes(value)``, for what leaves the process.

    A reader can compare it with others of the same key, but not try what a short value might have
    been. The key is ``AGENTTOOL_DIGEST_KEY``, or one of this process alone.
    """
    return "hmac-sha256:" + hmac.digest(digest_key(), canonical_bytes(value), "sha256").hex()


def digest_key() -> bytes:
    """Return the key of digests that leave the process: ``AGENTTOOL_DIGEST_KEY``, or one of this
    process alone.
    """
    return stated_digest_key() or _PROCESS_KEY


def stated_digest_key() -> bytes:
    """Return ``AGENTTOOL_DIGEST_KEY``, empty where it is not stated."""
    return os.environ.get(DIGEST_KEY, "").encode("utf-8", "surrogateescape")


def canonical_bytes(value: Any) -> bytes:
    """Return the canonical bytes of any value; equal values have equal bytes, different JSON data
    different ones.

    Never raises: a part that can't be read (a dict that another thread changes, an object that
    fights back) enters as a tag that holds a random number, so that it equals nothing, not even
    itself, and no approval fits it.
    """
    if type(value) is dict and len(value) <= 32 and _is_quick(value):
        return _encode(value).encode()
    try:
        tagged = _Tagger().tag(value)
    except Exception:
        tagged = unequal_tag(value)
    return rfc8785.dumps(tagged)


def json_text(value: Any) -> str:
    """Return the RFC 8785 form of JSON data, and refuse anything else with a ValueError or
    TypeError.
    """
    if type(value) is dict and _is_quick(value):
        return _encode(value)
    return rfc8785.dumps(value).decode()


def unequal_tag(value: object) -> dict[str, JsonLike]:
    """Return a tag that equals no other, for a value that can't be read."""
    return {"$type": class_name(type(value)), "$unreadable": uuid7_hex()}


def _is_quick(value: dict[Any, Any]) -> bool:
    """Return whether the fast encoder writes an object as RFC 8785 does: ``{"path": "a.txt"}``."""
    for key, item in value.items():
        # {"$bytes": ...} of the value must not look like a tag
        if type(key) is not str or not key.isascii() or key[:1] == "$":
            return False
        kind = type(item)
        if kind is str:
            quick = len(item) <= _QUICK_CHARS and item.isascii()
        elif kind is int:
            quick = -_SAFE_INT <= item <= _SAFE_INT
        else:
            # no float: 1e21 has many spellings, of which RFC 8785 section 3.2.2.3 chooses one
            quick = item is None or kind is bool
        if not quick:
            return False
    return True


class _TooLarge(Exception):
    """The value needs the hash tree."""


class _Tagger:
    """Makes the tagged JSON data of a value, first as it is, then, if that is too deep or large, as
    a hash tree.
    """

    def tag(self, value: Any) -> JsonLike:
        try:
            return self._walk(value, tree=False)
        except _TooLarge:
            return self._walk(value, tree=True)

    def _walk(self, value: Any, *, tree: bool) -> JsonLike:
        root: list[JsonLike] = []
        stack: list[_Frame] = [_Frame([value], root, None, Kind.SEQUENCE)]
        depth_of: dict[int, int] = {}
        # the hash tree visits a shared container once; the kept reference keeps its id from being
        # reused
        done: dict[int, tuple[Any, JsonLike]] = {}
        nodes = 0
        while not root:
            frame = stack[-1]
            if not frame.pending:
                stack.pop()
                depth_of.pop(id(frame.source), None)
                result = frame.finish()
                if tree:
                    result = _hashed(result)
                    done[id(frame.source)] = (frame.source, result)
                stack[-1].out.append(result)
                continue
            entry, kind = _read(frame.pending.pop())
            nodes += 1
            if not tree:
                _check_size(nodes, len(stack))
            if kind not in CONTAINERS:
                frame.out.append(leaf_tag(entry, kind))
                continue
            depth = depth_of.get(id(entry), 0)
            if depth:
                frame.out.append({"$cycle": len(stack) - depth})
            elif id(entry) in done:
                _source, finished = done[id(entry)]
                frame.out.append(finished)
            else:
                depth_of[id(entry)] = len(stack)
                stack.append(_Frame.open(entry, kind))
        return root[0]


def _check_size(nodes: int, depth: int) -> None:
    if nodes > _TREE_NODES or depth > _TREE_DEPTH:
        raise _TooLarge


def _hashed(tagged: JsonLike) -> JsonLike:
    return {"$tree": hashlib.sha256(rfc8785.dumps(tagged)).hexdigest()}


def _read(value: Any) -> tuple[Any, Kind]:
    """Return a value and its kind; of an enumeration's member its value, as JSON has it."""
    kind = kind_of(value)
    if kind is not Kind.ENUM:
        return value, kind
    shown = object.__getattribute__(value, "_value_")
    return shown, kind_of(shown)


class _Frame:
    """A container under construction; a mapping's keys and values alternate in ``pending`` and
    ``out``.
    """

    __slots__ = ("kind", "out", "pending", "source")

    def __init__(self, pending: list[Any], out: list[JsonLike], source: Any, kind: Kind) -> None:
        self.pending = pending
        self.out = out
        self.source = source
        self.kind = kind

    @classmethod
    def open(cls, source: Any, kind: Kind) -> _Frame:
        return cls(parts_of(source, kind, _NO_LIMIT)[::-1], [], source, kind)

    def finish(self) -> JsonLike:
        if self.kind is Kind.SEQUENCE:
            return self.out
        if self.kind is Kind.SET:
            return {"$set": sorted(self.out, key=rfc8785.dumps)}
        members = self._members()
        if self.kind is Kind.MAPPING:
            return members
        return {"$type": class_name(type(self.source)), "$fields": members}

    def _members(self) -> JsonLike:
        members: dict[str, JsonLike] = {}
        pairs = list(zip(self.out[::2], self.out[1::2], strict=True))
        for key, item in pairs:
            if not isinstance(key, str):
                # {1: "a", "1": "b"}: two keys, which an object of JSON can't keep apart
                pairs.sort(key=_key_bytes)
                return {"$map": [list(pair) for pair in pairs]}
            # a key of the value that begins as a tag does gets one more "$"
            members["$" + key if key[:1] == "$" else key] = item
        return members


def _key_bytes(pair: tuple[JsonLike, JsonLike]) -> bytes:
    return rfc8785.dumps(pair[0])


def leaf_tag(value: Any, kind: Kind) -> JsonLike:
    """Return the tagged form of a value that is no container."""
    try:
        return _leaf(value, kind)
    except Exception:
        return unequal_tag(value)


def _leaf(value: Any, kind: Kind) -> JsonLike:
    if kind is Kind.NONE:
        return None
    if kind is Kind.TEXT:
        return _text(value if type(value) is str else str.__str__(value))
    if kind is Kind.BOOL:
        return bool(value)
    if kind is Kind.INT:
        number = int.__int__(value)
        return number if -_SAFE_INT <= number <= _SAFE_INT else {"$int": hex(number)}
    if kind is Kind.FLOAT:
        real = float.__float__(value)
        return real if isfinite(real) else {"$float": float.__repr__(real)}
    if kind is Kind.BYTES:
        return bytes_tag(value)
    return _tagged_leaf(value, kind)


def _tagged_leaf(value: Any, kind: Kind) -> JsonLike:
    """Return the tag of a leaf that is no JSON: ``{"$uuid": "..."}``."""
    if kind is Kind.SECRET:
        # the secret is part of what runs: it enters the digest, and nothing else
        secret = value.get_secret_value()
        return {"$secret": leaf_tag(secret, kind_of(secret))}
    if kind is Kind.NUMPY_SCALAR:
        return {"$numpy": class_name(type(value)), "$data": bytes_tag(value.tobytes())}
    text = scalar_text(value, kind)
    if text is None:
        return {"$type": class_name(type(value))}
    tag = f"${kind.name.lower()}"
    if isinstance(text, str):
        return {tag: _text(text)}
    return {tag: text}  # a time span in seconds


def _text(text: str) -> JsonLike:
    if len(text) > _LONG_TEXT:
        hasher = hashlib.sha256()
        for start in range(0, len(text), _CHUNK):
            hasher.update(text[start : start + _CHUNK].encode("utf-8", "surrogatepass"))
        return {"$str": {"chars": len(text), "sha256": hasher.hexdigest()}}
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"$str": text.encode("utf-8", "surrogatepass").hex()}
    return text
