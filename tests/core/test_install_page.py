"""docs/install.md against pyproject.toml: the extras and their number."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_the_page_lists_each_extra_once() -> None:
    table = PAGE.partition("| extra |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `([a-z0-9-]+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(EXTRAS)


def test_the_page_has_the_number_of_extras() -> None:
    assert re.findall(r"(\d+) extras", PAGE) == [str(len(EXTRAS))]


def test_the_page_installs_extras_that_there_are() -> None:
    installed = re.findall(r'pip install "\.\[([a-z,-]+)\]"', PAGE)
    assert installed
    assert all(extra in EXTRAS for names in installed for extra in names.split(","))
