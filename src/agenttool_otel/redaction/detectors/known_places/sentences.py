"""Sentences, notes and tables."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    LINE_END,
    OPENING_MARK,
    OPTIONAL_QUOTE_OR_TICK,
    word_in_text,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

_WITH_A_SIGN: Final = r"[^\s\"'`<>,;()/]{2,40}[!#$%&*+?^][^\s\"'`<>,;()/]{0,40}"
_CAPITALS_AND_DIGITS: Final = r"(?:[A-Z]\d?|\d[A-Z]){4,20}[A-Z]?"
_WORDS_AND_YEAR: Final = r"[A-Za-z]{3,20}-[A-Z][a-z]{2,20}-\d{2,8}"
CHOSEN_PASSWORD: Final = (
    f"({_WITH_A_SIGN}|{_CAPITALS_AND_DIGITS}|{_WORDS_AND_YEAR})"
    r"(?:[\s,;)]|\.(?:\s|$)|$)"
)
"""A password that nothing technical looks like, as group 1."""

CELL_LABELS: Final = "(?:password|passwort|passphrase|passcode|secret|token|api[ _-]?key)"
PASSWORD_WORDS: Final = (
    "(?:password|passwort|kennwort|palavra-passe|senha|mot de passe|contraseña|lösenord"
    r"|\bpw|\bpwd|passphrase)"
)
THE_NEW_ONE_IS: Final = (
    "(?:new one is|a nova é|la nueva es|le nouveau est|das neue (?:ist|lautet)|la nuova è"
    "|det nya är)"
)
USER_WORDS: Final = "(?:user(?:name)?|benutzer(?:name)?|utente|utilizador|usuario)"
PASSWORD_BESIDE_USER: Final = "(?:password|pw|passwort|pass|kennwort|senha|contraseña)"
IS_OF_USER: Final = "(?:ist|is|è|é|es|est)"
DOORS: Final = (
    "(?:schlüsselbox|schlüsseltresor|tür|alarmanlage|tresor|lock ?box|key ?box|gate|door|garage)"
)
LOGIN_LABELS: Final = "(?:user(?:name)?|login|gebruiker|benutzer|utilisateur|usuario)"
LOGIN_LABEL_STEMS: Final = "(?:user|login|gebruiker|benutzer|utilisateur|usuario)"
PASSWORD_LABELS: Final = "(?:password|pw|passwort|wachtwoord|pass|kennwort|mot de passe)"
CREDENTIALS: Final = "(?:creds?|credentials|login|logins|zugangsdaten|accesos?|accès)"
ARROW_OR_IS: Final = r"(?:\s?[-=]>|\s?→|\s?:|\s(?:is|are|ist|est|es|lautet))"
LICENCE_WORDS: Final = (
    r"(?:licen[sc]\w*|lizenz\w*|product|serial|activation|aktivierungs\w*|produkt\w*)"
)
PASSWORD_IN_EIGHT_LANGUAGES: Final = (
    "(?:mot de passe|contraseña|senha|wachtwoord|lösenord|passord|hasło|пароль)"
)
DIGIT_WITH_SIGN: Final = r"(?:\d[!#$%&*+@?]|[!#$%&*+@_-]\d{2})"
KINDS_OF_KEY: Final = (
    "(?:live|prod|production|test|staging|sandbox|new|api|access|admin|temporary) (?:key|token)"
)
WORDS_BEHIND_PASSWORD: Final = (
    "(?:for|of|to|in|on|below|now|has|have|will|was|set|reset|changed|generated|für|von)"
)
THE_PASSWORD: Final = (
    r"\bthe password (?:i|we|you|they) (?:\w{2,10} ){1,2}is|\b(?:uses?|using|has|with|set)"
    " the password"
)
QUESTION_FOR_LOGIN: Final = (
    r"(?:login|credentials|creds|password|zugang\w*)\b[^\r\n?]{0,60}\?[ \t\r]*\n"
)
PASSPORT_NUMBER_LABEL: Final = (
    "(?:passport|reisepass|passeport|pasaporte)[ -]?(?:no|number|nr|num|numéro|número|n°)?"
)
PASSPORT_NUMBER: Final = r"(?-i:([A-Z]{1,2}\d{6,8}|\d{9}|\d{2}[A-Z]{2}\d{5}))"
LABEL_CELL: Final = (
    "<(?:td|th|dt)>[^<>]{0,20}(?:password|passwort|api key|secret|token)[^<>]{0,20}</(?:td|th|dt)>"
)
LOGIN_DATA: Final = "login|credentials|creds|zugang(?:sdaten)?"
PASSWORD_IS: Final = "password è|senha é|contraseña es|passwort ist|mot de passe est"
LABEL_WITH_PLACE: Final = (
    r"(?:password|passwort|passphrase|token|secret|api key)[ \t]?[(\[][\w ./@-]{1,30}[)\]]"
)
CAPITAL_SIGN_DIGITS: Final = r"([A-Z][a-z]{2,}[A-Za-z0-9]{0,40}[-_.!+@#$%&*]\d{3,}\w{0,40})"
QUESTION_FOR_PASSWORD: Final = r"(?:passwor[dt]|passphrase|pw)\b[^\r\n?]{0,60}\?[ \t\r]*\n"
WORD_OF_SENTENCE: Final = r"([^\s\"'`<>,;:()/]{7,64}[^\s\"'`<>,;:()/.])"

STATEMENTS: Final = (
    Statement(
        # password for bob: hunter2
        id="password_in_sentence",
        keywords=("password ", "passwort ", "passphrase "),
        prefilter=r"(?:password|passwort|passphrase)\s[^\r\n:]{1,60}:\s",
        pattern=(
            r"(?im)\b(?:password|passwort|passphrase)[ \t]+"
            + WORDS_BEHIND_PASSWORD
            + r"\b[^\r\n:]{0,60}:[ \t]{1,3}([^\s\"'<>{}]{6,128}?)\.?"
            + LINE_END
        ),
        mixed=True,
    ),
    Statement(
        # login bob, pw hunter2
        id="said_without_a_verb",
        keywords=("pass ", "pw ", "pwd ", "passwor", "passcode ", "kennwort "),
        prefilter=(
            "(?:pass|pw|pwd|password|passwort|passcode|kennwort)"
            r"[ \t]+[a-z]{3,40}[-_.!+@#$%&*]\d{3}"
        ),
        pattern=(
            r"(?:\b(?i:pass|pw|pwd|password|passwort|passcode|kennwort))[ \t]+"
            + CAPITAL_SIGN_DIGITS
        ),
    ),
    Statement(
        # password ...
        id="said_without_a_verb",
        keywords=("password ",),
        prefilter=r"password[ \t]+\S{8}",
        pattern=(
            r"(?i)\bpassword[ \t]+"
            + WORD_OF_SENTENCE
            + r"(?:[,;)]|\.?"
            + LINE_END
            + r"|\.[ \t]|[ \t]\()"
        ),
        likely=True,
    ),
    Statement(
        # I reset it for you, sign in with hunter2 and pick a new one afterwards
        id="said_without_a_verb",
        keywords=("sign in with", "log in with", "sign in using", "log in using"),
        pattern=r"\b(?i:sign|log) in (?:with|using) " + CAPITAL_SIGN_DIGITS,
    ),
    Statement(
        # log in as admin / a7c3f9e1#7
        id="said_without_a_verb",
        keywords=("sign in ", "log in ", "login "),
        prefilter=r"(?:sign|log) ?in (?:with|using|as)[ \t][^\r\n]{2,42}/",
        pattern=(
            r"\b(?i:sign|log) ?in (?:with|using|as)[ \t]+"
            + OPTIONAL_QUOTE_OR_TICK
            + r"[\w.@-]{2,40}"
            + OPTIONAL_QUOTE_OR_TICK
            + r"[ \t]?/[ \t]?"
            + OPTIONAL_QUOTE_OR_TICK
            + CHOSEN_PASSWORD
        ),
        mixed=True,
    ),
    Statement(
        # SSID Cobalt, password hunter2 (2.4 GHz only)
        id="said_without_a_verb",
        keywords=("password ",),
        prefilter=r"(?:network|wi-?fi|wlan|ssid)\b[^\r\n]{1,60}password[ \t]",
        pattern=(
            r"(?i)\b(?:network|wi-?fi|wlan|ssid)\b[^\r\n]{0,60}?[\"'`,;/][ \t]+password[ \t]+"
            + WORD_OF_SENTENCE
        ),
        mixed=True,
    ),
    Statement(
        # Using default password ... for user elastic
        id="said_without_a_verb",
        keywords=(
            "default password ",
            "temporary password ",
            "initial password ",
            "new password ",
            "old password ",
        ),
        pattern=(
            r"(?i)\b(?:default|temporary|initial|current|new|old|root|admin)[ \t]password[ \t]+"
            + OPTIONAL_QUOTE_OR_TICK
            + r"([^\s\"'`,;:/]{8,64})"
        ),
        likely=True,
        mixed=True,
    ),
    Statement(
        # The PDF opens with the password hunter2
        id="said_without_a_verb",
        keywords=("the password ", "login "),
        prefilter=r"(?:the password|login)[ \t]\S{1,64}[ \t]",
        pattern=(
            "(?i)(?:"
            + THE_PASSWORD
            + r"|\blogin [\w.@-]{2,40} with)[ \t]([^\s\"'`<>,;:()]{6,64}[^\s\"'`<>,;:().])"
        ),
        mixed=True,
    ),
    Statement(
        # Доступ к тестовому серверу: логин deploy, пароль hunter2 — после проверки поменяем.
        id="said_without_a_verb",
        keywords=(
            "mot de passe ",
            "contraseña ",
            "senha ",
            "wachtwoord ",
            "lösenord ",
            "passord ",
            "hasło ",
            "пароль ",
        ),
        prefilter=PASSWORD_IN_EIGHT_LANGUAGES + r"[ \t]+[a-z][^\s]{5}",
        pattern=(
            r"(?i)(?:\b|^|[\s,;(])"
            + PASSWORD_IN_EIGHT_LANGUAGES
            + r"[ \t]+([a-z]{3,40}[\w!#$%&*+@.-]{0,40}"
            + DIGIT_WITH_SIGN
            + r"[\w!#$%&*+@?-]{0,40})"
        ),
    ),
    Statement(
        # la contraseña !x9...
        id="said_without_a_verb",
        keywords=(
            "mot de passe ",
            "contraseña ",
            "senha ",
            "wachtwoord ",
            "lösenord ",
            "passord ",
            "hasło ",
            "пароль ",
        ),
        prefilter=PASSWORD_IN_EIGHT_LANGUAGES + r"[ \t]+[!#$%&*+@?][^\s]{5}",
        pattern=(
            r"(?i)(?:\b|^|[\s,;(])"
            + PASSWORD_IN_EIGHT_LANGUAGES
            + r"[ \t]+([!#$%&*+@?][a-z]{0,40}\d[^\s\"'`<>,;()]{3,62}[^\s\"'`<>,;().])"
        ),
    ),
    Statement(
        id="said_without_a_verb",
        keywords=("it's now", "it’s now", "is now"),
        prefilter=r"""\bit(?:'|’)?s? (?:is )?now[ \t]+["'`]""",
        pattern=(
            r"(?is)\b(?:rotated|changed|reset|re-set|updated)\b.{0,80}?\bit(?:'|’)?s? (?:is )?"
            r"now[ \t]+[\"'`]" + word_in_text(8, 128) + r"[\"'`]"
        ),
        likely=True,
        mixed=True,
    ),
    Statement(
        # I reset it, please use a7c3f9e1#7
        id="said_without_a_verb",
        keywords=("changed it", "reset it"),
        pattern=(
            r"\b(?i:changed|reset) it\b[^\r\n]{0,20}?\b(?:try|use)[ \t:]+"
            + OPTIONAL_QUOTE_OR_TICK
            + CHOSEN_PASSWORD
        ),
        mixed=True,
    ),
    Statement(
        # used root / a7c3f9e1#7
        id="said_without_a_verb",
        keywords=("used ", "use "),
        prefilter=r"\bused?[ \t]+[a-z][\w.@-]{1,40}[ \t]/[ \t]",
        pattern=r"\b[uU]sed?[ \t]+[a-z][\w.@-]{1,40}[ \t]/[ \t]" + CHOSEN_PASSWORD,
        mixed=True,
    ),
    Statement(
        # admin account: root / a7c3f9e1#7
        id="said_without_a_verb",
        keywords=("admin", "login", "user", "account", "zugang", "cred"),
        prefilter=r":[ \t]*[a-z][\w.@-]{1,40}[ \t]/[ \t]",
        pattern=(
            r"\b(?i:admin|login|user|account|zugang|creds?|credentials)"
            r"\b[^\r\n:/]{0,40}:[ \t]*[A-Za-z][\w.@-]{1,40}[ \t]/[ \t]" + CHOSEN_PASSWORD
        ),
        mixed=True,
    ),
    Statement(
        # Das Kennwort River-a7352
        id="said_without_a_verb",
        keywords=("kennwort ", "passwort ", "palavra-passe "),
        prefilter=r"(?:kennwort|passwort|palavra-passe)[ \t]+[a-z]",
        pattern=(
            r"\b(?i:kennwort|passwort|palavra-passe)[ \t]+"
            r"([A-Z][A-Za-z]{2,40}[-_.!][A-Za-z]{0,40}\d[\w!#$%&*+@?-]{0,40})"
        ),
    ),
    Statement(
        # La contraseña es hunter2
        id="said_without_a_verb",
        keywords=(
            "password è ",
            "password é ",
            "senha é ",
            "contraseña es ",
            "passwort ist ",
            "mot de passe est ",
        ),
        pattern=(
            r"\b(?i:"
            + PASSWORD_IS
            + r")[ \t]+([A-Z][^\s\"'`<>,;:()/]{4,60}\d)(?:[\s,;)]|\.(?:\s|$)|$)"
        ),
        mixed=True,
    ),
    Statement(
        # [09:42] mara: user ist preview, pw ...
        id="user_and_password",
        keywords=("user", "benutzer", "utente", "utilizador", "usuario"),
        prefilter=(
            r"(?:user|benutzer|utente|utilizador|usuario)\w{0,4}[ \t]+" + IS_OF_USER + r"[ \t]"
        ),
        pattern=(
            r"(?i)\b"
            + USER_WORDS
            + r"[ \t]+"
            + IS_OF_USER
            + r"[ \t]+"
            + OPTIONAL_QUOTE_OR_TICK
            + r"[\w.@+-]{2,64}"
            + OPTIONAL_QUOTE_OR_TICK
            + r",?[ \t]+(?:and|und|e|y|et)?[ \t]*"
            + PASSWORD_BESIDE_USER
            + r"(?:[ \t]+"
            + IS_OF_USER
            + r")?:?[ \t]+"
            + word_in_text(6, 128)
        ),
        mixed=True,
    ),
    Statement(
        # AuthInfo: ...
        id="transfer_code",
        keywords=(
            "authinfo",
            "auth-info",
            "auth-code",
            "epp-code",
            "epp code",
            "authcode",
            "transfer code",
        ),
        prefilter=r"(?:auth-?info|auth-?code|epp[- ]code|transfer[- ]code)[ \t]*(?::|=|is)",
        pattern=(
            r"(?i)\b(?:auth-?info|auth-?code|epp[- ]code|transfer[- ]code)[ \t]*(?::|=|ist|is)"
            r"[ \t]*" + word_in_text(6, 64)
        ),
        likely=True,
        mixed=True,
    ),
    Statement(
        # Schlüsselbox am Hintereingang: Code 7352, danach Knopf drehen.
        id="door_code",
        keywords=("code ", "pin "),
        prefilter=r"\b(?:code|pin)[ \t]+\d{4,8}\b",
        pattern=(
            r"(?i)\b"
            + DOORS
            + r"\b[^\r\n.:]{0,40}[:,]?[ \t](?:der |the |mit |entry |access )?(?:code|pin)[ \t]+"
            r"(\d{4,8})(?:[,.;]|\s(?:und|and)\b|\s*$)"
        ),
        kind="access_code",
    ),
    Statement(
        # the creds are admin / a7c3f9e1#7
        id="said_without_a_verb",
        keywords=("login", "credential", "creds", "zugang"),
        prefilter=r"(?:is|are|now|sind|ist|lautet)[ \t]+[a-z][\w.@-]{1,40}[ \t]/[ \t]",
        pattern=(
            r"\b(?i:" + LOGIN_DATA + r")\b[^\r\n:/]{0,40}?\b(?:is|are|now|sind|ist|lautet)"
            r"[ \t]+[A-Za-z][\w.@-]{1,40}[ \t]/[ \t]" + CHOSEN_PASSWORD
        ),
        mixed=True,
    ),
    Statement(
        # ok, I set the admin password to hunter2 as you asked
        id="said_without_a_verb",
        keywords=("password to ",),
        pattern=(
            r"(?i)\b(?:re-?set|set|changed?|updated?|rotated?|switched)"
            r"\b[^\r\n:.]{0,40}?\bpassword to[ \t]+(?:" + OPENING_MARK + r")?([^\s\"'`<>,;]{6,128})"
        ),
        mixed=True,
    ),
    Statement(
        id="said_in_marks",
        keywords=("password", "passphrase", "passcode", "passwort", "pw `", "pwd `"),
        prefilter=r"(?:password|passphrase|passcode|passwort|pw|pwd)[ \t]*(?:`|“|„|\()[^\s`()]{6}",
        pattern=(
            r"(?i)(?:^|[^\w.])(?:password|passphrase|passcode|passwort|pw|pwd)[ \t]*(?:`|“|„|\()"
            r"([^\s`()]{6,128}?)(?:`|”|“|\))"
        ),
        mixed=True,
    ),
    Statement(
        # login for the demo tenant is demo@example.com and the password's hunter2
        id="said_in_marks",
        keywords=("password's", "password’s"),
        pattern=r"(?i)\bpassword(?:'s|’s)[ \t]+([^\s\"'`<>]{6,128}?)(?:$|[\s,;)])",
        mixed=True,
    ),
    Statement(
        # so I typed in "hunter2" as the password and it still says invalid
        id="said_in_marks",
        keywords=(" as the pass", " as my pass", " as your pass"),
        pattern=r"(?i)(?:[\"'`]|“)([^\s\"'`<>]{6,128}?)(?:[\"'`]|”) as (?:the|my|your) pass",
        mixed=True,
    ),
    Statement(
        # use hunter2 as the password
        id="said_in_marks",
        keywords=(" as the pass", " as my pass", " as your pass"),
        pattern=(
            r"(?i)\b(?:use|used|using|set|take|enter|type)[ \t]"
            + word_in_text(6, 128)
            + r"[ \t]as (?:the|my|your) pass"
        ),
        mixed=True,
    ),
    Statement(
        # api key → ...
        id="said_by_an_arrow",
        keywords=("→", "<- "),
        prefilter="(?:→|<-)",
        pattern=(
            r"(?i)\b(?:pw|password|passwort|passphrase|login|admin|api[ _-]key|token|secret)"
            r"\b[^\r\n]{0,40}?→[ \t]*" + word_in_text(6, 128)
        ),
        mixed=True,
    ),
    Statement(
        # hunter2  <- password of the ansible vault
        id="said_by_an_arrow",
        keywords=("<- ",),
        prefilter=r"<-[ \t]",
        pattern=(
            r"(?i)(?:^|\s)"
            + word_in_text(6, 128)
            + r"[ \t]+<-[ \t]+[^\r\n]{0,30}?\b(?:password|passphrase|passcode|passwort)\b"
        ),
        mixed=True,
    ),
    Statement(
        id="new_one",
        keywords=(
            "new one is ",
            "a nova é ",
            "la nueva es ",
            "le nouveau est ",
            "das neue ist ",
            "das neue lautet ",
            "la nuova è ",
            "det nya är ",
        ),
        pattern=(
            "(?is)"
            + PASSWORD_WORDS
            + r"\b.{1,240}?\b"
            + THE_NEW_ONE_IS
            + r"[ \t]+([^\s\"'`<>,;:()/~][^\s\"'`<>,;:()/]{5,63})"
        ),
        mixed=True,
    ),
    Statement(
        # <kev> wifi password?\n<mara> ...
        id="answered_question",
        keywords=("password", "passwort", "passphrase", "pw", "pin"),
        prefilter=r"(?:passwor[dt]|passphrase|\bpw)\b[^\r\n]{0,60}\?[ \t]*\r?\n",
        pattern=(
            r"(?im)\b"
            + QUESTION_FOR_PASSWORD
            + r"(?:[^\r\n]{0,40}?(?:[:>\]]|[-–])[ \t]+)?([^\s\"'<>]{8,128})"
            + LINE_END
        ),
        mixed=True,
    ),
    Statement(
        id="user_and_password",
        keywords=("user", "login", "gebruiker", "benutzer", "utilisateur", "usuario"),
        prefilter=(LOGIN_LABEL_STEMS + r"[^\r\n]{1,80}\b" + PASSWORD_LABELS + r"[ \t]"),
        pattern=(
            r"(?i)\b"
            + LOGIN_LABELS
            + r"(?: is|:)?[ \t]+[\w.@+-]{2,64},?[ \t]+(?:and[ \t]+|und[ \t]+)?"
            + PASSWORD_LABELS
            + r"(?: is)?:?[ \t]+"
            + word_in_text(6, 128)
        ),
        mixed=True,
    ),
    Statement(
        # creds: admin / hunter2
        id="login_pair",
        keywords=("creds", "credential", "login", "zugang", "acces"),
        pattern=(
            r"(?i)\b"
            + CREDENTIALS
            + r"\b[^\r\n:>]{0,30}?"
            + ARROW_OR_IS
            + r"[ \t]{1,3}[^\s/:]{2,64}[ \t]?/[ \t]?([^\s,;()/]{6,128})"
        ),
        mixed=True,
    ),
    Statement(
        # Use admin/hunter2 on the label printer's web page
        id="login_pair",
        keywords=(" / ", "use admin/", "use root/"),
        prefilter=r"(?:[\w.+-]@[\w.-]+[ \t]/[ \t]|use (?:admin|root)/)",
        pattern=r"(?i)(?:[\w+-]@[\w.-]+[ \t]/[ \t]|\buse (?:admin|root)/)([^\s,;()/]{6,128})",
        mixed=True,
    ),
    Statement(
        # > what was the Tableau login again?\nanalyst / hunter2
        id="login_pair",
        keywords=(" / ", "/ "),
        prefilter=r"(?:login|credentials|creds|password|zugang)[^\r\n?]{0,60}\?[ \t]*\r?\n[^\r\n]{3,60}/",
        pattern=(
            r"(?im)\b"
            + QUESTION_FOR_LOGIN
            + r"[ \t]*(?:[-*>][ \t]+|[^\r\n/]{0,30}:[ \t]*)?[\w.@-]{2,40}[ \t]/[ \t]"
            r"([^\s\"'`<>/]{6,128})" + LINE_END
        ),
        mixed=True,
    ),
    Statement(
        # relay: [smtp.example.com]:587 ann:hunter2
        id="login_pair",
        keywords=("]:25", "]:465", "]:587", "]:2525"),
        pattern=r"(?m)\]:(?:25|465|587|2525)[ \t]+[^\s:]{1,128}:(\S{3,128})",
        mixed=True,
    ),
    Statement(
        # token (prod): ...
        id="labelled_by_place",
        keywords=(
            "password (",
            "password [",
            "passwort (",
            "token (",
            "token [",
            "secret (",
            "api key (",
            "passphrase (",
        ),
        pattern=(
            r"(?i)\b"
            + LABEL_WITH_PLACE
            + r"[ \t]*[:=][ \t]*"
            + OPTIONAL_QUOTE_OR_TICK
            + r"([^\s\"'`<>{}$]{6,256})"
        ),
        mixed=True,
    ),
    Statement(
        # <dt>Password</dt><dd>hunter2</dd>
        id="labelled_cell",
        keywords=("</td>", "</th>", "</dt>"),
        prefilter="(?:password|passwort|api key|secret|token)[^<>]{0,20}</(?:td|th|dt)>",
        pattern="(?i)" + LABEL_CELL + r"\s*<(?:td|dd)>\s*(?:<code>)?([^<>\s]{4,256})</",
    ),
    Statement(
        # Device: NAS-2 | Admin: admin | Password: hunter2 | Room: 104
        id="labelled_cell",
        keywords=("password: ", "passwort: "),
        prefilter=r"(?:password|passwort):[ \t]\S{4,128}[ \t]\|",
        pattern=r"(?i)\b(?:password|passwort):[ \t]([^\s|\"']{4,128})[ \t]\|",
        mixed=True,
    ),
    Statement(
        # | Password | hunter2 |
        id="labelled_cell",
        keywords=("|", "**"),
        prefilter=(
            r"(?:password|passwort|passphrase|secret|token|api[ _-]?key)[ \t]*"
            r"(?:\||:?[ \t]*\*\*|\*\*:)"
        ),
        pattern=(
            r"(?i)(?:\|[ \t]*(?:\w+[ \t])?"
            + CELL_LABELS
            + r"[ \t]*\||\*\*(?:[\w-]+[ \t]){0,2}"
            + CELL_LABELS
            + r"[ \t]*(?::\*\*|\*\*[ \t]*:?))[ \t]*`?([^\s|`<>*]{6,256})`?[ \t\r]*(?:\||$|\n)"
        ),
        mixed=True,
    ),
    Statement(
        # Passcode: ...
        id="passcode_label",
        keywords=("passcode:",),
        pattern=r"(?i)\bpasscode:[ \t]([^\s\"'<>]{6,64})",
        mixed=True,
    ),
    Statement(
        # Secret question: name of first pet? Secret answer: hunter
        id="secret_answer",
        keywords=("secret answer", "security answer"),
        pattern=(
            r"(?i)\b(?:secret|security) answer(?: is)?[ \t]?:?[ \t]?(?:[\"']|“)?"
            r"([^\s\"',;.:]{3,64}?)(?:[\s\"',;.:]|”|$)"
        ),
    ),
    Statement(
        # Meeting ID: 735 7352 7352\nPasscode: a7c3f9e1
        id="meeting_passcode",
        keywords=("meeting id",),
        pattern=(
            r"(?i)\bmeeting id:?[^\r\n]{0,40}\r?\n[ \t]*(?:passcode|password|pwd):[ \t]*"
            r"([^\s\"'<>]{4,32})"
        ),
    ),
    Statement(
        # Please use the following API key for our reporting endpoint: ...
        id="key_said_in_a_sentence",
        keywords=("api key ", "access key "),
        prefilter=r"(?:api|access) key[^\r\n:]{0,60}:\s",
        pattern=r"(?i)\b(?:api|access) key[ \t][^\r\n:]{1,60}:[ \t]{1,3}([^\s\"'<>{}]{16,256})",
        kind="credential",
        likely=True,
    ),
    Statement(
        # Bot: your access token is .... Keep it secret.
        id="key_said_in_a_sentence",
        keywords=(
            "api key ",
            "access key ",
            "admin key ",
            "secret key ",
            "master key ",
            "api token ",
            "access token ",
        ),
        pattern=(
            r"(?i)\b(?:(?:api|access|admin|secret|master) key|(?:api|access) token)[ \t]+"
            r"(?:is[ \t]+)?([a-z0-9_-]{20,256})\b"
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        id="key_said_in_a_sentence",
        keywords=(
            "key you ",
            "key that ",
            "key we ",
            "key i ",
            "token you ",
            "token that ",
            "token we ",
            "token i ",
        ),
        pattern=(
            r"(?i)\b"
            + KINDS_OF_KEY
            + r" (?:that|you|we|i) [^\r\n.:]{1,60}? is:?[ \t]+"
            + OPTIONAL_QUOTE_OR_TICK
            + r"([a-z0-9._~+-]{20,256}[a-z0-9=])\b"
        ),
        kind="credential",
        likely=True,
    ),
    Statement(
        # Windows product key: a7c3f-a7c3f-a7c3f-a7c3f-a7c3f
        id="licence_key",
        keywords=(
            "licen",
            "lizenz",
            "licc",
            "product key",
            "serial",
            "activation",
            "aktivierung",
            "produkts",
        ),
        prefilter=(
            "(?:licen|lizenz|product|serial|activation|aktivierung|produkts)"
            r"[^\r\n]{1,80}[a-z0-9]{4}-[a-z0-9]{4}"
        ),
        pattern=(
            "(?i)"
            + LICENCE_WORDS
            + r"[^\r\n:]{0,60}?(?:\s?:|\s(?:is|ist|lautet|es|est|è|é)\s?:?)\s{0,3}"
            r"(?-i:((?:[A-Z0-9]{4,8}-){2,7}[A-Z0-9]{4,8}))\b"
        ),
        kind="credential",
        mixed=True,
    ),
    Statement(
        # passport no: 735201884
        id="passport_number",
        keywords=("passport", "reisepass", "passeport", "pasaporte"),
        pattern=(
            r"(?i)\b" + PASSPORT_NUMBER_LABEL + r"\.?[ \t]?[:#]?[ \t]?" + PASSPORT_NUMBER + r"\b"
        ),
        kind="personal_number",
    ),
)
