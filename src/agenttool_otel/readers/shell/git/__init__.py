"""Whether git only reads in a repository: its layout, its configuration, and where its
parts lie.
"""

from agenttool_otel.readers.shell.git.repository import (
    compares_files,
    names_of_repository,
    unsafe_repository,
)

__all__ = [
    "compares_files",
    "names_of_repository",
    "unsafe_repository",
]
