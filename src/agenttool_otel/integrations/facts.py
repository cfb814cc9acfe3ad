"""Facts of tools that somebody else wrote: stated beside the program, by name or glob."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ConfigurationError

__all__ = ["options_for", "read_facts"]


def options_for(facts: Mapping[str, GovernOptions], name: str) -> GovernOptions:
    """Return the facts stated of a tool: by its name, else by the first glob that matches.

    Args:
        facts: facts by name or glob.
        name: the tool's name.
    """
    if name in facts:
        return facts[name]
    return next((stated for pattern, stated in facts.items() if fnmatchcase(name, pattern)), GovernOptions())


def read_facts(path: str) -> Mapping[str, GovernOptions]:
    """Read a JSON file of facts by tool name or glob.

    Args:
        path: the file; empty for none.

    Raises:
        ConfigurationError: it can't be read, or is no object of objects; the message names the file.
    """
    if not path:
        return {}
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the facts of tools in {path} can't be read: {type(error).__name__}") from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"the facts of tools in {path} are no JSON: {error.msg} in line {error.lineno}"
        ) from None
    except (ValueError, RecursionError) as error:  # bytes that are no UTF-8
        raise ConfigurationError(f"the facts of tools in {path} can't be read: {type(error).__name__}") from None
    if not isinstance(data, dict) or not all(isinstance(entry, dict) for entry in data.values()):
        raise ConfigurationError(
            f'the facts of tools in {path} have to be an object of objects, by tool name or glob: {{"read_*": {{...}}}}'
        )
    return cast(Mapping[str, GovernOptions], data)
