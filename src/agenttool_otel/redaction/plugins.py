"""Detectors of other projects behind this package's small protocol; each needs its extra, imported
when it is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from agenttool_otel.redaction.types import Span

_PRESIDIO_KINDS: Final = {
    "CREDIT_CARD": "payment_card",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "IBAN_CODE": "iban",
}


class PresidioDetector:
    """Pattern recognisers of Presidio (extra ``presidio``); no language model is loaded.

    Its e-mail and URL recognisers are left out by default: they fetch a list of domains from the
    network at first use, and this package finds e-mail addresses itself.
    """

    name = "presidio"

    def __init__(self, recognizers: Sequence[Any] | None = None, *, threshold: float = 0.4) -> None:
        """Choose recognisers."""
        if recognizers is None:
            import presidio_analyzer.predefined_recognizers as known

            names = (
                "CreditCardRecognizer",
                "IbanRecognizer",
                "CryptoRecognizer",
                "UsSsnRecognizer",
                "UsItinRecognizer",
                "UsPassportRecognizer",
                "UkNinoRecognizer",
                "NhsRecognizer",
                "EsNifRecognizer",
                "ItFiscalCodeRecognizer",
                "PlPeselRecognizer",
                "SgFinRecognizer",
                "AuTfnRecognizer",
                "AuMedicareRecognizer",
                "InPanRecognizer",
                "InAadhaarRecognizer",
                "FiPersonalIdentityCodeRecognizer",
            )
            recognizers = [getattr(known, name)() for name in names if hasattr(known, name)]
        self._recognizers = tuple(recognizers)
        self._threshold = threshold

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of what the recognisers report at or above the threshold."""
        text = data.decode("utf-8", "replace")
        plain = text.isascii()
        for recognizer in self._recognizers:
            for result in recognizer.analyze(text, recognizer.supported_entities, None) or ():
                if result.score < self._threshold:
                    continue
                start, end = result.start, result.end
                if not plain:
                    start, end = len(text[:start].encode()), len(text[:end].encode())
                kind = _PRESIDIO_KINDS.get(result.entity_type, "national_id")
                yield Span(start, end, kind, "presidio:" + result.entity_type.lower())
