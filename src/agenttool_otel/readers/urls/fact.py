"""One URL argument, as a fact."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

import ada_url

from agenttool_otel.readers.types import Surroundings, UrlFact, unestablished
from agenttool_otel.readers.urls.addresses import (
    Address,
    address_class,
    canonical_address,
    hosts_data,
)
from agenttool_otel.readers.urls.credentials import holds_credential
from agenttool_otel.readers.urls.dns import resolved_addresses
from agenttool_otel.readers.urls.hostnames import is_relay, name_class
from agenttool_otel.readers.urls.lookalikes import is_allowed, lookalike_of
from agenttool_otel.readers.urls.readings import (
    BrowserReading,
    authority,
    browser_reading,
    readers_disagree,
)
from agenttool_otel.readers.vocabulary import AddressClass, UrlRejection
from agenttool_otel.values.unicode import has_escaped_surrogate

MAX_URL_CHARS: Final = 16_384
"""Longer texts are rejected; servers and proxies take 8 KiB at most by default."""

_MAX_HOST_CHARS: Final = 253
_MAX_PARAMETERS: Final = 1000


_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SPACE: Final = re.compile(r"\s")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:", re.ASCII)
_DOTTED: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,10}[A-Za-z]{2,63}"
_QUAD: Final = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_REST: Final = r"(?::[0-9]{1,5})?(?:[/?#]\S*)?"
_BARE_HOST: Final = re.compile(rf"(?:{_DOTTED}|localhost|{_QUAD}){_REST}", re.ASCII)
"""A host name or address, perhaps with port and path, and no scheme in front."""

_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}", re.ASCII)
_USER_NAME: Final = r"(?:[\w-]{1,63}\.)+[a-z][a-z0-9-]{1,62}(?![a-z0-9.-])"
_USER_QUAD: Final = r"(?<![0-9.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9.])"
_HOST_IN_USER: Final = re.compile(
    rf"{_USER_NAME}|{_USER_QUAD}|\[[0-9a-f:.]{{2,45}}\]|\blocalhost\b"
)
_INNER_URL: Final = re.compile(r"(?i)(?:https?|wss?|ftp):[/\\]{2,4}([^/\\?#&\s]{1,253})")
_LINE_END: Final = re.compile(r"(?i)%(?:25)*0[0ad]")
_MAX_INNER_URLS: Final = 16
_PUBLIC: Final = frozenset({AddressClass.PUBLIC, AddressClass.NAME})
_NEEDS_HOST: Final = frozenset({"http", "https", "ws", "wss", "ftp"})


def url_fact(
    value: object,
    argument: str = "",
    surroundings: Surroundings | None = None,
    *,
    inferred: bool = False,
) -> UrlFact:
    """Return what a URL means; never raises, and takes bounded time on any value.

    With ``Surroundings.resolve_dns`` it waits for the resolver, at most ``dns_timeout`` seconds; an
    event loop should then call it in a thread.

    Args:
        value: the URL, or a host name with or without port and path.
        argument: the JSON pointer of the URL, which the fact repeats.
        surroundings: the allowed hosts, and whether and how names are resolved.
        inferred: whether no declaration names this text as a URL; the fact repeats it.

    Returns:
        What is uncertain is dangerous: ``valid`` is false, with the reason in ``rejected``, for
        what is no usable URL; ``certain`` is false where a browser and other clients would go to
        different hosts, where the URL leads on to another, or where its name could not be
        resolved.
    """
    env = surroundings or Surroundings()
    fact: UrlFact = unestablished("url", argument, inferred=inferred)
    try:
        _establish(value, fact, env)
    except Exception:  # a fact that fails must look dangerous, not stop the decision
        fact.update(
            {
                "valid": False,
                "rejected": UrlRejection.INTERNAL.value,
                "certain": False,
                "allowed_host": False,
            }
        )
    return fact


def _rejection(text: str) -> UrlRejection | None:
    if not text:
        return UrlRejection.EMPTY
    if len(text) > MAX_URL_CHARS:
        return UrlRejection.TOO_LONG
    if _CONTROL.search(text):
        return UrlRejection.CONTROL
    if _SPACE.search(text):
        return UrlRejection.SPACE
    if has_escaped_surrogate(text):
        return UrlRejection.SURROGATE
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return UrlRejection.SURROGATE
    return None if _SCHEME.match(text) else UrlRejection.NO_SCHEME


def _establish(value: Any, fact: UrlFact, env: Surroundings) -> None:
    if not isinstance(value, str):
        fact["rejected"] = UrlRejection.NOT_TEXT.value
        return
    text = str.__str__(value)
    if len(text) <= MAX_URL_CHARS and _BARE_HOST.fullmatch(text):
        text = f"https://{text}"  # as browsers and most clients read a host without a scheme
    rejected = _rejection(text)
    browser = None
    if rejected not in (UrlRejection.EMPTY, UrlRejection.TOO_LONG):
        browser = browser_reading(text)
    if browser is None or len(browser.host) > _MAX_HOST_CHARS + 2:
        fact["rejected"] = (rejected or UrlRejection.MALFORMED).value
        return
    _describe(browser, text, fact, env)
    rejected = rejected or _host_rejection(browser, fact)
    if rejected is not None:
        fact["rejected"] = rejected.value
        return
    fact["valid"] = True
    fact["certain"] = not fact["disagreement"] and bool(fact["host"]) and not _leads_on(browser)
    if env.resolve_dns and fact["host"]:
        _resolve(fact, env)


def _host_rejection(browser: BrowserReading, fact: UrlFact) -> UrlRejection | None:
    if not fact["host"]:
        return UrlRejection.NO_HOST if browser.scheme in _NEEDS_HOST else None
    if fact["address"] is None and not _is_host(fact["host"]):
        return UrlRejection.MALFORMED
    return None


def _describe(
    browser: BrowserReading,
    text: str,
    fact: UrlFact,
    env: Surroundings,
) -> None:
    host = browser.host.lower().removesuffix(".")
    if browser.special or host.startswith("["):
        address = canonical_address(host)
    else:
        address = _number(host)
    if address is not None:
        host = str(address)
    fact["scheme"] = browser.scheme
    fact["host"] = host
    fact["host_unicode"] = host if address is not None else _unicode_host(host)
    fact["port"] = hosts_data()["default_ports"].get(browser.scheme)
    if browser.port:
        fact["port"] = int(browser.port)
    fact["path"] = browser.path
    _describe_secrets(browser, text, host, fact)
    fact["relay"] = is_relay(host, browser.path)
    fact["disagreement"] = readers_disagree(text, browser)
    if host:
        fact["address_class"] = _class_of(host).value
        fact["allowed_host"] = is_allowed(host, env.allowed_hosts)
    if address is not None:
        fact["address"] = host
    elif host:
        fact["lookalike"] = lookalike_of(host, fact["host_unicode"], env.allowed_hosts)
    if "@" in authority(text) and fact["lookalike"] is None:
        fact["lookalike"] = _host_as_user(text)


def _describe_secrets(
    browser: BrowserReading,
    text: str,
    host: str,
    fact: UrlFact,
) -> None:
    """Note what a URL holds that is a credential by its place, its name or its shape."""
    sent = _given_parameters(browser.query)
    given = sent | _given_parameters(browser.fragment)
    rest = unquote(unquote(f"{browser.path}?{browser.query}#{browser.fragment}"))
    fact["credentials"] = (
        "@" in authority(text)
        or not sent.isdisjoint(_parameters("credential_query"))
        or holds_credential(f"{host.replace('.', ' ')} {rest}")
    )
    fact["sensitive_query"] = any(map(_is_sensitive_parameter, given))


def _is_sensitive_parameter(name: str) -> bool:
    if name in _parameters("sensitive_query"):
        return True
    return name.endswith(_SECRET_ENDINGS)


_SECRET_ENDINGS: Final = ("token", "secret", "password", "signature", "apikey", "credential")


def _host_as_user(text: str) -> str | None:
    """Return the host that user information pretends to be, as in
    ``https://docs.python.org@evil.example/``.
    """
    user = unquote(authority(text).rpartition("@")[0][: 2 * _MAX_HOST_CHARS])
    match = _HOST_IN_USER.search(unicodedata.normalize("NFKC", user).lower())
    return match[0] if match else None


def _class_of(host: str) -> AddressClass:
    address = canonical_address(host)
    return name_class(host) if address is None else address_class(address)


def _number(host: str) -> Address | None:
    """Return the address that a host of a scheme unknown to browsers spells, in any of the C
    library's ways.
    """
    if not host:
        return None
    reading = browser_reading(f"http://{host}/")
    if reading is None:
        return None
    return canonical_address(reading.host)


def _is_host(host: str) -> bool:
    # Browsers let through what no name service has (``{a,b}``, ``*``, ``;``): shells and proxies
    # read it their own way.
    if len(host) > _MAX_HOST_CHARS:
        return False
    return all(_LABEL.fullmatch(label) for label in host.split("."))


def _unicode_host(host: str) -> str:
    if "xn--" not in host or len(host) > _MAX_HOST_CHARS:
        return host
    return str(ada_url.idna_to_unicode(host)) or host


@cache
def _parameters(kind: str) -> frozenset[str]:
    return frozenset(hosts_data()[kind])


def _given_parameters(query: str) -> set[str]:
    """Return the names of the parameters that a query or fragment gives a value, in letters and
    digits alone.
    """
    names: set[str] = set()
    for pair in re.split("[?&;#]", query, maxsplit=_MAX_PARAMETERS):
        name, _, value = pair.partition("=")
        if value:
            names.add(re.sub("[^a-z0-9]", "", unquote_plus(name).lower()))
    if query.count("&") + query.count(";") >= _MAX_PARAMETERS:
        names.add("token")  # the rest was not looked at
    return names


def _leads_on(browser: BrowserReading) -> bool:
    """Return whether the path ends a line of the request, or the query names an inner host, as for
    an open redirect.
    """
    if _LINE_END.search(browser.path) is not None:
        return True
    hosts = _INNER_URL.findall(unquote_plus(browser.query))
    if len(hosts) > _MAX_INNER_URLS:
        return True
    for host in hosts:
        reading = browser_reading(f"http://{host}/")
        if reading is not None and _class_of(reading.host) not in _PUBLIC:
            return True
    return False


def _resolve(fact: UrlFact, env: Surroundings) -> None:
    if fact["address"] is not None:
        fact["resolved"] = [{"address": fact["address"], "address_class": fact["address_class"]}]
        return
    fact["resolved"] = resolved_addresses(fact["host"], fact["port"] or 0, env)
    # A host that could not be resolved now may be resolvable, to anything, when the tool runs.
    fact["certain"] = fact["certain"] and bool(fact["resolved"])
