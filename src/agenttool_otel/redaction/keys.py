"""What a key's name says about its value.

``{"password": "hunter2"}`` and ``PIN: 4921`` hold secrets that no value rule can see. Names are split into words
(``nextPageToken``: next, page, token), and the head word decides together with the words before it: ``api_key`` is a
credential, ``primary_key`` isn't; ``access_token`` is, ``max_tokens`` and ``next_page_token`` aren't; ``secret_name``
only names one. Substrings never decide: ``secretary``, ``monkey``, ``author``.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import lru_cache
from typing import Final

__all__ = ["SERVICES", "KeyClass", "classify", "is_service", "kind_of_key", "normal_name"]


class KeyClass(Enum):
    """How strongly a name speaks for a secret."""

    NONE = "none"
    PASSWORD = "password"  # noqa: S105  (a class of names, not a password)
    """Any value is secret, however short or plain."""
    TOKEN = "token"  # noqa: S105
    """A credential made by a machine; numbers that count tokens are not."""
    WEAK = "weak"
    """Could hold a credential (``auth``, ``credentials``): only values that look machine-made count."""
    SERVICE = "service"
    """Names a service that hands out keys; only values that look machine-made count."""
    HEADER = "header"
    """An HTTP header that carries credentials: scheme and value."""
    COOKIE = "cookie"
    CODE = "code"
    """A PIN, one-time code or card verification code: short digits."""
    PHRASE = "phrase"
    """A wallet's recovery phrase: many words."""
    PERSONAL = "personal"
    """A number of a card, account or person: digits and letters."""


_SPLIT: Final = re.compile(r"[^A-Za-z0-9\u00c0-\u024f]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PASSWORD: Final = frozenset(
    """password passwords passwd passwds passwort kennwort pwd pwds psw pswd passphrase passphrases passcode passcodes
    userpassword dbpassword rootpassword adminpassword pgpassword mysqlpassword contrasena contraseña senha motdepasse mdp
    wachtwoord parola heslo haslo passkey keyphrase secretphrase pass pw userpass dbpass passw psswd pasword passwrd
    sshpass""".split()
)
_SECRET: Final = frozenset("secret secrets secretkey clientsecret appsecret privatekey sharedsecret".split())
_TOKEN: Final = frozenset(
    """token apikey apikeys accesskey authkey authtoken accesstoken refreshtoken idtoken bearer jwt bearertoken sessiontoken
    sastoken apitoken secrettoken csrftoken xsrftoken sessionkey masterkey signingkey encryptionkey apisecret licensekey
    sshkey deploykey storagekey accountkey subscriptionkey serviceaccountkey webhooksecret patoken pat appkey""".split()
)
_KEY_BEFORE: Final = frozenset(
    """api access secret private signing encryption decryption encrypt master account auth authentication app application
    service session shared storage subscription license licence admin deploy webhook hmac aes crypto symmetric ssh rsa
    root wallet vault server sas functions function host consumer product activation ingest integration personal
    user""".split()
)
_KEY_NOT: Final = frozenset("public pub primary foreign partition sort row cache idempotency hash event".split())
_NOT_TOKENS: Final = frozenset(
    """next page continuation cursor sync pagination resume start end max min num n total prompt completion input output
    special eos bos pad unk mask cls sep stop first last previous prev idempotency authenticity count cached reasoning
    per non not lexer syntax design placeholder skip batch scroll before after delta change watch nonmatching offset
    nextpage pagetoken""".split()
)
_TAILS: Final = frozenset(
    """confirm confirmation confirmed again repeat repeated verify old new current value val text plain plaintext str
    string raw encrypted encoded base64 b64 input field data enc prod production dev staging test live main default
    primary secondary""".split()
)
_LINKS: Final = frozenset("for of to from in by with on at is".split())
_CODES: Final = frozenset(
    """pin pincode otp totp hotp cvv cvc cvv2 cvc2 csc otpcode pinnumber mfacode twofactorcode verificationcode
    securitycode onetimecode smscode authcode passcode backupcode recoverycode tan""".split()
)
_PHRASES: Final = frozenset(
    """mnemonic mnemonics mnemonicphrase seedphrase seedwords recoveryphrase recoverywords backupphrase walletseed
    secretrecoveryphrase walletphrase walletmnemonic bip39""".split()
)
_PERSONAL: Final = frozenset(
    """ssn socialsecuritynumber socialsecurityno socialinsurancenumber nationalid nationalidnumber nationalinsurancenumber
    passportnumber passportno creditcard creditcardnumber cardnumber ccnumber ccnum cardno primaryaccountnumber pan iban
    taxid taxpayerid bankaccountnumber bankaccount accountnumber routingnumber driverslicense driverslicensenumber
    driverlicense nino aadhaar aadhar cpf pesel bsn dni personnummer steuerid codicefiscale""".split()
)
_HEADERS: Final = frozenset(
    """authorization proxyauthorization xauthorization httpauthorization authheader authorizationheader xamzsecuritytoken
    xapikey xauthtoken xaccesstoken xgithubtoken xgitlabtoken xvaulttoken xcsrftoken xxsrftoken ocpapimsubscriptionkey
    xfunctionskey xgoogapikey xsessiontoken xusertoken privatetoken jobtoken apikeyheader authtokenheader
    xtoken xauthkey xamzcredential xamzsignature""".split()
)
_WEAK: Final = frozenset("auth credential credentials creds cred login signature sig sessioncookie".split())
_SERVICE_TAILS: Final = frozenset(
    """token key secret id api login client access auth app bot sid account user licence license webhook sdk dsn
    oauth service master read write private consumer""".split()
)
SERVICES: Final = frozenset(
    """adafruit adobe airtable algolia alibaba aliyun amplitude anthropic artifactory asana atlassian authress azure beamer
    bitbucket bitly bittrex braintree braze buildkite chargebee circleci clickhouse clojars cloudflare codecov cohere
    coinbase confluence confluent contentful cypress databricks datadog deepseek digitalocean discord doppler dockerhub
    droneci dropbox duffel dynatrace easypost elastic elevenlabs etsy facebook fastly figma finicity finnhub flickr
    flutterwave flyio frameio freshbooks freshdesk gemini gitter gocardless gradio groq harness heroku honeycomb hubspot
    huggingface infobip infracost instagram intercom ipinfo ipstack jfrog jira jumpcloud klaviyo kraken kucoin langfuse
    langsmith launchdarkly line linear linkedin lob logdna loggly looker mailchimp mailgun mailjet mandrill mapbox
    mattermost maxmind meraki messagebird mistral mixpanel monday netlify newrelic ngrok notion npm nytimes octopus okta
    onesignal openai openweathermap opsgenie pagerduty paypal paystack perplexity pinecone plaid planetscale plivo
    postman posthog prefect pubnub pulumi pusher pypi rapidapi razorpay readme recaptcha replicate rollbar rubygems
    salesforce scalingo segment sendbird sendgrid sendinblue sentry shippo shodan shopify slack snowflake snyk sonar
    sonarqube sourcegraph sparkpost spotify square squarespace stripe sumo sumologic supabase tailscale telegram
    terraform travis travisci trello twilio twitch twitter typeform unsplash vercel virustotal vonage wakatime
    webex xendit yandex zendesk zoho zoom""".split()
)
"""Services that hand out keys: ``zendesk_token`` and ``SONAR.LOGIN`` speak for a credential in whatever form."""
_COMPACT: Final = (
    ("password", KeyClass.PASSWORD), ("passwd", KeyClass.PASSWORD), ("passphrase", KeyClass.PASSWORD),
    ("secretkey", KeyClass.TOKEN), ("apikey", KeyClass.TOKEN), ("privatekey", KeyClass.TOKEN),
    ("accesskey", KeyClass.TOKEN), ("clientsecret", KeyClass.TOKEN), ("secret", KeyClass.TOKEN),
    ("token", KeyClass.TOKEN),
)  # fmt: skip
_NEGATIONS: Final = frozenset("non not nonmatching".split())


def normal_name(name: str) -> str:
    """A name without case and separators, for comparing whole names."""
    return re.sub(r"[^a-z0-9\u00c0-\u024f]", "", name.lower())


def _words(name: str) -> list[str]:
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
    return [word.lower() for word in _SPLIT.split(name) if word]


def classify(name: str) -> KeyClass:
    """What a key's name says about its value.

    Args:
        name: a key of a mapping, header, flag (without dashes), variable or query parameter.
    """
    # the bound comes before the cache, so that long keys of foreign data can't fill the memory
    if not 2 <= len(name) <= 128 or "=" in name or "\n" in name:
        return KeyClass.NONE
    return _classify(name)


@lru_cache(maxsize=8192)
def _classify(name: str) -> KeyClass:
    words = _words(name)
    for index, word in enumerate(words):
        if word in _LINKS and index:
            words = words[:index]
            break
    compact = "".join(words)
    if compact in _HEADERS:
        return KeyClass.HEADER
    if compact in ("cookie", "setcookie", "cookies", "cookie2", "setcookie2", "httpcookie", "cookieheader"):
        return KeyClass.COOKIE
    if not words:
        return KeyClass.NONE
    service = bool(_services(words, compact))
    while len(words) > 1 and (words[-1] in _TAILS or words[-1].isdigit()):
        words.pop()
    words[-1] = words[-1].rstrip("0123456789") or words[-1]
    compact = "".join(words)
    found = _head(words, compact)
    if found in (KeyClass.NONE, KeyClass.WEAK) and service:
        return KeyClass.SERVICE
    return found


def is_service(name: str) -> bool:
    """Whether a name mentions a service that hands out keys."""
    words = _words(name[:128])
    return bool(_services(words, "".join(words)))


def _services(words: list[str], compact: str) -> bool:
    """Whether the words are a service's name, alone or followed only by words that go with a credential."""
    for size in (1, 2):
        for start in range(len(words) - size + 1):
            if "".join(words[start : start + size]) in SERVICES:
                rest = words[start + size :]
                if all(word.rstrip("0123456789") in _SERVICE_TAILS or not word.isalpha() for word in rest):
                    return True
    return compact in SERVICES


def _head(words: list[str], compact: str) -> KeyClass:
    head = words[-1]
    before = words[-2] if len(words) > 1 else ""
    pair = before + head
    if compact in _PHRASES or pair in _PHRASES:
        return KeyClass.PHRASE
    if compact in _CODES or pair in _CODES or head in _CODES - {"tan"}:
        return KeyClass.CODE
    if head in _PASSWORD or compact in _PASSWORD:
        return KeyClass.PASSWORD
    if compact in _PERSONAL or pair in _PERSONAL or (head in _PERSONAL and head not in ("pan", "dni", "creditcard")):
        return KeyClass.PERSONAL
    if any(word in _NEGATIONS for word in words[:-1]):
        return KeyClass.NONE
    if head in ("token", "tokens"):
        if any(word in _NOT_TOKENS for word in words[:-1]):
            return KeyClass.NONE
        return KeyClass.TOKEN if head == "token" else KeyClass.WEAK
    if head in _SECRET or head in _TOKEN or pair in _TOKEN:
        return KeyClass.TOKEN
    if head in ("key", "keys"):
        if before in _KEY_NOT:
            return KeyClass.NONE
        return KeyClass.TOKEN if before in _KEY_BEFORE else KeyClass.NONE
    if pair in ("connectionstring", "sharedaccesssignature"):
        return KeyClass.NONE
    if head in _WEAK:
        return KeyClass.WEAK if head not in ("signature", "sig", "login") else KeyClass.NONE
    if len(words) == 1 and len(compact) > 5:
        for suffix, found in _COMPACT:
            if compact.endswith(suffix):
                stem = compact[: -len(suffix)]
                if any(stem.endswith(word) for word in _NOT_TOKENS if len(word) > 3):
                    return KeyClass.NONE
                return found
    return KeyClass.NONE


def kind_of_key(found: KeyClass) -> str:
    """The kind that a redaction by key name states."""
    return {
        KeyClass.PASSWORD: "password",
        KeyClass.HEADER: "authorization",
        KeyClass.COOKIE: "cookie",
        KeyClass.CODE: "access_code",
        KeyClass.PHRASE: "seed_phrase",
        KeyClass.PERSONAL: "personal_number",
    }.get(found, "credential")
