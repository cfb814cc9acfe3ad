"""What is known of classes of pydantic and the standard library: names of fields in schemas, texts of addresses."""

from __future__ import annotations

import ipaddress
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic import AliasChoices, AliasPath
from pydantic.fields import FieldInfo
from pydantic.networks import AnyUrl
from pydantic_core import MultiHostUrl, Url

from agenttool_otel.records.inspection import class_name, instance_dict

__all__ = ["address_text", "schema_names"]

_ADDRESSES: Final[frozenset[type]] = frozenset(
    {
        Url,
        MultiHostUrl,
        ipaddress.IPv4Address,
        ipaddress.IPv6Address,
        ipaddress.IPv4Network,
        ipaddress.IPv6Network,
        ipaddress.IPv4Interface,
        ipaddress.IPv6Interface,
    }
)
_URL_BASES: Final = tuple(cls for cls in AnyUrl.__mro__ if cls is not object)
_names: WeakKeyDictionary[type, dict[str, str]] = WeakKeyDictionary()


def schema_names(cls: type) -> dict[str, str]:
    """Return the names of fields that a validation schema calls otherwise, by Python name.

    Args:
        cls: a class; only pydantic models and pydantic dataclasses have such names.
    """
    try:
        known = _names.get(cls)
        if known is None:
            known = _names[cls] = _read_names(cls)
    except Exception:  # a metaclass may make its classes unhashable
        return {}
    return known


def _read_names(cls: type) -> dict[str, str]:
    fields = next((f for base in cls.__mro__ if type(f := base.__dict__.get("__pydantic_fields__")) is dict), {})
    found: dict[str, str] = {}
    for name, field in fields.items():
        alias = field.validation_alias if isinstance(field, FieldInfo) else None
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        for choice in choices:  # as pydantic's JSON Schema: the first that is one name
            first = choice.path[0] if isinstance(choice, AliasPath) and len(choice.path) == 1 else choice
            if isinstance(first, str):
                found[name] = first
                break
    return {name: alias for name, alias in found.items() if alias != name}


def address_text(value: Any) -> str | None:
    """Return the text of a URL or IP address object, ``None`` for everything else.

    Only exact classes of pydantic and the standard library are read: a subclass may answer anything.

    Args:
        value: any object.
    """
    cls = type(value)
    if cls in _ADDRESSES:
        return str(value)
    if any(base in _URL_BASES for base in cls.__mro__) and class_name(cls).startswith("pydantic.networks."):
        inner = instance_dict(value).get("_url")
        return str(inner) if type(inner) in _ADDRESSES else None
    return None
