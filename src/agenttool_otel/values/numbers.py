"""Numbers of Python as numbers of JSON, so that whatever a rule compares comes out as for the
number itself.

A rule's engine holds a number as a double or as an integer. An integer stays what it is. Any other
number is the double whose text it is: ``Decimal("12.50")`` is ``12.5``. Where there is no such
double, it lies between two neighbouring ones, and becomes the one with more digits. So it is never
equal to a limit that a rule has, and it is on the same side of it:
``Decimal("100.00000000000000000001") > 100`` stays true. That holds for every limit of at most 15
significant digits; a limit of 16 or 17 may be found equal to the number next to it.
"""

from __future__ import annotations

import sys
from decimal import Context, Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter
from typing import Final

_MAX_EXPONENT: Final = sys.float_info.max_10_exp
_MIN_EXPONENT: Final = -400  # below the smallest double, of 5e-324
_SMALLEST: Final = 5e-324
_OWN: Final = Context(prec=30)  # a program may have set its own to anything


class NoJsonNumber(ValueError):
    """A value is a number, and no number of JSON can stand for it: infinite, undefined or
    too large.
    """


def json_number(value: int | float | Decimal | Fraction) -> int | float:
    """Return the JSON number of a number.

    Args:
        value: the number, of exactly one of these classes.

    Raises:
        NoJsonNumber: it is infinite, not a number, or larger than any double.
    """
    if type(value) is int:
        return _integer(value)
    if type(value) is float:
        if not isfinite(value):
            raise NoJsonNumber(repr(value))
        return value
    if isinstance(value, Decimal):
        return _decimal(value)
    return _fraction(Fraction(value))


def _integer(value: int) -> int:
    try:
        float(value)
    except OverflowError:
        raise NoJsonNumber("an integer larger than any double") from None
    return value


def _decimal(value: Decimal) -> int | float:
    if not value.is_finite():
        raise NoJsonNumber(str(value).lower())
    if value.is_zero():
        return 0
    if value.adjusted() > _MAX_EXPONENT:  # Decimal("1e999999") as an integer would fill the memory
        raise NoJsonNumber("a number larger than any double")
    if value.adjusted() < _MIN_EXPONENT:
        return -_SMALLEST if value.is_signed() else _SMALLEST
    if value == value.to_integral_value():
        return _integer(int(value))
    return _between(float(value), value)


def _fraction(value: Fraction) -> int | float:
    if value.denominator == 1:
        return _integer(value.numerator)
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        raise NoJsonNumber("a number larger than any double") from None
    return _between(nearest, value)


def _between(nearest: float, value: Decimal | Fraction) -> float:
    """Return the double whose text a number is, else that of its two neighbours that is not written
    by hand.
    """
    if not isfinite(nearest):
        raise NoJsonNumber("a number larger than any double")
    shown = type(value)(repr(nearest))
    if shown == value:
        return nearest
    other = nextafter(nearest, inf if shown < value else -inf)
    if nearest == 0:
        return other
    if not isfinite(other) or _digits(nearest) >= _digits(other):
        return nearest
    return other


def _digits(value: float) -> int:
    """Count the significant digits of a double's shortest text."""
    return len(_OWN.normalize(Decimal(repr(value))).as_tuple().digits)
