"""The profiles that there are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agenttool_otel.enforcement.types import Profile, ProfileName

_READ: Final = Profile(ProfileName.READ)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        ProfileName.READ: _READ,
    }
)
"""Profiles by name."""
