"""What every record shares: unknown fields are kept, nothing is dropped, times are UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    main,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_wrap_validator_function

from agenttool_otel.names import SCHEMA_VERSION
from agenttool_otel.values.ids import new_id

JsonValue = Any
"""Any JSON value; records don't restrict what the standard leaves open."""

JsonObject = dict[str, Any]
"""A JSON object of the standard whose members it does not fix."""


def utc_now() -> datetime:
    """Return the current time in UTC, the only time zone that records use."""
    return datetime.now(UTC)


def utc_of(nanoseconds: int) -> datetime:
    """Return a point in time in UTC.

    Args:
        nanoseconds: since 1970, as of ``time.time_ns``.
    """
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)


def _to_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_LOCKED: Final = hasattr(main, "_rebuild_lock")
"""Whether pydantic builds models at their first use without a race: half of them are never used."""


class _Open:
    """Marks a vocabulary that the standard leaves open: foreign words are read, kept and
    given back.
    """

    def __get_pydantic_core_schema__(
        self, source: type[StrEnum], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def read(value: Any, known: Callable[[Any], Any]) -> Any:
            try:
                return known(value)
            except ValueError:
                if type(value) is not str:
                    raise
                # {"status": "paused"} of another producer: a member that the class does not list
                word = str.__new__(source, value)
                word._name_ = word._value_ = value
                return word

        return no_info_wrap_validator_function(read, handler(source))


OPEN: Final = _Open()
"""Annotation of a field whose words the standard does not fix; what this package writes comes from
the vocabulary.
"""

Timestamp = Annotated[datetime, AfterValidator(_to_utc)]
"""A point in time; a value without a zone is read as UTC, and JSON shows RFC 3339 with ``Z``."""


def id_field(prefix: str) -> Any:
    """Return a field with a new sortable id as its default: ``evt_0197...``."""
    return Field(default_factory=partial(new_id, prefix))


class Part(BaseModel):
    """Base of what records are made of; unknown fields are kept."""

    model_config = ConfigDict(extra="allow", ser_json_inf_nan="strings", defer_build=_LOCKED)


class Record(Part):
    """Base of the standard's records ("Version compatibility": tolerate unknown fields, keep them).

    Attributes:
        schema_version: version of the standard that the record follows.
    """

    schema_version: str = Field(default=SCHEMA_VERSION)

    _as_read: bool = PrivateAttr(default=False)

    def to_json_object(self) -> JsonObject:
        """Return the record as plain JSON data, without unset fields; a record that was read as it
        was read.
        """
        if self._as_read:
            return self.model_dump(mode="json", exclude_unset=True)
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_json_object(cls, data: JsonObject) -> Self:
        """Build the record from plain JSON data; unknown fields are kept."""
        record = cls.model_validate(data)
        record._as_read = True
        return record
