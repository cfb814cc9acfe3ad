"""The places of policies that settings name: each loaded once, or watched, with one key, one token and
one set of certificates for all of them.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.policy.bundles.bundle import Bundle, data_bundle
from agenttool_otel.policy.bundles.bundle_signature import BundleVerification, VerificationKey
from agenttool_otel.policy.bundles.load import Token, is_url, load_bundle
from agenttool_otel.policy.bundles.source import BundleSource, ReloadResult
from agenttool_otel.policy.http import Endpoint

_KEY_ID = "settings"


class Opened(NamedTuple):
    """A bundle, and what watches its place."""

    bundle: Bundle  # what was found there
    source: BundleSource | None  # ``None`` where nothing is watched


class Places:
    """Opens places by the settings.

    Args:
        settings: the settings.
        on_reload: called with what became of each change.
        given: bundles and places that code names, beside those of the settings.

    Raises:
        ConfigurationError: the key, the token or the certificates can't be used, or are for nothing.
    """

    def __init__(
        self,
        settings: Settings,
        on_reload: Callable[[ReloadResult], None],
        given: Sequence[object],
    ) -> None:
        named = (*given, settings.policy_bundle, settings.policy_extension, settings.shadow_policy)
        places = [place for place in named if place]
        self.sources: list[BundleSource] = []
        self.verification = _verification(settings, places)
        self._reload = settings.policy_reload
        self._on_reload = on_reload
        urls = [place for place in places if isinstance(place, str) and is_url(place)]
        self._token, self._tls = _access(settings, urls)

    def open(self, place: str | Path) -> Opened:
        """Open a bundle that somebody named; with a key it has to be signed."""
        if self._reload <= 0:
            bundle = load_bundle(
                place, verification=self.verification, token=self._token, tls=self._tls
            )
            return Opened(bundle, None)
        source = BundleSource(
            place,
            verification=self.verification,
            token=self._token,
            tls=self._tls,
            on_reload=self._on_reload,
        )
        return self._watched(source)

    def open_data(self, place: str) -> Opened:
        """Open a data file."""
        if self._reload <= 0:
            return Opened(data_bundle(Path(place)), None)
        return self._watched(BundleSource(place, on_reload=self._on_reload, load=data_bundle))

    def watch(self) -> None:
        """Look at each place again and again, from now on."""
        for source in self.sources:
            source.watch(self._reload)

    def _watched(self, source: BundleSource) -> Opened:
        self.sources.append(source)
        return Opened(source.bundle, source)


def _verification(settings: Settings, places: list[object]) -> BundleVerification | None:
    if not settings.policy_key_file:
        return None
    if not places:
        raise ConfigurationError(
            f"{_variable('policy_key_file')} is stated, and no policy that it could verify: the stock "
            "bundle is part of the package"
        )
    try:
        text = Path(settings.policy_key_file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable("policy_key_file", error) from None
    # whatever "kid" a signature names: the operator has named the one key
    key = VerificationKey(text, settings.policy_algorithm)
    return BundleVerification({_KEY_ID: key}, key_id=_KEY_ID)


def _access(settings: Settings, urls: list[str]) -> tuple[Token, ssl.SSLContext | None]:
    """Return the token and the TLS settings for the URLs."""
    token: Token = None
    if settings.policy_token_file:
        _check_one_server(urls)
        # nothing else of this module needs what connects to an OPA
        from agenttool_otel.policy.engines.opa_address import TokenSource

        token = TokenSource(None, settings.policy_token_file).get
    if not settings.policy_ca_file:
        return token, None
    if not any(url.startswith("https://") for url in urls):
        raise ConfigurationError(
            f"{_variable('policy_ca_file')} is stated, and no policy has an https URL"
        )
    try:
        return token, ssl.create_default_context(cafile=settings.policy_ca_file)
    except (OSError, ssl.SSLError) as error:
        raise _unusable("policy_ca_file", error) from None


def _check_one_server(urls: list[str]) -> None:
    """Refuse a token that two servers would get, or none."""
    servers = {str(Endpoint.parse(url)[0]) for url in urls}
    if len(servers) != 1:
        found = ", ".join(sorted(servers)) or "no policy has a URL"
        raise ConfigurationError(f"{_variable('policy_token_file')} is for one server: {found}")


def _unusable(name: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"{_variable(name)} can't be used: {type(error).__name__}")


def _variable(name: str) -> str:
    return Settings.variables()[name]
