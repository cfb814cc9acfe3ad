from __future__ import annotations

import pytest

from agenttool_otel.coding_agents.patches import paths_of_patch
from agenttool_otel.errors import PayloadInvalid


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def test_every_header_gives_its_path() -> None:
    text = patch(
        "*** Add File: new.txt",
        "+*** Delete File: a line of the new file",
        "*** Update File: a b.md",
        "*** Move to: ../c.md",
        "@@",
        "-old",
        "+new",
        "*** Delete File: gone.txt",
    )
    assert paths_of_patch(text) == (["new.txt", "a b.md", "../c.md"], ["gone.txt"])


def test_a_header_that_is_indented_gives_its_path_too() -> None:
    text = patch("*** Add File: a", "+x", " *** Delete File: b")
    assert paths_of_patch(text) == (["a"], ["b"])


def test_a_rule_of_a_text_is_no_header() -> None:
    assert paths_of_patch(patch("*** Update File: a.md", "@@", " ***", "-x", "+y")) == (
        ["a.md"],
        [],
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "*** Add File: a",
        patch(),
        patch("@@", "+x"),
        patch("*** Add File: "),
        patch("*** add file: a"),
        patch("*** Add File: a", "*** Rename File: b"),
        patch("*** Add File: a\u00a0"),
        patch("*** Add File: a\u2028b"),
        patch("*** Add File: a\rb"),
        f"*** Begin Patch\n{patch('*** Add File: a')}\nrm",
    ],
)
def test_what_is_not_understood_is_refused(text: object) -> None:
    with pytest.raises(PayloadInvalid):
        paths_of_patch(text)
