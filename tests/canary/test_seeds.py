"""The texts of the canary test, with many seeds: there each runs with one."""

from __future__ import annotations

import pytest
from canaries import Canaries

from agenttool_otel.redaction import default_redactor


@pytest.mark.slow
def test_texts_with_every_canary_keep_none_of_them() -> None:
    redactor = default_redactor()
    for seed in range(300):
        canaries = Canaries(seed)
        text = canaries.every("text")
        for redacted in (
            redactor.redact_text(text),
            redactor.redact({"note": text}),
            redactor.redact_text(repr([text])),
        ):
            assert canaries.found_in("redacted", str(redacted.value)) == []
