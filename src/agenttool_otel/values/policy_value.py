"""What a policy is shown of a value: its JSON form in the names, texts and numbers that rules are
written in.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic import AliasChoices, AliasPath
from pydantic.fields import FieldInfo
from pydantic.networks import AnyUrl
from pydantic_core import MultiHostUrl, Url

from agenttool_otel.values.conversion import Converter, JsonLike, bytes_tag, to_json_value
from agenttool_otel.values.inspection import (
    Kind,
    class_name,
    instance_dict,
    kind_of,
    microseconds,
    plain_fraction,
)
from agenttool_otel.values.numbers import NoJsonNumber, json_number
from agenttool_otel.values.unicode import has_surrogate

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
_MISSING: Final = frozenset({"NaTType", "NAType"})
_NUMPY_TIMES: Final = {"numpy.datetime64": "datetime64[us]", "numpy.timedelta64": "timedelta64[us]"}
_URL_BASES: Final = tuple(cls for cls in AnyUrl.__mro__ if cls is not object)
_names: WeakKeyDictionary[type, dict[str, str]] = WeakKeyDictionary()


def to_policy_value(value: Any) -> JsonLike:
    """Return what a policy is shown of a value: its JSON form, with four differences that matter to
    a decision.

    Whatever is a number is one, see ``values/numbers.py``; what no number of JSON can stand for is
    an ``$error``, because a rule that compares would let it pass. Fields of pydantic models have
    the names that the model-facing JSON Schema has (their aliases), because rules and facts are
    written in terms of it. Addresses (URLs and IP addresses as objects) are their text. A lone
    surrogate is an ``$error``: written as an escape it would look like another text.
    """
    return to_json_value(value, converter=_PolicyConverter)


def decided_form(read: Mapping[str, Any], raw: Mapping[str, JsonLike]) -> dict[str, JsonLike]:
    """Return the JSON form of arguments as they were read: converted, and with the defaults of
    nested models.

    A reader may lower the case of a text, decode it, take it from another key or add what was left
    out. What has no JSON form of its own (a secret, an object of a foreign class) is shown as the
    JSON that it was read from.
    """
    form = to_policy_value(dict(read))
    if not isinstance(form, dict):
        return {"$error": "unreadable"}
    return {name: _shown(value, raw.get(name)) for name, value in form.items()}


def _shown(form: JsonLike, raw: JsonLike) -> JsonLike:
    """Put the JSON of what can only be shown by its type into its place; the depth is that of
    ``to_policy_value``.
    """
    if raw is None:
        return form
    if isinstance(form, dict):
        if form.keys() == {"$type"}:
            return raw
        if form.keys() == {"$bytes"}:
            return raw if _are_bytes_of(form, raw) else form
        if isinstance(raw, dict):
            return {name: _shown(value, raw.get(name)) for name, value in form.items()}
    elif isinstance(form, list) and isinstance(raw, list) and len(form) == len(raw):
        return [_shown(value, part) for value, part in zip(form, raw, strict=True)]
    return form


def _are_bytes_of(form: dict[str, JsonLike], raw: JsonLike) -> bool:
    if not isinstance(raw, str):
        return False
    content = raw.encode("utf-8", "replace")
    return bytes_tag(content) == form


class NotUnicode(ValueError):
    """A text that no encoding has."""


class NumberConverter(Converter):
    """Converts numbers of all classes to numbers, and fails at what is none of JSON's."""

    def _leaf_unguarded(self, value: Any, kind: Kind) -> JsonLike:
        if kind is Kind.INT:
            return json_number(int.__int__(value))
        if kind is Kind.FLOAT:
            return json_number(float.__float__(value))
        if kind is Kind.DECIMAL:
            return json_number(Decimal(value))
        if kind is Kind.FRACTION:
            return json_number(plain_fraction(value))
        if kind is Kind.NUMPY_SCALAR:
            return self._numpy(value)
        if kind is Kind.TIME and timedelta in type.mro(type(value)):
            return self._seconds(value)
        if kind is Kind.OPAQUE and _is_array_of_one(value):
            return self._numpy(value)
        if _is_missing(value):
            raise NoJsonNumber(class_name(type(value)))
        if kind is Kind.OPAQUE and _is_number(value):
            raise NoJsonNumber(class_name(type(value)))
        return super()._leaf_unguarded(value, kind)

    def _numpy(self, value: Any) -> JsonLike:
        unit = _NUMPY_TIMES.get(class_name(type(value)))
        # numpy counts nanoseconds as plain integers
        item = value.astype(unit).item() if unit else value.item()
        if item is None or (unit and type(item) is int):
            raise NoJsonNumber("no time, or one that Python lacks")
        if type(item) is not type(value):
            return self._leaf_unguarded(item, kind_of(item))
        # more digits than a double: numpy.longdouble, or a complex of two
        if not hasattr(item, "as_integer_ratio"):
            return self._leaf_unguarded(complex(item), Kind.COMPLEX)
        if float(item) == item or item != item:
            return json_number(float(item))
        return json_number(Fraction(*item.as_integer_ratio()))

    @staticmethod
    def _seconds(value: Any) -> JsonLike:
        if _is_missing(value):
            raise NoJsonNumber("not a time")
        return json_number(Fraction(microseconds(value), 1_000_000))


class _PolicyConverter(NumberConverter):
    """Converts for ``to_policy_value``."""

    def _items(self, value: Any, kind: Kind) -> list[tuple[Any, Any]]:
        items = super()._items(value, kind)
        if kind not in (Kind.MODEL, Kind.DATACLASS):
            return items
        names = _schema_names(type(value))
        if not names:
            return items
        return [(names.get(name, name), item) for name, item in items]

    def _leaf_unguarded(self, value: Any, kind: Kind) -> JsonLike:
        if kind is Kind.OPAQUE:
            text = _address_text(value)
            if text is not None:
                return self._text(text)
        return super()._leaf_unguarded(value, kind)

    def _plain(self, text: str) -> str:
        if not text.isascii() and has_surrogate(text):
            raise NotUnicode("a lone surrogate has no JSON form of its own")
        return text


def _is_array_of_one(value: Any) -> bool:
    """Return whether a value is a NumPy array without dimensions, which counts like a number."""
    numpy = sys.modules.get("numpy")
    array = getattr(numpy, "ndarray", None)
    if array is None or array not in type.mro(type(value)):
        return False
    dimensions = array.ndim.__get__(value)
    return bool(dimensions == 0)


def _is_missing(value: Any) -> bool:
    """Return whether a value is pandas' ``NaT`` or ``NA``."""
    name = class_name(type(value))
    return name.rpartition(".")[2] in _MISSING


def _is_number(value: Any) -> bool:
    """Return whether a class of a library calls itself a number, such as gmpy2's, mpmath's
    and SymPy's.
    """
    return issubclass(type(value), Number)


def _schema_names(cls: type) -> dict[str, str]:
    """Return the names of fields that a validation schema calls otherwise, by Python name."""
    try:
        known = _names.get(cls)
        if known is None:
            known = _read_names(cls)
            _names[cls] = known
    except Exception:  # a metaclass may make its classes unhashable
        return {}
    return known


def _read_names(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, field in _pydantic_fields(cls).items():
        if not isinstance(field, FieldInfo):
            continue
        alias = _schema_name(field)
        if alias is not None and alias != name:
            found[name] = alias
    return found


def _pydantic_fields(cls: type) -> dict[str, Any]:
    for base in cls.__mro__:
        fields = base.__dict__.get("__pydantic_fields__")
        if type(fields) is dict:
            return fields
    return {}


def _schema_name(field: FieldInfo) -> str | None:
    """Return what pydantic's JSON Schema calls a field: the first of its aliases that is a name."""
    alias = field.validation_alias
    choices: list[Any] = [alias]
    if isinstance(alias, AliasChoices):
        choices = list(alias.choices)
    for choice in choices:
        # AliasPath("user", "name") is a place within, not a name
        if isinstance(choice, AliasPath) and len(choice.path) == 1:
            choice = choice.path[0]
        if isinstance(choice, str):
            return choice
    return None


def _address_text(value: Any) -> str | None:
    """Return the text of a URL or IP address object, ``None`` for everything else.

    Only exact classes of pydantic and the standard library are read: a subclass may answer
    anything.
    """
    cls = type(value)
    if cls in _ADDRESSES:
        return str(value)
    if not class_name(cls).startswith("pydantic.networks."):
        return None
    if not any(base in _URL_BASES for base in cls.__mro__):
        return None
    inner = instance_dict(value).get("_url")
    if type(inner) not in _ADDRESSES:
        return None
    return str(inner)
