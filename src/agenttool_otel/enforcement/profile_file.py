"""The file with profiles of one's own: read whole, or refused whole."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from agenttool_otel.enforcement.own import OwnProfile, define_profiles
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import SandboxProfile

_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
_MOST: Final = 64


def use_profile_file(file: str) -> None:
    """Make the profiles of a file known to this process.

    Args:
        file: a JSON object of profiles by name.

    Raises:
        ConfigurationError: the file can't be read, or a profile in it is none.
    """
    define_profiles(read_profiles(file))


def read_profiles(file: str) -> dict[str, OwnProfile]:
    """Return the profiles of a file, by name.

    Args:
        file: a JSON object of profiles by name.

    Raises:
        ConfigurationError: the file can't be read, or a profile in it is none.
    """
    try:
        text = Path(file).read_bytes()
    except OSError as error:
        raise _unusable(file, type(error).__name__) from None
    try:
        profiles = _reader().validate_json(text)
    except ValidationError as error:
        # not its text: that quotes what is in the file
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = first["msg"]
        if place:
            message = f"{place}: {message}"
        raise _unusable(file, message) from None
    for name, profile in profiles.items():
        _check(file, name, profile)
    return profiles


@cache
def _reader() -> TypeAdapter[dict[str, OwnProfile]]:
    some: Any = Annotated[dict[_Name, OwnProfile], Field(max_length=_MOST)]
    return TypeAdapter(some)


def _check(file: str, name: str, profile: OwnProfile) -> None:
    for place in profile.masked:
        # "~/notes" would be another place for each user, and "notes" for each directory
        if not place.is_absolute():
            raise _unusable(file, f"{name}.masked: absolute places")
        if os.path.normpath(place) == "/":
            raise _unusable(file, f"{name}.masked: not / itself")
    for limit, value in profile.limits.items():
        if not value > 0:
            raise _unusable(file, f"{name}.limits.{limit}: more than 0")
    on_layer = profile.base is not SandboxProfile.READ
    counted = profile.limits.processes is not None
    if on_layer and counted:
        raise _unusable(file, f"{name}.limits.processes: they are not counted on a layer")


def _unusable(file: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"the profiles in {file} can't be used: {why}")
