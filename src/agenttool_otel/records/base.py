"""What every record shares: unknown fields are kept, nothing is dropped, times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agenttool_otel.names import SCHEMA_VERSION

JsonValue = Any
"""Any JSON value; records don't restrict what the standard leaves open."""

JsonObject = dict[str, Any]
"""A JSON object of the standard whose members it does not fix."""


def utc_now() -> datetime:
    """Return the current time in UTC, the only time zone that records use."""
    return datetime.now(UTC)


def _to_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Timestamp = Annotated[datetime, AfterValidator(_to_utc)]
"""A point in time; a value without a zone is read as UTC, and JSON shows RFC 3339 with ``Z``."""


class Record(BaseModel):
    """Base of the standard's records ("Version compatibility": tolerate unknown fields, keep them).

    Attributes:
        schema_version: version of the standard that the record follows.
    """

    model_config = ConfigDict(extra="allow", validate_assignment=False, ser_json_inf_nan="strings")

    schema_version: str = Field(default=SCHEMA_VERSION)

    def to_json_object(self) -> JsonObject:
        """Return the record as plain JSON data, without the fields that are not set."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_json_object(cls, data: JsonObject) -> Self:
        """Build the record from plain JSON data; unknown fields are kept."""
        return cls.model_validate(data)
