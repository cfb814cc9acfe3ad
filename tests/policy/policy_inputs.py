"""Policy inputs for tests: a complete default document made from the contract's types, and
hypothesis strategies.
"""

from __future__ import annotations

import copy
import types
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from hypothesis import strategies as st

from agenttool_otel.policy.types import PolicyInput

WORDS = {
    "risk_level": ["low", "medium", "high", "critical"],
    "access_kinds": [
        "file_read",
        "file_write",
        "network",
        "browser",
        "credential",
        "payment",
        "external_send",
    ],
    "write_effects": ["none", "local_draft", "local_persistent", "remote_mutation", "irreversible"],
    "mode": ["default", "plan", "strict"],
    "context": ["stated", "none", "lost"],
    "kind": ["agent", "user", "service", "unknown", "function", "shell_command", "file_operation"],
    "roles": ["reader", "writer", "admin"],
    "tenant": ["acme", "other"],
    "status": ["approved", "rejected", "expired", "pass", "fail", "not_ready"],
    "access": ["read", "write", "unknown"],
    "sandboxes": ["read", "rehearse", "write"],
    "scope": ["thread", "command", "none"],
    "behavior": ["allow", "ask", "deny"],
    "address_class": ["name", "public", "loopback", "private", "link_local", "metadata"],
    "lifecycle": ["available", "deprecated", "disabled"],
    "ownership": ["managed", "mcp", "custom"],
    "sensitive": ["key", "credential", "dotfile"],
    "host": ["docs.example.com", "evil.example", "localhost"],
    "scheme": ["https", "http", "file"],
    "name": ["read_file", "delete_all", "fetch", "sh"],
    "namespace": ["local.files", "net", ""],
}


def required(annotation: Any, name: str) -> bool:
    """Whether each document has the member: facts have effects in a second decision alone."""
    return name in annotation.__required_keys__


def default_of(annotation: Any) -> Any:
    """The emptiest value of a type of the contract."""
    if is_typeddict(annotation):
        hints = get_type_hints(annotation)
        return {name: default_of(hints[name]) for name in hints if required(annotation, name)}
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return None if type(None) in get_args(annotation) else default_of(get_args(annotation)[0])
    return {str: "", int: 0, bool: False, list: [], dict: {}}[origin or annotation]


_BASE: Any = default_of(PolicyInput)
_BASE["schema_version"] = "0.2.0"
_BASE["time"] = "2026-11-21T10:00:00Z"
_BASE["invocation"].update(id="inv_1", attempt=1)
_BASE["tool"].update(
    id="local.files.read_file", namespace="local.files", name="read_file", kind="file_operation"
)
_BASE["tool"].update(lifecycle="available", ownership="custom", read_only=True)
_BASE["permission_profile"].update(
    risk_level="low", access_kinds=["file_read"], write_effects=["none"]
)
_BASE["actor"].update(id="agent:a", kind="agent", roles=["reader"], tenant="acme")
_BASE["session"].update(id="s-1", context="stated", mode="default", interactive=True, roots=["/w"])


def make_document(changes: dict[str, Any] | None = None, **top: Any) -> Any:
    """A valid document; ``changes`` maps dotted paths to values."""
    document = copy.deepcopy(_BASE)
    for path, value in (changes or {}).items():
        target = document
        *parents, last = path.split(".")
        for part in parents:
            target = target[part]
        target[last] = value
    document.update(top)
    return document


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def strategy_of(annotation: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Values of a type of the contract; strings mostly out of the words that policies
    compare with.
    """
    if annotation is Any:
        return JSON
    if is_typeddict(annotation):
        members = {key: strategy_of(hint, key) for key, hint in get_type_hints(annotation).items()}
        always = {key: members[key] for key in members if required(annotation, key)}
        sometimes = {key: members[key] for key in members if key not in always}
        return st.fixed_dictionaries(always, optional=sometimes)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return st.one_of([strategy_of(arg, name) for arg in args])
    if origin is list:
        return st.lists(strategy_of(args[0], name), max_size=2)
    if origin is dict:
        return st.dictionaries(
            st.sampled_from(["/path", "k", "x"]) | TEXT, strategy_of(args[1]), max_size=2
        )
    if annotation is str:
        return (
            st.sampled_from(WORDS[name])
            if name in WORDS
            else st.sampled_from(["", "a", "/etc/x", "x.y"]) | TEXT
        )
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(0, 3) | st.integers(0, 10**6)
    return st.none()


def documents() -> st.SearchStrategy[Any]:
    """Valid documents of every kind."""
    arguments = st.dictionaries(
        st.sampled_from(["path", "url", "command", "amount"]) | TEXT, JSON, max_size=3
    )
    hints = get_type_hints(PolicyInput)
    parts = {
        key: strategy_of(hint, key) for key, hint in hints.items() if key not in ("input", "time")
    }
    return st.fixed_dictionaries(
        {**parts, "input": arguments, "time": st.just("2026-11-21T10:00:00Z")}
    )
