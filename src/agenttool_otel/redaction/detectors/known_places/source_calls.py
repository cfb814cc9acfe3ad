"""Calls in source text."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    MAYBE_QUOTE,
    OPTIONAL_QUOTE,
    QUOTE,
    QUOTED_VALUE,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

CREDENTIAL_TYPES: Final = (
    r"networkcredential|httpbasicauth|(?:basic|http|proxy)_?auth(?:\s?=\s?)?"
    "|basiccredentials?|usernamepasswordcredentials?"
)
LOGIN_FUNCTIONS: Final = (
    r"(?:basic_?auth|credentials?(?:::\w+|\.\w+)?|bind\w{0,8}|\blogin|_login|\.login|logon"
    "|sign_?in|authenticate)"
)
LOGIN_ACTIONS: Final = (
    r"trying|tried|log(?:in|on|ged)|signin|sign in|auth\w*|basic auth\w*|connect\w*|brute\w*"
)
LOGIN_OBJECTS: Final = "creds?|credentials?|userpass|user_pass|account"
LOGIN_WORDS: Final = f"(?:{LOGIN_ACTIONS}|{LOGIN_OBJECTS})"
LOGIN_RESULTS: Final = (
    r"(?:accepted|rejected|denied|logg?ed in|login|authenticat\w+|bind|valid credentials"
    r"|invalid credentials)\b"
)
TOKEN_FUNCTIONS: Final = (
    r"(?:\.(?:login|authenticate|connect)|(?:set|with|use)_?(?:token|api_?key))"
)
NOT_KEYRING: Final = r"(?:^\.?|[^g]\.|[^n]g\.|[^i]ng\.|[^r]ing\.|[^y]ring\.|[^.\w])"
WAYS_TO_CALL: Final = r"(?:call|ring|phone|tel|mobile|mob|text|whatsapp|reached?)\b[^\r\n\d]{0,40}?"

STATEMENTS: Final = (
    Statement(
        # auth = ("admin", "hunter2")
        id="call_with_user_and_password",
        keywords=(
            "networkcredential",
            "basicauth",
            "basic_auth",
            "basiccredential",
            "passwordcredential",
            "passwordauthentication",
            "auth=(",
            "auth = (",
            "algoliasearch(",
            ".login(",
            ".authenticate(",
            ".signin(",
            ".sign_in(",
        ),
        pattern=(
            "(?i)(?:" + CREDENTIAL_TYPES + r"|passwordauthentication|algoliasearch|\bauth\s?=\s?"
            r"|\.(?:login|authenticate|sign_?in))\s*\(\s*"
            + QUOTE
            + r"[^\"'\n]{0,80}"
            + QUOTE
            + r"\s*,\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # DriverManager.getConnection(url, "app", "hunter2")
        id="call_with_user_and_password",
        keywords=("getconnection", "createconnection"),
        pattern=(
            r"(?i)\b(?:get|create)connection\s*\([^\r\n()]{1,300},\s*"
            + QUOTE
            + r"[^\"'\r\n]{0,80}"
            + QUOTE
            + r"\s*,\s*"
            + QUOTED_VALUE
            + r"\s*\)"
        ),
    ),
    Statement(
        # mysqli_connect('db', 'app', 'hunter2', 'shop');
        id="call_with_user_and_password",
        keywords=("mysqli", "new pdo", "pdo->__construct", "ftp_login", "pg_connect"),
        pattern=(
            r"(?i)\b(?:new\s+mysqli|mysqli_connect|new\s+PDO|PDO->__construct|ftp_login)\s*\(\s*"
            "(?:"
            + QUOTE
            + r"[^\"'\r\n]{0,120}"
            + QUOTE
            + r"|\$\w+)\s*,\s*"
            + QUOTE
            + r"[^\"'\r\n]{0,80}"
            + QUOTE
            + r"\s*,\s*"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # http.basicAuth("bob", "hunter2")
        id="call_with_user_and_password",
        keywords=(
            "basic_auth",
            "basicauth",
            "credentials",
            "bind",
            "login(",
            "logon(",
            "signin(",
            "authenticate(",
        ),
        prefilter=(
            r"(?:basic_?auth|credentials\w*|bind\w*|login|logon|sign_?in|authenticate)"
            r"(?:::\w+|\.\w+)?\s*\(\s*[^()\r\n]"
        ),
        pattern=(
            "(?i)"
            + LOGIN_FUNCTIONS
            + r"\s*\(\s*(?:&?[a-z_][\w.]{0,40}|"
            + QUOTE
            + r"[^\"'\r\n]{0,160}"
            + QUOTE
            + r")(?:\.\w+\(\))?\s*,\s*(?:(?:new[ \t])?&?[A-Z]\w*(?:(?:::|\.)\w+)?\(\s*)?"
            + QUOTED_VALUE
        ),
        mixed=True,
    ),
    Statement(
        # sql.Open("mysql", "svc:...@tcp(10.0.0.7)/audit")
        id="call_with_user_and_password",
        keywords=("connect", "open(", "dial("),
        prefilter=r"(?:connect\w*|open|dial)\s*\(\s*\\*[\"'][^\"'\r\n]{0,160}\\*[\"']\s*,",
        pattern=(
            r"(?i)\b(?:\w*connect\w{0,8}|open|dial)\s*\(\s*(?:"
            + QUOTE
            + r"[^\"'\r\n]{0,160}"
            + QUOTE
            + r"\s*,\s*){1,2}"
            + QUOTED_VALUE
        ),
        likely=True,
    ),
    Statement(
        # local ok, err = red:auth("hunter2")
        id="call_with_password",
        keywords=(":auth(", ".auth("),
        pattern=r"(?i)[.:]auth\(\s*" + QUOTED_VALUE + r"\s*\)",
    ),
    Statement(
        # zip.setpassword(b"hunter2")
        id="call_with_password",
        keywords=("setpassword(", "set_password(", "setpasswd(", ".login(key", ".login(api_key"),
        pattern=(
            "(?i)(?:"
            + NOT_KEYRING
            + r"set_?passw(?:or)?d\(\s*[bu]?|\.login\((?:api_)?key\s*=\s*)"
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # Stripe::setApiKey("...");
        id="call_with_token",
        keywords=(
            ".login(",
            ".authenticate(",
            ".connect(",
            "settoken(",
            "set_token(",
            "withtoken(",
            "with_token(",
            "usetoken(",
            "setapikey(",
            "set_api_key(",
        ),
        prefilter=r"(?:\.login|\.authenticate|\.connect|token|api_?key)\(\s?[\"'`]",
        pattern=(
            "(?i)"
            + TOKEN_FUNCTIONS
            + r"\(\s*\\{0,3}[\"'`]([\w.~+/=:-]{20,256})\\{0,3}[\"'`]\s*[,)]"
        ),
        likely=True,
    ),
    Statement(
        # mixpanel.init("...")
        id="initialised_with_key",
        keywords=(".init(", ".initialize(", ".load(", ".configure("),
        prefilter=r"\.(?:init|initialize|load|configure)\([\"'`][a-z0-9]{28}",
        pattern=r"(?i)\.(?:init|initialize|load|configure)\([\"'`]([a-z0-9]{28,64})[\"'`]\s*[,)]",
        kind="credential",
        likely=True,
    ),
    Statement(
        # AmazonS3Client(new BasicAWSCredentials("AKIAWYVERK2MCL2SSTUO", "..."))
        id="aws_credentials_call",
        keywords=("awscredentials(",),
        pattern=(
            r"(?i)AwsCredentials\([^\r\n\"']{0,80}(?:\"[^\"\r\n]{0,80}\")?[^\r\n\"']{0,40},\s*"
            + QUOTED_VALUE
        ),
        kind="credential",
    ),
    Statement(
        # jwt.sign(payload, "...")
        id="key_of_signature",
        keywords=("jwt.sign", "jwt.encode", "jwt.verify", "jwt.decode", "jsonwebtoken."),
        pattern=(
            r"(?i)\b(?:jwt|jsonwebtoken)\.(?:sign|encode|verify|decode)"
            r"\(\s*[^,\r\n\"']{1,80},\s*[bu]?" + QUOTED_VALUE
        ),
        kind="credential",
    ),
    Statement(
        # hmac.new(b"...", msg, sha256)
        id="key_of_signature",
        keywords=("hmac",),
        pattern=(
            r"(?i)\b(?:hmac\.(?:new|digest)\(\s*[bu]?|createhmac\(\s*"
            + QUOTE
            + r"[\w-]{2,16}"
            + QUOTE
            + r"\s*,\s*|hash_hmac\(\s*"
            + QUOTE
            + r"[\w-]{2,16}"
            + QUOTE
            + r"\s*,[^,\r\n]{1,80},\s*)"
            + QUOTED_VALUE
        ),
        kind="credential",
    ),
    Statement(
        # var key = Encoding.UTF8.GetBytes("..."); // JWT signing key
        id="key_of_signature",
        keywords=("getbytes(",),
        pattern=r"(?i)\bkey\s*=\s*[^\r\n\"']{0,60}getbytes\(\s*" + QUOTED_VALUE,
        kind="credential",
        likely=True,
    ),
    Statement(
        id="credential_tuple",
        keywords=("', '", '", "', "','", '","'),
        prefilter=r"[(\[]\s?[bru]?[\"'][^\"'\r\n]{1,80}[\"'],\s?[bru]?[\"']",
        pattern=(
            r"(?i)(?:^|[^\w/])"
            + LOGIN_WORDS
            + r"[^\r\n()\[\]]{0,40}?[(\[]\s?[bru]?"
            + QUOTE
            + r"[^\"'\r\n]{1,80}"
            + QUOTE
            + r"\s?,\s?[bru]?"
            + QUOTED_VALUE
            + r"\s?[)\]]"
        ),
        mixed=True,
    ),
    Statement(
        # ("svc-report", "...") accepted by ldap bind
        id="credential_tuple",
        keywords=("', '", '", "', "','", '","'),
        prefilter=r"[(\[]\s?[bru]?[\"'][^\"'\r\n]{1,80}[\"'],\s?[bru]?[\"']",
        pattern=(
            r"(?i)[(\[]\s?[bru]?"
            + QUOTE
            + r"[^\"'\r\n]{1,80}"
            + QUOTE
            + r"\s?,\s?[bru]?"
            + QUOTED_VALUE
            + r"\s?[)\]][^\r\n]{0,40}?[^\w/]"
            + LOGIN_RESULTS
        ),
        mixed=True,
    ),
    Statement(
        id="credential_tuple",
        keywords=("using (", "login as ("),
        pattern=(
            r"(?i)\busing[ \t]?\(\s?[bru]?"
            + QUOTE
            + r"[^\"'\r\n]{1,80}"
            + QUOTE
            + r"\s?,\s?[bru]?"
            + QUOTED_VALUE
            + r"\s?\)"
        ),
        mixed=True,
    ),
    Statement(
        # access_key_id = ...
        id="access_key_id",
        keywords=("access_key_id", "accesskeyid"),
        pattern=(
            r"(?i)\baccess_?key_?id"
            + OPTIONAL_QUOTE
            + r"\s*[=:]\s*"
            + OPTIONAL_QUOTE
            + r"(?-i:([A-Z0-9]{20}))\b"
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        # ("plc-press-1", "operator", "..."),
        id="row_of_account",
        keywords=(
            '"root"',
            "'root'",
            '"admin"',
            "'admin'",
            '"operator"',
            "'operator'",
            '"administrator"',
            "'administrator'",
            '"sa"',
            "'sa'",
        ),
        pattern=(
            r"[\[(]\s*"
            + QUOTE
            + r"[^\"'\r\n]{1,80}"
            + QUOTE
            + r",\s*"
            + QUOTE
            + "(?:root|admin|operator|administrator|sa)"
            + QUOTE
            + r",\s*"
            + QUOTE
            + r"([A-Za-z0-9][^\"'\s]*[!?$%&*#^_~+][^\"'\s]*)"
            + QUOTE
            + r"\s*[\])]"
        ),
        likely=True,
    ),
    Statement(
        # password = """hunter2"""
        id="triple_quotes",
        keywords=('"""', "'''"),
        prefilter=r"=\s*(?:\"\"\"|'{3})",
        pattern=(
            r"(?i)\b\w*(?:password|passwd|secret|token)\w*\s*=\s*(?:\"\"\"|'{3})"
            r"([^\"'\r\n]{3,256})(?:\"\"\"|'{3})"
        ),
    ),
    Statement(
        # password <- "hunter2"
        id="assigned_by_arrow",
        keywords=('<- "', "<- '"),
        pattern=(
            r"(?i)\b\w*(?:password|passwd|secret|token|api_?key)[ \t]*<-[ \t]*" + QUOTED_VALUE
        ),
        mixed=True,
    ),
    Statement(
        # algolia := search.NewClient("BI77BYZS95", "...") // admin key, indexing only
        id="algolia_key",
        keywords=("algolia",),
        pattern=(QUOTE + "[A-Z0-9]{10}" + QUOTE + r",\s{0,8}" + QUOTE + "([0-9a-f]{32})" + QUOTE),
        kind="api_key",
    ),
    Statement(
        # UserDefaults.standard.set("...", forKey: "authToken")
        id="stored_for_key",
        keywords=("forkey:",),
        pattern=(
            "(?i)"
            + QUOTED_VALUE
            + r"\s*,\s*forKey:\s*"
            + QUOTE
            + r"\w*(?:token|secret|password)\w*"
            + QUOTE
        ),
    ),
    Statement(
        # FCM server key: AAAAa7c3f9e:...
        id="messaging_server_key",
        keywords=("aaaa",),
        prefilter="aaaa[a-z0-9_-]{7}:",
        pattern=r"\b(AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{100,200})",
        kind="credential",
    ),
    Statement(
        # Twilio::REST::Client.new('AC...', '...')
        id="account_and_token",
        keywords=("twilio",),
        pattern=(r"(?i)\(\s*" + QUOTE + "AC[0-9a-f]{32}" + QUOTE + r"\s*,\s*" + QUOTED_VALUE),
        kind="credential",
    ),
    Statement(
        # session:\n  key: ...
        id="key_below_its_use",
        keywords=(
            "encryption",
            "signing",
            "session",
            "cookie",
            "jwt",
            "crypto",
            "hmac",
            "cipher",
            "api",
            "auth",
        ),
        prefilter=(
            "(?:encryption|signing|session|cookie|jwt|crypto|hmac|cipher|api|auth)"
            r"[\"']*\s*[:=]\s*\{?\s*[\"']*key[\"']*\s*[:=]"
        ),
        pattern=(
            r"(?i)\b(?:encryption|signing|session|cookie|jwt|crypto|hmac|cipher|api|auth)"
            + MAYBE_QUOTE
            + r"\s*[:=]\s*\{?\s*"
            + MAYBE_QUOTE
            + "key"
            + MAYBE_QUOTE
            + r"\s*[:=]\s*"
            + MAYBE_QUOTE
            + "([A-Za-z0-9+/_-]{20,256}={0,2})"
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        # please call me after 6pm on 07735201884
        id="mobile_to_call",
        keywords=(" 07",),
        pattern=(
            r"(?i)\b"
            + WAYS_TO_CALL
            + r"(?:after \d{1,2} ?(?:am|pm) )?(?:on|at|:|is)[ \t](07\d{3}[ -]?\d{3}[ -]?\d{3})\b"
        ),
        kind="phone",
    ),
)
