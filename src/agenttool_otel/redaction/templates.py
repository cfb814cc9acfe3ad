"""What stands where a secret would: variables, templates, messages, references to a store.

Each list holds alternatives of one regular expression over UTF-8, that a value matches as a whole.
"""

from __future__ import annotations

import re
from typing import Final

# Variables and templates

VARIABLES: Final = (
    # $(pass show db)
    r"\${1,2}\(.*",
    # ${VAR}, {name}, {{ template }}
    r"\${0,2}\{.*\}",
    r"\$\{\{.*",
    r"\{\{.*",
    r"\$[A-Z_][A-Z0-9_]*",
    r"\$[a-z_]+",
    # $$DB_PASSWORD in a makefile
    r"(?i:\$\$[a-z_]*(?:passw|pwd|secret|token|key|cred|auth)[a-z0-9_]*)",
    # $1 of a shell
    r"\$\d",
    # $DbPassword of PowerShell
    r"\$[A-Z][a-z]+(?:[A-Z][a-z]+)*",
    # f"{config.password[0]" within an f-string
    r"\{\(?[a-z][a-z0-9]*[_.\[(].*",
    # what is left of ${...} when braces end a value
    r"\$",
    # %VAR%, %s, %(name)s, %+v
    r"%\w*%",
    r"%\(?\w*\)?[sdrv]",
    r"%[-+0-9.\#]{0,6}[a-zA-Z]",
    # @DB_PASSWORD@ of autoconf, #{password} of Ruby
    r"@[A-Za-z_][\w.-]*@",
    r"\#\{.*\}",
    r"<[^<>]*>",
    r"&lt;.*&gt;",
    r"\[[a-zA-Z _-]*\]",
    # tags of YAML: !vault |, !Ref DbPassword
    r"!(?:vault\w*|Ref|Sub|GetAtt|ImportValue|secret\w*|env\w*|include|reference)(?:\s.*)?",
    # *default_password, an alias of YAML
    r"\*[a-z]+(?:[_-][a-z]+)+",
    # parameters of SQL: :password, :p1::text, @password, %(password)s
    r":(?:[A-Za-z_]+|p?\d{1,2})(?:::\w+)?",
    r"@[A-Za-z_]+",
    r"%[(]\w+[)]s",
    # szPassword, m_token: variables of C
    r"(?:s|str|sz|psz|m_|in|arg)_?(?:Password|Passwd|Pwd|Pass|Token|Secret|ApiKey)",
)

# Pieces of programs, of markup and of command lines

ACTIONS_ON_SECRETS: Final = r"(?:Get|Describe|List|Create|Put|Delete|Update|Rotate|Restore)"
"""Verbs of AWS' actions."""
STATES_OF_ELEMENT: Final = (
    r"hover|focus|active|disabled|enabled|valid|invalid|required|placeholder|checked"
)
"""``hover``"""
PLACES_OF_ELEMENT: Final = r"before|after|not|first|last|nth"
"""``first`` of ``first-child``"""
PSEUDO_CLASSES: Final = rf"(?:{STATES_OF_ELEMENT}|{PLACES_OF_ELEMENT})(?:-[a-z]+)*"
"""``focus``, ``first-child``"""
BEHIND_PSEUDO_CLASS: Final = r"(?:\{[a-z-]+:|,[.\#:]|:[a-z-]+[({]).*"
"""``{outline:0``, ``,.token:hover``"""
CODE: Final = (
    r"(?:true|false|yes|no|on|off)\|[a-z|]+",
    r"[tf]",
    # 12px, 1.5rem as "5rem"
    r"\d{1,4}(?:px|r?em|vh|vw|ms|pt)",
    # secretsmanager:GetSecretValue, an action of AWS
    rf"(?:[a-z-]{{2,30}}:)?{ACTIONS_ON_SECRETS}Secret(?:Value|s|VersionStage|VersionIds)?",
    # a command that makes it: openssl rand -hex 32
    r"(?:openssl rand|pwgen|uuidgen|kubectl (?:-n \S+ )?get|vault (?:kv get|read)) (?:.* )?-.*",
    # what closes a call
    r"[)\]}>;,]{1,4}",
    # an object's address, a number
    r"0x(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9A-Fa-f]{1,8})>?",
    # where it stands: spec.auth.password
    r"(?:[a-z_]+\.){1,4}(?:password|secret|token|api_?key)",
    # a column's type: VARCHAR(255),
    r"[A-Za-z]{2,12}\(\d{1,4}(?:,\s?\d{1,3})?\),?",
    # how a URL is written, with what may be left out: user[:password]@host
    r"\[?:?(?:password|passwd|pass|pwd|secret)\]",
    # rules of CSS: .password:focus{outline:0
    PSEUDO_CLASSES + BEHIND_PSEUDO_CLASS,
    r"void 0",
    # a form that takes an option: dbctl login --password STDIN
    r"[a-z][a-z./_-]*(?: [a-z./:@_-]+){0,3} --[a-z][\w-]+(?:[ =].*)?",
    # another form of an option: [-p|--password PASSWORD], -p
    r"[A-Z_-]{2,20}\]",
    r"-[A-Za-z]",
    r"--[a-z]+(?:-[a-z]+)*",
    # a regular expression
    r"\^.+\$",
    r"\[[^\]]{1,20}-[^\]]{1,20}\].*",
    # a value of the Windows registry
    r"dword:[0-9a-f]{1,8}",
)

# Messages about a value

DEMAND: Final = r"(?:must|should|can(?:no|')t|can not|may not) (?:not )?(?:be|contain|have|match|include|exceed)"
"""``must contain``, ``can't be``"""
LEAST_OR_MOST: Final = r"(?:at (?:least|most) \d{1,3} )?"
"""``at least 8 ``"""
ARTICLES: Final = r"(?:an?|the|only|both|upper|lower|upper-?case|lower-?case|special|or|and)"
"""``an upper-case``"""
KINDS_OF_CHARACTERS: Final = r"characters?|letters?|digits?|numbers?|symbols?|spaces?"
"""``digits``"""
STATES_OF_VALUE: Final = r"empty|blank|null|changed|unique|different|the same|match(?:ed)?"
"""``empty``"""
WORDS_BEHIND: Final = r"long|or|and|more|only|an?|at|least|most|one|upper-?case|lower-?case|special"
"""``long``, ``and one``"""
MUST_BE: Final = (
    rf"{DEMAND} {LEAST_OR_MOST}"
    rf"(?:{ARTICLES} ){{0,6}}(?:{KINDS_OF_CHARACTERS}|{STATES_OF_VALUE})"
    rf"(?: (?:{WORDS_BEHIND}|{KINDS_OF_CHARACTERS})){{0,8}}[.!]?"
)
"""What a form demands: ``must be at least 8 characters long``."""
IS_TOO_SHORT: Final = r"(?:(?:is|was) )?(?:too (?:short|long|weak|common|simple|easy)|required|invalid|incorrect)[.!]?"
"""What a form complains about: ``is too short``."""
IN_OTHER_LANGUAGES: Final = (
    r"(?i:wachtwoord|heslo|hasło|lösenord|passwort|kennwort|contraseña|senha|salasana|jelszó)"
)
"""The word "password", as labels and messages have it."""
SIZES: Final = r"characters?|chars?|digits?|letters?|words?|bits?|bytes?"
"""``8 chars``"""
TIMES: Final = r"seconds?|minutes?|hours?|days?|weeks?|months?|years?|attempts?|times"
"""``90 days``, ``3 attempts``"""
UNITS_ELSEWHERE: Final = (
    r"zeichen|ziffern|tage|caractères|caracteres|caratteri|cifras|cifre|tekens|tecken|tegn"
    r"|znaków|znaků"
)
"""``8 Zeichen``"""
UNITS: Final = f"(?:{SIZES}|{TIMES}|{UNITS_ELSEWHERE})"
"""What lengths, ages and tries are counted in."""
MESSAGES: Final = (
    # das alte Passwort, Passwort vergessen
    rf"[^0-9]{{0,20}}[ -]{IN_OTHER_LANGUAGES}",
    rf"{IN_OTHER_LANGUAGES}[ -][^0-9]{{0,20}}",
    rf"(?i:{IS_TOO_SHORT}|{MUST_BE})",
    # 2026-11-27T10:30:00Z: when it was changed
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.,Z+-]*)?",
    # 99.5 %, 8 characters
    r"\d{1,3}[.,]\d{1,2}(?: ?%)?",
    rf"\d{{1,3}} ?(?:%| {UNITS})",
    # whose, how much: user=1000, len=32
    r"(?:user|benutzer|usuario|utente|len|length|size|count|line|port|uid|gid|pid|status|retries"
    r"|attempts|timeout)=\d{1,6}",
    # No token for {user} was found
    r"[^0-9;&=]* \{[a-z_.]{1,20}\} [^0-9;&=]*",
    # root:x:UID:GID:...: the fields of a file
    r"UID:GID.*",
)

# Words and signs that only stand in

DETERMINERS: Final = (
    r"a|an|the|my|your|some|any|one|no|not|in|other|another|different|same|this|is|of|for|to"
    r"|with|without"
)
"""``my``, ``another``"""
QUALITIES: Final = (
    r"wrong|bad|good|valid|invalid|incorrect|correct|old|new|short|weak|strong|empty|null|missing"
    r"|expired|plain"
)
"""``wrong``, ``expired``"""
INVENTED: Final = (
    r"fake|dummy|test|sample|example|user|current|random|raw|changed|updated|unknown|mock|stub|demo"
)
"""``dummy``"""
USES_OF_SECRETS: Final = r"(?:client|app|shared|access|refresh|auth|session|service|secret|super)"
"""``client`` of ``my_client_secret``"""
WORDS_FOR_SECRETS: Final = (
    r"(?:password|passwd|passphrase|passcode|secret|token|credential|api[_ -]?key)s?"
)
"""``api_keys``"""
MADE_UP: Final = (
    rf"(?i:(?:(?:{DETERMINERS}|{QUALITIES}|{INVENTED})[_ .-]?|{USES_OF_SECRETS}[_ .-]){{1,6}}?"
    rf"{WORDS_FOR_SECRETS}(?:[_ .-]?here)?)"
)
"""A test's or a guide's: ``wrong-password``, ``my_secret_token``."""
WHAT_TO_FILL_IN: Final = r"(?:password|pass|pwd|passphrase|secret|token|key|here|value)"
"""``key`` of ``your_api_key``"""
GOES_HERE: Final = r"(?:[ _-](?:goes[ _-])?here)?"
"""``_goes_here``"""
FILL_IN_HERE: Final = rf"(?i:your[ _-](?:[a-z0-9]+[ _-]){{0,4}}?{WHAT_TO_FILL_IN}{GOES_HERE})"
"""``your_api_key_goes_here``"""
ENTER_YOUR: Final = r"(?:put|insert|enter|add|type|paste)[ _-]your[ _-](?:[a-z]+[ _-]){0,4}?"
"""``enter your master ``"""
WHAT_TO_ENTER: Final = (
    r"(?:passw(?:or)?d|passphrase|phrase|secret|token|key|pin|code|value|credentials?|name|e?-?mail"
    r"|username)"
)
"""``password``, ``e-mail``"""
ENTERED_HERE: Final = r"(?:[ _-](?:here|below|now|again|first))?[.!:]{0,3}"
"""`` below:``"""
REQUEST: Final = ENTER_YOUR + WHAT_TO_ENTER + ENTERED_HERE
"""``enter your master password below:``"""
HASH_FUNCTIONS: Final = r"(?:bcrypt|argon2\w*|scrypt|pbkdf2\w*|sha-?\d+|md5)"
"""``argon2id``"""
HASH_PARAMETERS: Final = (
    r"(?:cost|rounds?|iterations?|with|salt(?:ed)?|hash(?:ed|es)?|digest|length|[tmpn]=)?"
)
"""``cost``, ``t=``"""
HASHED_WITH: Final = rf"{HASH_FUNCTIONS}(?:[ ,(]{{1,2}}{HASH_PARAMETERS}\d{{0,6}}\)?){{1,5}}"
"""What is done with it: ``bcrypt (cost 12)``."""
STAND_INS: Final = (
    MADE_UP,
    FILL_IN_HERE,
    rf"(?i:{REQUEST}|{HASHED_WITH})",
    # SHA-256, TLS1.3, scram-sha-256
    r"(?i:(?:scram-)?(?:sha|aes|rsa|tls|nist|iso|rfc|utf|fips|oauth|pbkdf)[-_]?\d{1,5}"
    r"(?:[-_.][\w.-]*)?)",
    # sha512-<Base64>, an integrity hash
    r"(?:hmac-)?sha(?:1|256|384|512)[-:][A-Za-z0-9+/=]{27,90}",
    # sealed for a Kubernetes cluster
    r"Ag[A-D][A-Za-z0-9+/]{100,253}=*",
    # projects/123/secrets/db-password/versions/1
    r"projects/.*/secrets/.*",
    # xxxx, ****, ...., sk_XXXXXXXXXXXXXXXX
    r"(?:[a-z]{2,6}_)?[xX]{16,}",
    r"\*{3,}(?:[^\w*\s]\S{0,4})?",
    r"(?:\\?\*)+",
    r"[xX*.\-_\#?\xe2\x80\xa2\xa6]+",
)

ALTERNATIVES: Final = (r"\s*", *VARIABLES, *CODE, *MESSAGES, *STAND_INS)
TEMPLATE: Final = re.compile("|".join(ALTERNATIVES).encode(), re.DOTALL)
"""Matches, as a whole, a value in which nothing secret is."""

# References to where a secret is kept

CLOUD_STORES: Final = (
    r"ssm|secrets?|secretsmanager|aws-?sm|gcp-?sm|gcpsecretmanager|az-?kv|akv|keyvault|awssm|gsm"
)
"""``secretsmanager`` of AWS, ``az-kv`` of Azure"""
OTHER_STORES: Final = r"op|vault|sops|bws|doppler|infisical|file|env|keyring|keychain|ref\+\w+"
"""``op`` of 1Password, ``ref+vault`` of vals"""
STORES: Final = f"(?:{CLOUD_STORES}|{OTHER_STORES})"
"""Schemes of references: ``op://vault/item/field``."""
REFERENCES: Final = (
    rf"{STORES}://",
    r"arn:aws[\w-]*:(?:secretsmanager|ssm):",
    # a setting of an Azure app
    r"@Microsoft\.KeyVault\(",
    # {{resolve:secretsmanager:db:SecretString}} of CloudFormation
    r"\{\{resolve:",
    # -pass of openssl
    r"env:[A-Za-z_]\w*\Z",
    r"file:[~./][\w./-]*\Z",
    r"fd:\d+\Z",
)
REFERENCE: Final = re.compile("|".join(REFERENCES).encode())
"""Matches the beginning of a reference, as secret managers and configuration tools write it."""
