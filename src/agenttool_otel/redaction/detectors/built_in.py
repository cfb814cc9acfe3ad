"""What a built-in detector states about itself, and how it is found by its name.

The module of a detector is named as the detector is, and holds a ``DETECTOR``. To add one: its
module in this folder, its name in ``types.ALL_DETECTORS``, and its labelled rows in
``tests/redaction``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from agenttool_otel.redaction.types import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A built-in detector.

    Attributes:
        find: takes a text as UTF-8 bytes and the same bytes in lower case, returns spans.
        shapes: RE2, without regard to case; every text in which ``find`` could find something
            matches one of them. Empty: the shapes of ``prefilter`` cover it.
        between_words: whether a text of one word or path (letters, digits, and ``_``, ``.``, ``/``
            and ``-`` between them) holds nothing for it, because it needs white space or another
            sign.
    """

    find: Callable[[bytes, bytes], Iterable[Span]]
    shapes: tuple[str, ...] = ()
    between_words: bool = False


def built_in(name: str) -> BuiltIn:
    """The detector of a name.

    Args:
        name: one of ``types.ALL_DETECTORS``.

    Raises:
        ModuleNotFoundError: there is no such detector.
    """
    module = import_module(f"agenttool_otel.redaction.detectors.{name}")
    detector: BuiltIn = module.DETECTOR
    return detector
