"""Break the package in one place, in this process alone, so that a test can show that it notices.

``python tools/mutants.py ID -- ARGUMENTS`` runs ``python ARGUMENTS`` with one mutant of a rows file
in force: ``python tools/mutants.py denied-body-runs -- -m agenttool_otel.conformance``. No file
is changed, so that several mutants can be tried at once.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "agenttool_otel"
SOURCE: Final = ROOT / "src" / PACKAGE


_ENVELOPES: Final = {
    "tool_result": "ToolResult",
    "tool_permission_decision": "PermissionDecision",
}
"""Objects that a caller is given too, and by whose ``to_json_object``: content of results and
decisions reaches no sink.
"""


@dataclass(frozen=True)
class LineMutant:
    """Text of a source file that another text stands for.

    Attributes:
        file: path below ``src/agenttool_otel``.
        old: the text; it occurs once in the file.
        new: what stands in its place.
    """

    file: str
    old: str
    new: str

    def problem(self) -> str:
        """Return why the mutant can't be made; nothing if it can."""
        path = SOURCE / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        found = path.read_text(encoding="utf-8").count(self.old)
        if found != 1:
            return f"{self.file} has the text {found} times: {self.old!r}"
        if self.old == self.new:
            return f"old and new are the same in {self.file}"
        return ""

    def install(self) -> None:
        """Let the next import of the module read the changed text.

        Raises:
            ValueError: the mutant can't be made, or the package is imported already.
        """
        problem = self.problem()
        if problem:
            raise ValueError(problem)
        if PACKAGE in sys.modules:
            raise ValueError(f"{PACKAGE} is imported already")
        sys.meta_path.insert(0, _Finder(self))


@dataclass(frozen=True)
class RecordMutant:
    """Records that lack a field, or have another word in it, where they are given to sinks, and where
    the caller of a call is given them.

    Attributes:
        object: the standard's name of the record's kind, such as ``tool_result``.
        field: the field; a point leads into a nested object, ``[]`` into each entry of a list
            (``status_transitions[].status``), ``*`` into each member of an object.
        word: the word that is replaced; every value is removed where it is empty.
        replacement: what stands in place of the word.
    """

    object: str
    field: str
    word: str = ""
    replacement: str = "mutant"

    def problem(self) -> str:
        """Return nothing: such a mutant can always be made."""
        return ""

    def install(self) -> None:
        """Change what sinks and callers are given from now on."""
        self._change_sinks()
        if self.object in _ENVELOPES:
            self._change_envelopes(_ENVELOPES[self.object])

    def _change_sinks(self) -> None:
        from agenttool_otel.telemetry.sinks import Sink

        number = Sink.lines_of

        def lines(sink: Sink, entries: Any) -> list[dict[str, Any]]:
            made = number(sink, entries)
            for line in made:
                if line["object"] == self.object:
                    self._change(line["record"], self.field)
            return made

        Sink.lines_of = lines  # type: ignore[method-assign]

    def _change_envelopes(self, name: str) -> None:
        from agenttool_otel import records

        record = getattr(records, name)
        build = record.to_json_object

        def to_json_object(made: Any) -> dict[str, Any]:
            shown: dict[str, Any] = build(made)
            self._change(shown, self.field)
            return shown

        record.to_json_object = to_json_object

    def _change(self, record: Any, field: str) -> None:
        if not isinstance(record, dict):
            return
        name, _, rest = field.partition(".")
        if name == "*":
            for member in record.values():
                self._change(member, rest)
        elif name.endswith("[]"):
            self._change_entries(record.get(name.removesuffix("[]")), rest)
        elif rest:
            self._change(record.get(name), rest)
        elif not self.word:
            record.pop(name, None)
        elif record.get(name) == self.word:
            record[name] = self.replacement

    def _change_entries(self, entries: Any, field: str) -> None:
        for place, entry in enumerate(entries or ()):
            if field:
                self._change(entry, field)
            elif entry == self.word:
                entries[place] = self.replacement


Mutant: TypeAlias = LineMutant | RecordMutant


class _Loader(SourceFileLoader):
    """Reads one file of the package with the mutant's text."""

    def __init__(self, fullname: str, path: str, mutant: LineMutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_data(self, path: str) -> bytes:
        text = super().get_data(path).decode()
        return text.replace(self._mutant.old, self._mutant.new).encode()

    def path_stats(self, path: str) -> Any:
        # without times Python neither reads nor writes compiled code of the file
        raise OSError("a mutant is not cached")


class _Finder(MetaPathFinder):
    """Finds the one module that is changed, and leaves the others to Python."""

    def __init__(self, mutant: LineMutant) -> None:
        self._mutant = mutant
        self._path = SOURCE / mutant.file

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGE):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() != self._path:
            return None
        spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


def main(arguments: list[str], find: Callable[[str], Mutant]) -> None:
    """Install a mutant, then run Python with the arguments behind ``--``.

    Args:
        arguments: the mutant's id, ``--``, then ``-m MODULE`` or a script, and its arguments.
        find: returns the mutant of an id.
    """
    find(arguments[0]).install()
    command = arguments[arguments.index("--") + 1 :]
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    from requirements import mutant_of

    main(sys.argv[1:], mutant_of)
