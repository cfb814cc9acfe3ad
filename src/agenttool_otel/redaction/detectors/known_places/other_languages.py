"""Sentences of other languages that name a password, a key or a code."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    OPENING_MARK,
    any_case,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

# case is folded for ASCII letters only, so other capitals stand beside their small letters
SECRET: Final = any_case(
    # German
    "passwort|kennwort|zugangsschlüssel|api-schlüssel",
    # French
    r"mot de passe|phrase secrète|clé api|clé d'api|jeton d'accès|\bcode wi-?fi|\bmdp\b",
    # Spanish, Catalan; Lithuanian, Latvian, Estonian; Icelandic
    r"contrase(?:ñ|n|ny)a|slaptažod|\bparole? serv|parool|lykilorð",
    # short forms of other languages
    r"wi-?fi (?:code|key)\b|\bpass(?:word)? (?:wi-?fi|của|ng|server)\b",
    # Spanish
    r"\bclave\b|frase secreta|token de acceso|llave de api",
    # Portuguese
    r"\bsenha\b|palavra-passe|chave (?:de |da )?api|chave de acesso|token de acesso",
    # Italian
    r"password (?:a|di|del|della|per)\b|\bparola d|chiave api|chiave di accesso",
    # Dutch
    "wachtwoord|wachtzin|toegangscode|api-sleutel",
    # Swedish, Danish, Norwegian
    "lösenord|lösenfras|api-nyckel|adgangskode|kodeord|api-nøgle|passord|api-nøkkel",
    # Finnish, Hungarian
    "salasana|tunnussana|api-avain|jelsz(?:ó|av)|api-kulcs",
    # Czech, Slovak, Polish
    r"\bheslo\b|\bhesla\b|api(?: |-)kl(?:í|ú)č",
    r"\bhas(?:ł|l)(?:o|em|a)\b|klucz api|klucz dostępu",
    # Slovenian, Croatian, Serbian, Romanian
    r"\bgeslo\b|lozink|parol(?:a|ă)\b|cheia api",
    # Turkish
    r"şifre|\bsifre|parolas(?:ı|i)|api anahtar",
    # Russian, Ukrainian
    "(?:п|П)арол(?:ь|я|ю|а)|(?:п|П)арольн|(?:т|Т)окен",
    "(?:к|К)люч(?: доступа)?(?: к)? api|api-ключ|кодов(?:ое|а) слово|(?:л|Л)озинк",
    # Greek
    "(?:κ|Κ)ωδικός|(?:κ|Κ)ωδικό |συνθηματικό|κλειδί api",
    # Arabic, Persian, Hebrew
    "كلمة (?:المرور|السر)|كلمة مرور|باسورد|رمز عبور|گذرواژه|مفتاح api",
    "סיסמ(?:ה|א|ת)|מפתח api",
    # Hindi
    "पासवर्ड|कूटशब्द|एपीआई कुंजी|api कुंजी",
    # Vietnamese, Indonesian, Thai
    r"mật khẩu|khóa api|kata sandi|\bsandi (?:wifi|untuk|akun|baru)|kunci api",
    "รหัสผ่าน|คีย์ api",
    # Japanese
    "パスワード|パスフレーズ|合言葉|暗証番号|api(?: )?キー|トークン|アクセスキー",
    # Chinese
    "密码|密碼|口令|(?:密|金)(?:钥|鑰)|令牌",
    # Korean
    "비밀번호|비번|암호|api ?키|토큰|패스워드",
)
"""A word for a password, a passphrase, a token or a key."""

SECRET_KEYWORDS: Final = (
    "passwort",
    "kennwort",
    "contrasenya",
    "slapta",
    "parole",
    "parool",
    "lykilor",
    "wifi ",
    "wi-fi ",
    "pass wi",
    "pass c",
    "pass ng",
    "pass server",
    "password wi",
    "password ng",
    "password server",
    "password a ",
    "hasł",
    "باسورد",
    "رمز عبور",
    "گذرواژه",
    "비번",
    "hasl",
    "schlüssel",
    "mot de passe",
    "phrase secr",
    "clé api",
    "clé d'api",
    "jeton d'acc",
    "code wi",
    "mdp",
    "contraseña",
    "contrasena",
    "clave",
    "frase secreta",
    "token de acces",
    "llave de api",
    "senha",
    "palavra-passe",
    "chave ",
    "password d",
    "password per",
    "parola",
    "chiave ",
    "wachtwoord",
    "wachtzin",
    "toegangscode",
    "sleutel",
    "lösen",
    "api-nyckel",
    "adgangskode",
    "kodeord",
    "api-nø",
    "passord",
    "salasana",
    "tunnussana",
    "api-avain",
    "jelsz",
    "api-kulcs",
    "heslo",
    "hesla",
    "api-kl",
    "api kl",
    "hasło",
    "haslo",
    "klucz",
    "geslo",
    "lozink",
    "parol",
    "cheia api",
    "ifre",
    "api anahtar",
    "арол",
    "окен",
    "люч",
    "кодов",
    "озинк",
    "ωδικ",
    "συνθηματικό",
    "κλειδί",
    "كلمة",
    "مفتاح",
    "סיסמ",
    "מפתח",
    "पासवर्ड",
    "कूटशब्द",
    "कुंजी",
    "mật khẩu",
    "khóa api",
    "sandi",
    "kunci api",
    "รหัสผ่าน",
    "คีย์",
    "パスワード",
    "パスフレーズ",
    "合言葉",
    "暗証番号",
    "キー",
    "トークン",
    "密码",
    "密碼",
    "口令",
    "钥",
    "鑰",
    "令牌",
    "비밀번호",
    "암호",
    "키",
    "토큰",
    "패스워드",
)
"""Literals of which each match of ``SECRET`` has one, in lower case where there is one."""

CODE: Final = any_case(
    "pin-?kod|kod pin|pin kodu|pin-код|пин-?код|ПИН-?код|engångskod|engangskod",
    # Swedish
    r"(?:verifierings|bekräftelse|inloggnings|säkerhets|dörr|port|larm)kod(?:en)?\b",
    # Danish, Norwegian
    "(?:verifikations|bekræftelses|sikkerheds|bekreftelses|verifiserings|sikkerhets|dør|alarm)kode",
    # Finnish
    "(?:vahvistus|turva|ovi|hälytys|kertakäyttö)koodi",
    # Russian, Ukrainian
    "(?:к|К)од (?:подтверждения|доступа|входа|для входа|авторизации|проверки|безопасности|домофона"
    "|двери|от|сигнализации)",
    "(?:проверочный|одноразовый|Одноразовый|защитный) (?:код|пароль)",
    "(?:к|К)од (?:підтвердження|доступу|входу)",
    # Polish, Czech, Hungarian
    "kod (?:weryfikacyjny|dostępu|jednorazowy|potwierdzający|do drzwi|do bramy|do alarmu|sms)",
    "(?:ověřovací|jednorázový|přístupový|bezpečnostní|potvrzovací) kód",
    r"(?:ellenőrző|megerősítő|belépési|biztonsági|egyszeri|kapu)\s?kód",
    # Romanian
    "cod(?:ul)? (?:de verificare|de acces|de confirmare|de securitate|unic)",
    # Greek
    "(?:κ|Κ)ωδικός (?:επαλήθευσης|επιβεβαίωσης|πρόσβασης|μίας χρήσης|ασφαλείας)",
    # Turkish
    "(?:doğrulama|onay|giriş|güvenlik|kapı|alarm) kodu",
    # Arabic, Hebrew
    "رمز (?:التحقق|الدخول|التأكيد|المرور|الأمان)",
    "כ?קוד (?:האימות|אימות|הגישה|הכניסה|האזעקה|חד)",
    # Hindi
    "ओटीपी|सत्यापन कोड",
    "otp (?:है|anda|của|kodu)",
    # Chinese, Japanese, Korean
    "(?:验证|驗證|动态|動態|校验|校驗|确认|安全|门禁)(?:码|碼)",
    "(?:認証|確認|セキュリティ|ワンタイム)(?:コード|パスワード)|暗証番号",
    "인증 ?(?:번호|코드)|보안 ?코드|비밀번호",
    # Vietnamese, Indonesian, Thai
    "mã (?:xác thực|xác nhận|xác minh|otp|pin)",
    "kode (?:otp|verifikasi|keamanan|akses|pin)",
    "รหัส(?:ผ่าน| ?otp|ยืนยัน|ความปลอดภัย)",
    # Dutch
    "(?:verificatie|bevestigings|beveiligings|toegangs|pin)code",
)
"""A word for a PIN, or for a code that is asked for once."""

_IS_A_SIGN: Final = r"\s?(?:：|:|—|–|→|->|=)"
IS_IN_EUROPE: Final = (
    "ist|lautet|est|es|era|é|è|is|luidt|to|jest|brzmi|je|zní|este|är|er|lyder|blev|blir|on|είναι"
)
IS_ELSEWHERE: Final = "это|теперь|là|adalah|ialah|هي|هو|היא|הוא|yeni"
_IS_A_VERB: Final = rf"\s(?:{IS_IN_EUROPE}|{IS_ELSEWHERE})(?:\s(?:nu|now|nun|jetzt|nyt))?:?\s"
IS: Final = (
    f"{_IS_A_SIGN}|{_IS_A_VERB}" + r"|c(?:'|’)est\s|(?:是|为|為|成|到|は|が|を|คือ|는|은|이|가)"
)
"""Alternatives for "is": a sign, a verb, or a particle that is written without spaces."""

_LETTERS: Final = "äöüßåæøéèêóñçłşıÄÖÜÅØ"
_FIRST: Final = f"[!#-&*-.0-9;=?-_a-~{_LETTERS}]"
_MIDDLE: Final = f"[!#-&(-.0-9;=?-_a-~{_LETTERS}]" + "{4,127}"
_LAST: Final = r"[!#-&*+\-0-9=?-Z^_a-~]"
VALUE: Final = f"({_FIRST}{_MIDDLE}{_LAST})" + r"""(?:[\s.,;!?)\]"'`]|[^\x00-\x7f]|\z)"""
"""A value without white space, as group 1; it does not go on as an address, a path or a time."""

AS_A_PASSWORD_STEMS: Final = (
    "als (?:passwor|kennw|wachtw)|comme mot de|como (?:contra|clave|senha)|come password"
    "|som (?:lös|adgang|passord)"
)
AS_THE_PASSWORD: Final = (
    "als (?:passwort|kennwort|wachtwoord)|comme mot de passe|como (?:contraseña|clave|senha)"
)
AS_THE_PASSWORD_TOO: Final = (
    "come password|som (?:lösenord|adgangskode|passord)|в качестве пароля|jako (?:hasł|heslo)"
)

STATEMENTS: Final = (
    Statement(
        # пароль: hunter2
        id="said_in_another_language",
        keywords=SECRET_KEYWORDS,
        prefilter="(?:" + SECRET + ")",
        pattern=(
            "(?:"
            + SECRET
            + r')[^\r\n:?!"<>]{0,60}?(?:'
            + IS
            + r")\s{0,3}(?:"
            + OPENING_MARK
            + r")?\s?"
            + VALUE
        ),
        mixed=True,
    ),
    Statement(
        # Das Passwort ...!x9
        id="said_in_another_language",
        keywords=SECRET_KEYWORDS,
        pattern=(
            "(?:"
            + SECRET
            + r')[^\r\n"<>]{0,60}?(?:\s|'
            + OPENING_MARK
            + ")([A-Za-z0-9]{2,40}[!@#$%^&*+=?~][A-Za-z0-9!@#$%^&*+=?~._-]{0,60}"
            "[A-Za-z0-9!@#$%^&*+=?~])"
        ),
        likely=True,
    ),
    Statement(
        # パスワード ... です
        id="said_in_another_language",
        keywords=SECRET_KEYWORDS,
        pattern=(
            "(?:"
            + SECRET
            + r')[^\r\n:?!"<>]{0,30}?\s(?:'
            + OPENING_MARK
            + r")?([!-~]{6,128}?)(?:'|’)?\s?(?:है|हैं|입니다|이에요|예요|です|oldu|olarak|d[ıiuü]r\b|lett\b)"
        ),
        mixed=True,
    ),
    Statement(
        # Das Passwort Falcon-Stone7352
        id="said_in_another_language",
        keywords=SECRET_KEYWORDS,
        pattern=(
            "(?:"
            + SECRET
            + r")[a-zа-яıişğ]{0,6}\s(?:"
            + OPENING_MARK
            + r")?([A-Z][a-z]{2,}[A-Za-z]{0,20}[-_.!+][A-Za-z]{3,20}[-_.!+]?\d{2,}\w{0,20})"
            r"(?:[\s.,;)\]\"'»]|[^\x00-\x7f]|\z)"
        ),
        mixed=True,
    ),
    Statement(
        # benutze ... als Passwort
        id="said_in_another_language",
        keywords=(
            "als pass",
            "als kennw",
            "als wachtw",
            "comme mot",
            "como contra",
            "como clave",
            "como senha",
            "come password",
            "som lös",
            "som adgang",
            "som pass",
            "арол",
            "jako has",
            "jako hes",
        ),
        prefilter="(?:" + AS_A_PASSWORD_STEMS + "|качестве пароля|jako h)",
        pattern=(
            r"(?i)(?:^|\s|"
            + OPENING_MARK
            + r")([^\s\"'`<>]{6,128}?)(?:\"|'|`|»|“|”)?\s(?:"
            + AS_THE_PASSWORD
            + "|"
            + AS_THE_PASSWORD_TOO
            + ")"
        ),
        mixed=True,
    ),
    Statement(
        # Ihr kod pin: 7352
        id="code_in_another_language",
        keywords=(
            "kod",
            "kód",
            "од",
            "pass",
            "парол",
            "ωδικ",
            "cod de",
            "codul",
            "رمز",
            "קוד",
            "ओटीपी",
            "otp",
            "कोड",
            "码",
            "碼",
            "コード",
            "パスワード",
            "暗証番号",
            "번호",
            "코드",
            "mã ",
            "รหัส",
            "code",
        ),
        prefilter="(?:" + CODE + ")",
        pattern=(
            "(?:"
            + CODE
            + r")[^\r\n\d]{0,50}?(?:"
            + IS
            + r"|\s)\s{0,3}(?:"
            + OPENING_MARK
            + r"|\[)?\s?(\d{3}[- ]\d{3}|\d{4,8})(?:[^\d.-]|\.\s|\.?\z)"
        ),
        kind="access_code",
    ),
)
