"""A place where a credential stands, without a name and a delimiter right before it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One place where a credential stands.

    Attributes:
        id: stable name; several patterns may share it. It is part of what redactions state.
        keywords: literals in lower case, one of which occurs in every match.
        pattern: RE2; group 1 is what is removed. Where ``named`` is set, group 1 is the name of
            what group 2 or 3 holds.
        kind: what is removed, of low cardinality.
        prefilter: RE2; what a text holds where a match could stand. It takes the place of the
            keywords in the first look at a text where these are everyday words. Empty: the keywords.
        likely: whether the value has to look machine-made, because other words stand there, too.
        mixed: whether the value needs letters and digits, or letters that do not read like words.
        named: whether group 1 is a name, whose class decides how the value has to look.
        decoded: whether the value is base64, and what it decodes to has to fit.
    """

    id: str
    keywords: tuple[str, ...]
    pattern: str
    kind: str = "password"
    prefilter: str = ""
    likely: bool = False
    mixed: bool = False
    named: bool = False
    decoded: bool = False
