"""What all tests share: property tests without time limits per example, and repeatable where they
decide a landing.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("local", deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.load_profile("ci" if os.environ.get("CI") else "local")
