"""Detectors of other projects behind this package's small protocol; each needs its extra and is imported when built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from agenttool_otel.redaction.types import Span

__all__ = ["DetectSecretsDetector", "PresidioDetector"]

_LINE_LIMIT: Final = 8192
_PRESIDIO_KINDS: Final = {
    "CREDIT_CARD": "payment_card",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "IBAN_CODE": "iban",
}


class DetectSecretsDetector:
    """Plugins of detect-secrets (extra ``detect-secrets``).

    The plugins are called directly: detect-secrets' own scanning functions read settings from a global that is emptied
    when its context is collected, and then find nothing, silently.
    """

    name = "detect_secrets"

    def __init__(self, plugins: Sequence[Any] | None = None) -> None:
        """Choose plugins.

        Args:
            plugins: plugin objects; all vendor formats (no entropy and no keyword plugins, which flag nearly
                everything) where None.

        Raises:
            ImportError: the extra isn't installed.
        """
        if plugins is None:
            from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

            left_out = {"Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "IPPublicDetector"}
            # the library is untyped on some installations and half typed on others
            types = list(cast("Any", get_mapping_from_secret_type_to_class)().values())
            classes: dict[str, Any] = {kind.__name__: kind for kind in types}
            plugins = [classes[name]() for name in sorted(classes) if name not in left_out]
        self._plugins = tuple(plugins)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of what the plugins report, line by line."""
        at = 0
        for line in data.splitlines(keepends=True):
            if len(line) <= _LINE_LIMIT:
                text = line.decode("utf-8", "replace")
                for plugin in self._plugins:
                    for secret in plugin.analyze_string(text):
                        raw = str(secret).encode("utf-8", "surrogatepass")
                        start = line.find(raw) if raw else -1
                        while start >= 0:
                            kind = type(plugin).__name__
                            yield Span(at + start, at + start + len(raw), "detect_secrets", f"detect_secrets:{kind}")
                            start = line.find(raw, start + len(raw))
            at += len(line)


class PresidioDetector:
    """Pattern recognisers of Presidio (extra ``presidio``); no language model is loaded.

    Its e-mail and URL recognisers are left out by default: they fetch a list of domains from the network at first
    use, and this package finds e-mail addresses itself.
    """

    name = "presidio"

    def __init__(self, recognizers: Sequence[Any] | None = None, *, threshold: float = 0.4) -> None:
        """Choose recognisers.

        Args:
            recognizers: ``PatternRecognizer`` objects; Presidio's for cards, IBANs, crypto addresses and national
                identifiers where None.
            threshold: least score that counts, 0 to 1.

        Raises:
            ImportError: the extra isn't installed.
        """
        if recognizers is None:
            import presidio_analyzer.predefined_recognizers as known

            names = (
                "CreditCardRecognizer", "IbanRecognizer", "CryptoRecognizer", "UsSsnRecognizer", "UsItinRecognizer",
                "UsPassportRecognizer", "UkNinoRecognizer", "NhsRecognizer", "EsNifRecognizer",
                "ItFiscalCodeRecognizer",
                "PlPeselRecognizer", "SgFinRecognizer", "AuTfnRecognizer", "AuMedicareRecognizer", "InPanRecognizer",
                "InAadhaarRecognizer", "FiPersonalIdentityCodeRecognizer",
            )  # fmt: skip
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
