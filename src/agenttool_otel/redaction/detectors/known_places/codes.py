"""Codes, seeds and passwords in groups."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    OPTIONAL_QUOTE,
    WITHIN_COMMAND,
    any_case,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

RECOVERY_CODES: Final = any_case(
    r"(?:back-?up|recovery|scratch|emergency|rescue|single-use)[ _-]"
    r"(?:verification[ _-])?(?:codes?|keys)",
    # German
    "wiederherstellungscodes?|backup-?codes?|notfallcodes?",
    # French
    "codes? de (?:récupération|secours|sauvegarde)",
    # Spanish, Portuguese
    "códigos? de (?:recupera|respaldo|reserva|backup|seguran)",
    # Italian
    "codici? di (?:recupero|backup|riserva)",
    # Dutch
    "herstelcodes?|back-?upcodes?",
    # Scandinavian languages, Finnish
    "reserv(?:koder|ekoder)|gendannelseskoder|gjenopprettingskoder|återställningskoder",
    "varakoodi|palautuskoodi",
    # Polish, Czech, Russian
    "kody (?:zapasowe|odzyskiwania)",
    "zálo(?:žní|žné) kódy",
    "(?:р|Р)езервные коды|(?:к|К)оды восстановления",
    # Chinese, Japanese, Korean
    "恢复(?:代)?码|備用(?:驗證)?碼|备用(?:验证)?码",
    "バックアップ ?コード|リカバリー? ?コード",
    "백업 코드|복구 코드",
)
"""Codes that are kept for the day when the other factor is lost."""

LIST_MARK: Final = r"[ \t]*(?:\[[ x]\][ \t]+|\d{1,2}[.):][ \t]+|(?:[-*>]|•|☐)[ \t]+)?"
CODE_IN_ONE_WORD: Final = r"[a-z0-9]{0,9}\d[a-z0-9]{3,9}"
CODE_WITH_DIGIT_IN_SECOND: Final = (
    r"[a-z0-9]{3,8}(?:[ -](?:[a-z]{0,7}\d[a-z0-9]{2,7}|\d[a-z0-9]{2,7}))"
    "(?:[ -][a-z0-9]{3,8}){0,4}"
)
CODE_WITH_DIGIT_IN_FIRST: Final = r"[a-z]{0,7}\d[a-z0-9]{2,7}(?:[ -][a-z0-9]{3,8}){1,5}"
CODE_WITH_HYPHENS: Final = "[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}){1,5}"
GERMAN_CODES: Final = (
    "(?:bestätigungs|freischalt|sicherheits|zugangs|anmelde|aktivierungs|verifizierungs)code"
)
ENGLISH_CODES: Final = (
    "(?:2fa|mfa|door|gate|alarm|entry|lock|verification|sign-?in|log-?in|security) code"
)
IS_OR_COLON: Final = r"(?:\s(?:is|ist|lautet):?|\s?[:=])\s?"
IS_OR_COLON_OF_PIN: Final = r"(?:\s(?:is|ist|est|es|lautet):?|\s?[:=])\s?"
PURPOSES_OF_CODE: Final = (
    "verifica|acces|segur|sécur|un solo uso|usage unique|connexion|vérifi|confirm|acesso"
)
PURPOSES_BEHIND_CODE: Final = "(?:verifica|acces|segur|sécur|uso|unique|connexion|vérifi|confirm)"
ROMANCE_IS_OR_COLON: Final = r"(?:\s(?:es|est|è|é)\s?:?|\s?:)\s{0,3}"
ROMANCE_OR_ENGLISH_IS: Final = r"(?:\s(?:es|est|è|é|is)\s?:?|\s?:)\s{0,3}"
IS_YOUR: Final = (
    "(?:ist (?:dein|ihr|der)|is your|is the|es (?:tu|su)|est (?:ton|votre)|è il tuo"
    "|é o seu|is je|is uw)"
)
TAN: Final = "(?i:[smi]|push|chip|photo|sms)?-?TAN"
TAN_IS: Final = r"(?:[ \t]?[:=][ \t]{0,3}|[ \t])(?:(?:is|ist|lautet):?[ \t])?"
APP_PASSWORD: Final = "(?:app|application)(?:-specific)?[ _-]?passwords?"
GROUPS_OF_FOUR: Final = "([a-z]{4}(?:[ -][a-z]{4}){3}|[a-z0-9]{4}(?:[ -][a-z0-9]{4}){3,5})"
MAIL_ACCOUNT: Final = (
    r"(?:account|host|poll|server)[ \t]+[^\r\n]{1,80}\r?\n(?:[^\r\n]{0,80}\n){0,6}?"
)
CODES_LABEL: Final = r"(?:backup|recovery|scratch|emergency)[ -]codes?[^\r\n:]{0,40}:[ \t]*"
ONE_CODE_LABEL: Final = r"(?:backup|recovery|scratch|emergency)[ -]code(?: (?:is|was))?:?[ \t]+"
PIN_LABEL: Final = (
    "(?:pin|(?:door|gate|alarm|access|entry|lock|voicemail)[ -](?:pin|code))(?:[ -]?code)?"
)
PIN_OF: Final = r"(?: (?:der|des|du|de la|del|for|of)\b[^\r\n\d:]{0,30})?"
SEED_IN_GROUPS: Final = "((?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{1,4})"
SEED_LABEL: Final = "(?:(?:setup|secret) key|(?:mfa|2fa|totp|otp) (?:seed|secret))"
LINES_OF_CODES: Final = r"(?:[ \t]*[0-9a-f]{5}-[0-9a-f]{5}[ \t]*(?:\r?\n|\z)){3,16}"

STATEMENTS: Final = (
    Statement(
        # your verification code is 735201
        id="one_time_code",
        keywords=("código", "codigo", "code", "codice", "kodu", "kodunuz", "kod "),
        pattern=(
            "(?i)(?:"
            + PURPOSES_OF_CODE
            + "|bevestig|verificatie|conferma|doğrulama|onay|giriş|weryfikac|potwierdz)"
            r"[^\r\n\d:]{0,60}?" + ROMANCE_OR_ENGLISH_IS + r"(\d{4,8})\b"
        ),
        kind="access_code",
    ),
    Statement(
        # Su código de verificación es 735201
        id="one_time_code",
        keywords=("código", "codigo", "code", "codice"),
        pattern=(
            r"(?i)(?:código|codigo|codice|code)[^\r\n\d:]{0,60}?"
            + PURPOSES_BEHIND_CODE
            + r"[^\r\n\d:]{0,30}?"
            + ROMANCE_IS_OR_COLON
            + r"(\d{4,8})\b"
        ),
        kind="access_code",
    ),
    Statement(
        id="one_time_code",
        # "mTAN: 735201", "TAN=735201", "Ihre pushTAN lautet 735201"
        keywords=("tan ", "tan:", "tan="),
        pattern=r"\b" + TAN + TAN_IS + r"(\d{6})\b",
        kind="access_code",
    ),
    Statement(
        # G-735201 is your Google verification code.
        id="one_time_code",
        keywords=("code", "tan", "kodunuz", "código"),
        pattern=(
            r"(?i)\b(\d{4,8})\s" + IS_YOUR + r"\s[^\r\n.,;]{0,40}?(?:code|código|codice|\btan\b)"
        ),
        kind="access_code",
    ),
    Statement(
        # Zugangscode Tür: 7352
        id="one_time_code",
        keywords=("code", "passcode", "2fa"),
        prefilter=r"code[^\r\n\d]{0,60}\d{3}[- ]?\d",
        pattern=(
            r"(?i)\b(?:"
            + GERMAN_CODES
            + r"|your (?:[\w-]{1,20} ){1,3}code|passcode|"
            + ENGLISH_CODES
            + r"|code to (?:sign|log) in)\b[^\r\n\d:=]{0,50}?"
            + IS_OR_COLON
            + r"(\d{3}[- ]?\d{3}|\d{4,8})\b"
        ),
        kind="access_code",
    ),
    Statement(
        # enter 735201 to log in
        id="one_time_code",
        keywords=("code", "log in", "sign in", "verify"),
        prefilter=r"\b(?:use|enter|type)[ \t]\d{4}",
        pattern=(
            r"(?i)\b(?:use|enter|type)[ \t](\d{4,8})[ \t](?:as|to)\b[^\r\n.]{0,40}?\b"
            r"(?:code|log ?in|sign ?in|verify)\b"
        ),
        kind="access_code",
    ),
    Statement(
        # PIN: 7352
        id="pin_of_something",
        keywords=("pin", "code"),
        prefilter=r"\b(?:pin|code)\b[\w' ]{0,40}:\s?\d",
        pattern=(
            r"(?i)\b" + PIN_LABEL + r"(?: (?:for|of|to|at) [\w' ]{1,30})?\s?[:=]\s{0,3}(\d{4,8})\b"
        ),
        kind="access_code",
    ),
    Statement(
        id="pin_of_something",
        keywords=("pin", "puk"),
        prefilter=r"\b(?:pin|puk)\b[^\r\n\d]{1,40}\d{4}",
        pattern=(
            r"(?i)\b(?:pin|puk)\b(?:[ -]?code)?" + PIN_OF + IS_OR_COLON_OF_PIN + r"(\d{4,8})\b"
        ),
        kind="access_code",
    ),
    Statement(
        # cvv 735
        id="card_code",
        keywords=("cvv", "cvc", "csc"),
        prefilter=r"\b(?:cv[vc]2?|csc)[ \t]\d{3}",
        pattern=r"(?i)\b(?:cv[vc]2?|csc)[ \t]+(\d{3,4})\b",
        kind="access_code",
    ),
    Statement(
        # Recovery codes\na7c3f-a7c3f\na7c3f-a7c3f\na7c3f-a7c3f
        id="recovery_codes",
        keywords=("recovery", "backup", "2fa", "mfa", "two-factor"),
        pattern=(
            r"(?i)\b(?:recovery|backup|2fa|mfa|two-factor)\b[^\r\n]{0,80}\r?\n("
            + LINES_OF_CODES
            + ")"
        ),
        kind="access_code",
    ),
    Statement(
        # 2FA backup codes:\n73520188\n73520188
        id="recovery_codes",
        keywords=(
            "recover",
            "backup",
            "back-up",
            "scratch",
            "emergency",
            "rescue",
            "codes",
            "códigos",
            "codici",
            "herstel",
            "reserv",
            "zapas",
            "zálo",
            "резерв",
            "восстанов",
            "恢复",
            "備用",
            "备用",
            "バックアップ",
            "リカバリ",
            "백업",
            "복구",
        ),
        prefilter="(?:" + RECOVERY_CODES + ")",
        pattern=(
            "(?:"
            + RECOVERY_CODES
            + r")[^\r\n]{0,160}\r?\n(?:[^\r\n]{0,160}\r?\n){0,4}?((?:(?:"
            + LIST_MARK
            + "(?i:"
            + CODE_IN_ONE_WORD
            + "|"
            + CODE_WITH_DIGIT_IN_SECOND
            + "|"
            + CODE_WITH_DIGIT_IN_FIRST
            + "|"
            + CODE_WITH_HYPHENS
            + r")(?:[ \t]+\([a-z]{2,10}\))?[ \t|,;]*){1,6}(?:\r?\n|\z)){2,})"
        ),
        kind="access_code",
    ),
    Statement(
        # Recovery codes: a7c3f-a7c3f, a7c3f-a7c3f
        id="recovery_codes",
        keywords=(
            "backup code",
            "recovery code",
            "scratch code",
            "emergency code",
            "backup-code",
            "recovery-code",
        ),
        pattern=(
            r"(?i)\b"
            + CODES_LABEL
            + r"([a-z0-9]{0,8}\d[a-z0-9-]{3,12}(?:[ ,;]{1,3}[a-z0-9]{0,8}\d[a-z0-9-]{3,12}){1,20})\b"
        ),
        kind="access_code",
    ),
    Statement(
        # Your backup codes: 73520188 73520188 73520188
        id="recovery_codes",
        keywords=("backup code", "recovery code", "scratch code", "emergency code"),
        pattern=(
            r"(?i)\b"
            + CODES_LABEL
            + r"([a-z]{0,9}\d[a-z0-9]{0,10}(?:[ ,;]{1,3}[a-z]{0,9}\d[a-z0-9]{0,10}){1,20})\b"
        ),
        kind="access_code",
    ),
    Statement(
        id="recovery_codes",
        keywords=(
            "backup code",
            "recovery code",
            "scratch code",
            "emergency code",
            "backup-code",
            "recovery-code",
        ),
        pattern=(
            r"(?i)\b"
            + CODES_LABEL
            + r"([a-z0-9]{4,8}-[a-z0-9]{4,8}(?:[ ,;]{1,3}[a-z0-9]{4,8}-[a-z0-9]{4,8}){1,20})\b"
        ),
        kind="access_code",
    ),
    Statement(
        # backup code 7352 7352
        id="recovery_codes",
        keywords=("backup code", "recovery code", "scratch code", "emergency code"),
        pattern=(r"(?i)\b" + ONE_CODE_LABEL + r"(\d{4}[ -]\d{4}|\d{8}|[a-z0-9]{5}-[a-z0-9]{5})\b"),
        kind="access_code",
    ),
    Statement(
        # $ oathtool --totp -b ...
        id="totp_seed",
        keywords=("oathtool",),
        pattern=(
            r"\boathtool\b"
            + WITHIN_COMMAND
            + r"[ \t]"
            + OPTIONAL_QUOTE
            + "([A-Za-z0-9=]{16,128})"
            + OPTIONAL_QUOTE
            + r"[ \t\r]*(?:$|[|;&\n)])"
        ),
        kind="otp_seed",
    ),
    Statement(
        # the code to enter by hand: ...
        id="totp_seed",
        keywords=("by hand", "manually"),
        pattern=(
            r"(?i)\b(?:key|code|secret)\b[^\r\n:]{0,20}\b(?:by hand|manually)"
            r"\b[^\r\n:]{0,20}:[ \t]{0,4}([a-z2-7]{16,64})\b"
        ),
        kind="otp_seed",
    ),
    Statement(
        # setup key: abcd efgh
        id="totp_seed",
        keywords=("setup key", "secret key", "manual entry", "entry key", "authenticator key"),
        pattern=(
            r"(?i)\b(?:setup|secret|manual entry|entry|authenticator)(?: key)?"
            r"[^\r\n:]{0,40}:[ \t]{0,4}" + SEED_IN_GROUPS + r"\b"
        ),
        kind="otp_seed",
    ),
    Statement(
        # TOTP secret: ...
        id="totp_seed",
        keywords=(
            "setup key",
            "secret key",
            "mfa seed",
            "2fa seed",
            "totp seed",
            "otp seed",
            "mfa secret",
            "totp secret",
        ),
        pattern=(
            r"(?i)\b" + SEED_LABEL + r"\b[^\r\n:]{0,40}:[ \t]{0,4}([A-Z2-7]{16}|[A-Z0-9]{26,64})\b"
        ),
        kind="otp_seed",
    ),
    Statement(
        # key for your authenticator app: abcd efgh
        id="totp_seed",
        keywords=("authenticator",),
        pattern=(
            r"(?i)\b(?:key|code|secret)\b[^\r\n:]{0,30}\bauthenticator\b[^\r\n:]{0,20}:\s{0,6}"
            + SEED_IN_GROUPS
            + r"\b"
        ),
        kind="otp_seed",
    ),
    Statement(
        # Your Apple ID app-specific password: abcd efgh-abcd efgh-abcd efgh-abcd efgh
        id="app_password_in_groups",
        keywords=("app-specific password", "app specific password"),
        pattern=r"(?i)\bapp[- ]specific password\b[^\r\n]{0,60}\s{0,12}([a-z]{4}(?:-[a-z]{4}){3})\b",
    ),
    Statement(
        # host smtp.gmail.com\nport 587\nuser vereinskasse\npassword ...
        id="msmtp_password",
        keywords=("password ",),
        prefilter=(
            r"(?:host|account|server|poll)[ \t]+[^\r\n]{1,80}\n(?:[^\r\n]{0,80}\n){0,6}?"
            r"[ \t]*password[ \t]"
        ),
        pattern=(
            r"(?m)^[ \t]*"
            + MAIL_ACCOUNT
            + r"[ \t]*user(?:name)?[ \t]+\S+[ \t]*\r?\n(?:[^\r\n]{0,80}\n){0,2}?[ \t]*password[ \t]+"
            + OPTIONAL_QUOTE
            + word(4, 128)
            + OPTIONAL_QUOTE
            + r"[ \t]*$"
        ),
    ),
    Statement(
        # wordpress application password: a7c3 a7c3 a7c3 a7c3 a7c3 a7c3
        id="app_password_in_groups",
        keywords=(
            "app password",
            "app-password",
            "app_password",
            "apppassword",
            "application password",
            "application-specific password",
        ),
        pattern=(
            r"(?i)\b"
            + APP_PASSWORD
            + r"\b[^\r\n:=]{0,60}?(?:\s?[:=]|\sis|\r?\n|\s)\s{0,3}[\"'(]?"
            + GROUPS_OF_FOUR
            + r"\b"
        ),
        mixed=True,
    ),
    Statement(
        # app:\nabcd efgh
        id="groups_of_four",
        keywords=(" ",),
        prefilter=r"(?:^|[\"'\n])[a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4}(?:[\"'\r\n]|$)",
        pattern=r"(?m)(?:^|[\"'`:=]\s?)([a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4})[ \t\r]*(?:$|[\"'`])",
        mixed=True,
    ),
    Statement(
        # password: abcd efgh
        id="groups_of_four",
        keywords=("passw", "pass ", "kennwort"),
        prefilter=r"pass[^\r\n]{0,24}\s[a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4}\b",
        pattern=(
            r"(?i:\b(?:\w*passw(?:ord|ort|d)|pass|kennwort))[ \t\"'(:=]{1,4}"
            r"([a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4})(?:[^\w ]|$)"
        ),
        mixed=True,
    ),
)
