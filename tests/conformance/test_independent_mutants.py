"""The runner notices mutants of the package by someone who had not read the scenarios.

The slow tests try a few, drawn by a seed; ``python tools/independent_mutants.py`` tries all.
"""

from __future__ import annotations

import ast
import os
import random

import pytest
from independent_mutants import IndependentMutant, examine_mutant, independent_mutants
from mutants import SOURCE

ALL = independent_mutants()
SEED = int(os.environ.get("AGENTTOOL_MUTANTS_SEED", "28"))
DRAWN = random.Random(SEED).sample(ALL, 8)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.id)
def test_an_independent_mutant_can_be_made(mutant: IndependentMutant) -> None:
    assert mutant.change.problem() == ""
    text = (SOURCE / mutant.change.file).read_text(encoding="utf-8")
    ast.parse(text.replace(mutant.change.old, mutant.change.new))


def test_there_are_forty_mutants_of_different_names() -> None:
    assert len({mutant.id for mutant in ALL}) == len(ALL) == 40


@pytest.mark.slow
@pytest.mark.parametrize("mutant", DRAWN, ids=lambda mutant: mutant.id)
def test_the_runner_notices_a_drawn_mutant(mutant: IndependentMutant) -> None:
    assert examine_mutant(mutant).standard != [], f"not noticed: {mutant.breaks}"
