"""Write the described schema of the policy input, and docs/policy-input.md, from the contract's
types and comments.

What a member is stands beside it in the code: a comment behind it, or the comment lines above it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
import types
from pathlib import Path
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from agenttool_otel.policy.types import PolicyInput
from agenttool_otel.values.words import OneOf

ROOT: Final = Path(__file__).resolve().parent.parent
SCHEMA: Final = ROOT / "policies" / "schemas" / "input.json"
SHOWN_TYPES: Final = ROOT / "tools" / "shown_types.toml"
PAGE: Final = ROOT / "docs" / "policy-input.md"
HEAD: Final = """# What a policy is given

Made by `make docs` from the types of the contract (policy/types.py, facts/types.py); the same words are in
`policies/schemas/input.json`, which editors and `opa check --schema` read. With `--show-input`, `agenttool permissions
check` prints the input of a call of yours, ready for `agenttool policy explain`. A rule that reads a member that is not
here is refused when it is loaded.
"""
TYPES: Final = """
## What arguments look like

Rego compares values of all types: null is below booleans, they are below numbers, those below texts, and texts below
arrays and objects. So a rule `input.input.amount < 0` does not hold for an amount that is a text. Whatever is a number
in Python is one here, by whichever door it came, and inside other values too:

| in Python | for a rule | example |
|---|---|---|
"""
_MEMBER: Final = re.compile(r"^    (\w+): [^#\n]+?(?:  # (.+))?$")


_PRIMITIVES: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
}


def schema_of(annotation: Any) -> dict[str, Any]:
    """Return the JSON Schema of one annotation of the contract, inlined: OPA's type checker reads a
    subset of it.

    Args:
        annotation: a type; pydantic refuses ``typing.TypedDict`` below Python 3.12.
    """
    if annotation is Any:
        return {}
    if annotation in _PRIMITIVES:
        return dict(_PRIMITIVES[annotation])
    if is_typeddict(annotation):
        hints = get_type_hints(annotation, include_extras=True)
        schema: dict[str, Any] = {
            "type": "object",
            "title": annotation.__name__,
            "properties": {name: schema_of(hint) for name, hint in hints.items()},
            "required": sorted(annotation.__required_keys__),
            "additionalProperties": False,
        }
        if annotation.__doc__:
            schema["description"] = " ".join(annotation.__doc__.replace("`", "").split())
        return schema
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return {**schema_of(args[0]), **_words(args[1])}
    if origin is list:
        return {"type": "array", "items": schema_of(args[0])}
    if origin is dict and args[0] is str:
        # OPA takes an object schema with neither properties nor constraints for "any object"
        return (
            {"type": "object"}
            if args[1] is Any
            else {"type": "object", "additionalProperties": schema_of(args[1])}
        )
    if origin in (Union, types.UnionType):
        # anyOf, not a list of types: OPA's checker would take only the first of a list
        return {"anyOf": [schema_of(arg) for arg in args]}
    raise TypeError(f"no JSON Schema for {annotation!r}")


def _words(words: OneOf) -> dict[str, Any]:
    # an open vocabulary: others may state words of their own, so these are examples
    return {"examples" if words.open else "enum": words.listed()}


def comments(kind: type) -> dict[str, str]:
    """Return what the source says of each member of a TypedDict.

    Args:
        kind: the type.
    """
    source = inspect.getsource(kind)
    named = re.findall(
        r"\w+", source.partition("(")[2].partition(")")[0]
    )  # before Python 3.12 no class tells its bases
    bases = (vars(sys.modules[kind.__module__]).get(name) for name in named)
    found = {
        name: text for base in bases if is_typeddict(base) for name, text in comments(base).items()
    }
    above: list[str] = []
    for line in source.splitlines():
        member = _MEMBER.match(line)
        if member:
            found[member[1]] = member[2] or " ".join(above)
        above = [*above, line.strip("# ")] if line.startswith("    #") else []
    return found


def kinds() -> list[type]:
    """Return the TypedDicts of the input, in the order in which they are met."""
    waiting: list[Any] = [PolicyInput]
    found: list[type] = []
    while waiting:
        kind = waiting.pop(0)
        if is_typeddict(kind) and kind not in found:
            found.append(kind)
            waiting += get_type_hints(kind).values()
        waiting += get_args(kind)
    return found


def shown_types() -> list[dict[str, Any]]:
    """Return the rows of shown_types.toml: what a rule is shown of each class of value."""
    rows: list[dict[str, Any]] = tomllib.loads(SHOWN_TYPES.read_text("utf-8"))["row"]
    return rows


def _table_of_types() -> str:
    lines = []
    for row in shown_types():
        shown = f"`{row['shown']}`" if row["shown"] else "refused"
        lines.append(f"| {row['of']} | {row['json']} | `{row['example']}`: {shown} |")
    return TYPES + "\n".join(lines) + "\n"


def described() -> dict[str, Any]:
    """Return the schema with a description of every member."""
    descriptions = {kind.__name__: comments(kind) for kind in kinds()}
    draft = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:agenttool-otel:policy-input:0.2.0",
    }
    schema = {**draft, **schema_of(PolicyInput)}
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for name, member in node.get("properties", {}).items():
                node["properties"][name] = {
                    **member,
                    "description": descriptions[node["title"]][name],
                }
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    types = "; ".join(f"{row['of']}: {row['json']}" for row in shown_types()).replace("`", "")
    for name in ("input", "resources"):
        schema["properties"][name]["description"] += f". {types}"
    return schema


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(branch) for branch in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("title") or schema.get("type") or "any")


def page() -> str:
    """Return the page."""
    schema = described()
    for name in ("input", "resources"):  # the table below says it
        schema["properties"][name]["description"] = (
            comments(PolicyInput)[name] + " (see the types below)"
        )
    parts, waiting, seen = [HEAD], [("input", schema)], set[str]()
    while waiting:
        path, node = waiting.pop(0)
        for branch in node.get("anyOf", (node,)):
            inner = branch
            while inner.get("type") == "array":
                path, inner = f"{path}[_]", inner["items"]
            if "properties" not in inner and isinstance(inner.get("additionalProperties"), dict):
                path, inner = f"{path}[pointer]", inner["additionalProperties"]
            if "properties" not in inner or inner["title"] in seen:
                continue
            seen.add(inner["title"])
            rows = [
                f"| `{name}` | {_type(member)} | {member['description'].replace('|', chr(92) + '|')} |"
                for name, member in inner["properties"].items()
            ]
            parts.append(
                f"\n## `{path}`\n\n| member | type | what it is |\n|---|---|---|\n"
                + "\n".join(rows)
                + "\n"
            )
            waiting += [(f"{path}.{name}", member) for name, member in inner["properties"].items()]
    return "".join([*parts, _table_of_types()])


def main() -> int:
    """Write both."""
    lacking = [
        f"{kind.__name__}.{name}"
        for kind in kinds()
        for name, text in comments(kind).items()
        if not text
    ]
    if lacking:
        print("no comment says what this is:", ", ".join(lacking), file=sys.stderr)
        return 1
    SCHEMA.write_text(
        json.dumps(described(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
