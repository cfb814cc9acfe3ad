"""Check that every link of the Markdown pages leads to a file that is there, and to a heading that
it has, and that no page of the site links to a file outside of `docs/`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as the site and GitHub make them.

    Args:
        page: its Markdown.
    """
    found = _HEADING.findall(re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL))
    return {
        re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in found
    }


def problems(page: Path) -> list[str]:
    """Return what is wrong with the links of a page.

    Args:
        page: the page.
    """
    found = []
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue  # other hosts are not asked
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            found.append(f"{page.relative_to(ROOT)}: {link} is not there")
        elif page.is_relative_to(DOCS) and not target.is_relative_to(DOCS):
            # `../examples/subject.mjs` is there in a checkout; the built site has no such file
            found.append(f"{page.relative_to(ROOT)}: {link} is outside of the site")
        elif (
            anchor
            and target.suffix == ".md"
            and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            found.append(f"{page.relative_to(ROOT)}: {link}: there is no such heading")
    return found


def main() -> int:
    """Print each broken link."""
    found = [problem for page in sorted(PAGES) for problem in problems(page)]
    print("\n".join(found) or f"the links of {len(PAGES)} pages lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
