"""What agent_context refuses: a text in a list's place would be read letter by letter, and ``/`` be
a root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ConfigurationError, Governor, agent_context


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"roots": "/tmp/ws"}, r"roots=\['/tmp/ws'\]"),
        ({"roots": b"/tmp/ws"}, "list"),
        ({"roots": Path("/tmp/ws")}, r'roots=\["/tmp/ws"\]'),
        ({"roots": 5}, "int"),
        ({"roots": {"/tmp": 1}}, "list"),
        ({"roots": [5]}, "int"),
        ({"roots": [""]}, "empty"),
        ({"cwd": ""}, "empty"),
        ({"cwd": 5}, "int"),
        ({"roles": "writer"}, r"roles=\['writer'\]"),
        ({"roles": [None]}, "NoneType"),
        ({"user_text": 5}, "int"),
        ({"user_text": b"hello"}, "list"),
        ({"actor": 5}, "actor"),
        ({"tenant": object()}, "tenant"),
        ({"session_id": 7}, "session_id"),
        ({"mode": True}, "mode"),
        ({"interactive": "no"}, "True or False"),
        ({"labels": ["freeze"]}, "labels"),
        ({"evaluation": "pass"}, "evaluation"),
    ],
)
def test_what_is_of_another_type_is_refused_with_what_to_write(
    stated: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told), agent_context(**stated):
        pass


def test_lists_tuples_sets_and_paths_are_taken(tmp_path: Path) -> None:
    with agent_context(
        roots=(tmp_path,), cwd=tmp_path, roles=["writer"], user_text=("a", "b"), actor="x"
    ) as context:
        assert (context.roots, context.cwd) == ((str(tmp_path),), str(tmp_path))
        assert (context.roles, context.user_text) == (("writer",), ("a", "b"))


@pytest.mark.parametrize(
    "stated", [{"roots": "/tmp/ws"}, {"roles": "writer"}, {"allowed_hosts": "example.org"}]
)
def test_a_setting_that_is_a_list_is_no_text_either(stated: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="has to be a list"):
        Governor(**stated)
