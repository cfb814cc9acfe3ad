"""A signed statement of what files of records hold: in-toto's form, in a DSSE envelope."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.chain import ChainBroken, Reading, files_of, read_lines
from agenttool_otel.evidence.record import ANSWER, OBJECT
from agenttool_otel.records.base import JsonObject

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:agenttool:decision-records:1"
"""Identifies what the predicate holds."""


def statement(paths: Iterable[Path], key: bytes) -> JsonObject:
    """Return the statement of some files, whose chain is checked for it.

    Args:
        paths: the files; what was rotated away from one belongs to it.
        key: of the records' words.

    Raises:
        ChainBroken: a line was changed or taken out.
        ConfigurationError: a file can't be read.
    """
    files = files_of(paths)
    reading = Reading()
    behaviors: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    times: list[str] = []
    for line in read_lines(files, key, reading):
        times.append(line["time"])
        if line["object"] == OBJECT:
            behaviors[line["record"]["decision"]["behavior"]] += 1
        elif line["object"] == ANSWER:
            answers[line["record"]["answer"]] += 1
    return {
        "_type": STATEMENT_TYPE,
        "subject": [_subject(file) for file in files],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "from": min(times, default=None),
            "until": max(times, default=None),
            "lines": reading.lines,
            "lost": reading.lost,
            "decisions": dict(sorted(behaviors.items())),
            "answers": dict(sorted(answers.items())),
            "heads": dict(sorted(reading.heads.items())),
        },
    }


def _subject(file: Path) -> JsonObject:
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}") from None
    return {"name": file.name, "digest": {"sha256": digest}}


def _signed_bytes(payload: bytes) -> bytes:
    """Return what a signature is over: DSSE's encoding, which the type is a part of."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def sign(stated: JsonObject, private_key: bytes) -> JsonObject:
    """Return a statement in a signed envelope.

    Args:
        stated: the statement.
        private_key: an Ed25519 key, as PEM.

    Raises:
        ConfigurationError: it is no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key: Any = load_pem_private_key(private_key, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError("the signing key is no Ed25519 key in PEM without a password")
    payload = json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()
    signature = key.sign(_signed_bytes(payload))
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"sig": base64.b64encode(signature).decode()}],
    }


def verified(envelope: Any, public_key: bytes) -> Any:
    """Return the statement of an envelope, if one of its signatures is made by a key.

    Args:
        envelope: the envelope, as plain data.
        public_key: the Ed25519 key, as PEM.

    Raises:
        ConfigurationError: it is no such key.
        ChainBroken: it is no such envelope, or none of its signatures is made by the key.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key: Any = load_pem_public_key(public_key)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigurationError("the verification key is no Ed25519 key in PEM")
    try:
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(each["sig"]) for each in envelope["signatures"]]
    except (KeyError, TypeError, ValueError):
        raise ChainBroken("this is no signed statement") from None
    for signature in signatures:
        try:
            key.verify(signature, _signed_bytes(payload))
        except InvalidSignature:
            continue
        return json.loads(payload)
    raise ChainBroken("no signature of the statement is made by this key")


def check(envelope: Any, public_key: bytes, paths: Iterable[Path], key: bytes) -> JsonObject:
    """Check that files are what a statement says, byte by byte, and return the statement.

    Args:
        envelope: the signed envelope.
        public_key: the key that it was signed with, as PEM.
        paths: the files.
        key: of the records' words.

    Raises:
        ChainBroken: the signature, or a file, is another one.
        ConfigurationError: a key or a file can't be used.
    """
    stated = verified(envelope, public_key)
    found = statement(paths, key)
    if stated != found:
        raise ChainBroken("the files are not those of the statement")
    return found
