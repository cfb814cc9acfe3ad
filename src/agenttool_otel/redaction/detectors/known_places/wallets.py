"""Keys of wallets."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    QUOTE,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

KEY_OWNERS: Final = (
    "(?:priv(?:ate)?_?key|deployer|signer|minter|relayer|wallet|account|eth|evm|owner"
    "|operator|admin|faucet)"
)
KEY_NAMES: Final = (
    r"\w*_pk|pk|sk|from_?key|importkey|privatekeytoaccount|startbroadcast|new wallet"
    r"|ethers\.wallet|private key"
)
KEY_PAIR_WORDS: Final = r"(?:keypair|secret|private|solana|wallet|id\.json|uint8array)"
NUMBERED_KEYS: Final = (
    r"(?:[ \t]*\(?\d{1,3}[).:]{0,2}[ \t]+(?:0x)?[0-9a-f]{64}[ \t]*(?:\r?\n|\z)){1,10}"
)

STATEMENTS: Final = (
    Statement(
        # new ethers.Wallet("0x...", provider)
        id="wallet_key",
        keywords=("wallet(",),
        pattern=(r"(?i)\bwallet\(\s*" + QUOTE + "(?:0x)?([0-9a-f]{64})" + QUOTE),
        kind="private_key",
    ),
    Statement(
        # root key xprv...
        id="wallet_key",
        keywords=("privkey", "(wif)", "xprv"),
        pattern=(
            r"(?i)(?:\bprivkey\b[^\r\n:]{0,10}:\s?|\(wif\)\s?:\s?|\bx(?:prv))([A-Za-z0-9]{40,120})"
            r"\b"
        ),
        kind="private_key",
    ),
    Statement(
        # Private Key: 0x...
        id="wallet_key",
        keywords=("0x",),
        pattern=(
            r"(?i)\b(?:\w*"
            + KEY_OWNERS
            + r"\w*_?(?:key|pk|secret|priv)|"
            + KEY_NAMES
            + r")[\"'\])]{0,3}(?:\s{0,3}(?:=|:|=>|\(|,)|[ \t]+)\s{0,3}"
            + QUOTE
            + r"?(0x[0-9a-f]{64})\b"
        ),
        kind="private_key",
    ),
    Statement(
        id="wallet_key",
        keywords=("keypair", "secret", "private", "solana", "wallet", "id.json", "uint8array"),
        prefilter=r"\[\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*,",
        pattern=(
            "(?i)"
            + KEY_PAIR_WORDS
            + r"[^\[\]]{0,120}\[\s*((?:\d{1,3}\s*,\s*){31}(?:(?:\d{1,3}\s*,\s*){32})?\d{1,3})"
            r"\s*,?\s*\]"
        ),
        kind="private_key",
    ),
    Statement(
        id="wallet_key",
        keywords=(",",),
        prefilter=r"\[\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*,",
        pattern=r"\A\s*\[\s*((?:\d{1,3}\s*,\s*){63}\d{1,3})\s*\]\s*\z",
        kind="private_key",
    ),
    Statement(
        # Private Keys\n(0) ...
        id="wallet_key",
        keywords=("private keys",),
        pattern=(
            r"(?i)\bprivate keys\b[^\r\n]{0,60}\r?\n(?:[-= \t]*\r?\n){0,2}(" + NUMBERED_KEYS + ")"
        ),
        kind="private_key",
    ),
)
