"""The patterns of credentials in URLs, part by part."""

from __future__ import annotations

import re

import pytest

from agenttool_otel.readers.urls import credentials, fact

DRAWN = "hT7kQ92mzXw04LqPv8Rt"
LONG = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0U1v2W3x4Y5z6"


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (credentials._AWS_KEY, "AKIAQ3EGRZXWTF5KNP2M"),
        (credentials._AWS_KEY_OF_NO_SIGNATURE, "/AKIAQ3EGRZXWTF5KNP2M"),
        (credentials._GITHUB_TOKEN, f"github_pat_{LONG}"),
        (credentials._GITHUB_FILE_TOKEN, "?GHSAT0AAAAAACQ3EGRZXWTF5KNP2M"),
        (credentials._DRAWN_AFTER_SK, f"proj-{LONG}"),
        (credentials._MODEL_KEY, f"/sk-{LONG}"),
        (credentials._MODEL_KEY, "sk-" + "0af3" * 8),
        (credentials._TELEGRAM_BOT, f"/bot1234567:{LONG}"),
        (credentials._GOOGLE_KEY, f"AIza{LONG}"),
        (credentials._PRIVATE_KEY, "-----BEGIN%20RSA%20PRIVATE"),
        (credentials._PRIVATE_KEY, "-----BEGIN+PRIVATE"),
        (credentials._PRIVATE_KEY_IN_BASE64, f"LS0tLS1CRUdJTi{DRAWN}"),
        (credentials._USER, "postgres://me:"),
        (credentials._PASSWORD, f"{DRAWN}@"),
        (credentials._PASSWORD_IN_URL, f"u=redis://me:{DRAWN}@db"),
        (credentials._LETTER_AND_DIGIT, "a1"),
        (credentials._VENDOR_TOKEN, f"/whsec_{DRAWN}"),
        (credentials._VENDOR_TOKEN, f"hvs.{DRAWN}"),
        (credentials._SLACK_HOOK, f"/services/T01234567/B01234567/{DRAWN}"),
        (credentials._DISCORD_HOOK, f"/api/webhooks/123456789012345678/{LONG}"),
        (credentials._TOKEN_OWNERS, "refresh"),
        (credentials._LINK_KINDS, "invitation"),
        (credentials._TOKEN_USES, "sso"),
        (credentials._KEY_NAMES, "api_key"),
        (credentials._SESSION_NAMES, "jsessionid"),
        (credentials._TOKEN_NAMES, "token"),
        (credentials._TOKEN_PARAMETER, "&password_reset_token="),
        (credentials._TOKEN_PARAMETER, "?passwordReset_token="),
        (credentials._DRAWN_VALUE, "A1b"),
        (credentials._INVENTED_VALUE, DRAWN),
        (credentials._TOKEN_IN_QUERY, f"?access_token={DRAWN}"),
        (credentials._ACCESS_KEY_NAME, "secret_access_key="),
        (credentials._MIXED_LETTERS, "aA1"),
        (credentials._ACCESS_KEY, f"api_key: {DRAWN}"),
        (credentials._PASSWORD_VARIABLES, "SECRET_KEY"),
        (credentials._TOKEN_VARIABLES, "GITHUB_TOKEN"),
        (credentials._KEY_VARIABLES, "SIGNING_KEY"),
        (credentials._ASSIGNED_VARIABLE, f"DB_PASSWORD={DRAWN}"),
        (credentials._EXPANDED_VARIABLE, "${GH_TOKEN"),
        (credentials._EXPANDED_VARIABLE, "$(DB_PASSW"),
        (credentials._PASSWD_LINE, "root:x:0:0:root:/"),
        (credentials._WEATHER_KEY, "appid=" + "0af3" * 8),
        (credentials._MATRIX_PARAMETER, f";key={DRAWN}"),
        (credentials._INFURA, "infura io /v3/" + "0af3" * 8),
        (credentials._ALCHEMY, f"alchemyapi io /v2/{DRAWN}"),
        (credentials._QUICKNODE, "quiknode pro /" + "0af3" * 8),
        (credentials._SIGNED_OBJECT, "s3 eu-west-1 amazonaws com /b/o?X-Amz-Signature="),
        (credentials._SIGNED_OBJECT, "blob core windows net /c/b?sv=1&sig="),
        (credentials._SIGNED_GOOGLE_OBJECT, "googleapis com /b/o?GoogleAccessId="),
        (credentials._ORACLE_OBJECT, f"objectstorage eu oraclecloud com /p/{DRAWN}"),
        (credentials._CLOUDSMITH, f"dl cloudsmith io /{DRAWN}"),
        (credentials._SCHEME, "Bearer "),
        (credentials._MIXED_VALUE, "aA1"),
        (credentials._AUTHORIZATION, f"Basic {DRAWN}"),
        (credentials._SECRET_NAMES, "passwd"),
        (credentials._NAMED_SECRET.pattern, "password: x"),
        (fact._DOTTED, "example.org"),
        (fact._QUAD, "127.0.0.1"),
        (fact._REST, ":8080/a?b"),
        (fact._USER_NAME, "evil.example"),
        (fact._USER_QUAD, "10.0.0.1"),
    ],
)
def test_a_part_of_a_url_pattern_matches(part: str, sample: str) -> None:
    assert re.search(part, sample)


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (credentials._AWS_KEY, "AKIAQ3EGRZXWTF5KNP2MXX"),
        (credentials._AWS_KEY_OF_NO_SIGNATURE, "Credential=AKIAQ3EGRZXWTF5KNP2M"),
        (credentials._GITHUB_TOKEN, "github_pat_short"),
        (credentials._GITHUB_FILE_TOKEN, "XGHSAT0AAAAAACQ3EGRZXWTF5KNP2M"),
        (credentials._DRAWN_AFTER_SK, "this-is-only-a-name-of-many-words"),
        (credentials._MODEL_KEY, f"task-{LONG}"),
        (credentials._TELEGRAM_BOT, f"robot1234567:{LONG}"),
        (credentials._GOOGLE_KEY, "AIzashort"),
        (credentials._PRIVATE_KEY, "-----BEGIN CERTIFICATE"),
        (credentials._PRIVATE_KEY_IN_BASE64, "LS0tLS1CRUdJTi"),
        (credentials._USER, "postgres://db/a"),
        (f"^{credentials._PASSWORD}", "password@"),
        (f"^{credentials._PASSWORD}", "****@"),
        (f"^{credentials._PASSWORD}", "12345@"),
        (credentials._PASSWORD_IN_URL, "postgres://me:password@db"),
        (f"^{credentials._LETTER_AND_DIGIT}", "abc"),
        (credentials._VENDOR_TOKEN, f"xwhsec_{DRAWN}"),
        (credentials._VENDOR_TOKEN, "whsec_abcdefghijklmnopqrstuvw"),
        (credentials._SLACK_HOOK, "/services/T01234567/B01234567/"),
        (credentials._DISCORD_HOOK, "/api/webhooks/1/x"),
        (credentials._TOKEN_PARAMETER, "?csrf_token="),
        (f"^{credentials._DRAWN_VALUE}", "abc"),
        (f"^{credentials._INVENTED_VALUE}", "your-token"),
        (f"^{credentials._INVENTED_VALUE}", "Example1"),
        (credentials._TOKEN_IN_QUERY, "?token=your-token-here-1"),
        (credentials._ACCESS_KEY_NAME, "public_key="),
        (f"^{credentials._MIXED_LETTERS}", "abc1"),
        (credentials._ACCESS_KEY, "api_key=abcdefghijklmnopqrstuvw"),
        (credentials._ASSIGNED_VARIABLE, "PASSWORD=your-password-1"),
        (credentials._EXPANDED_VARIABLE, "${HOME"),
        (credentials._PASSWD_LINE, "root:x:1:1:root:/"),
        (credentials._WEATHER_KEY, "appid=1"),
        (credentials._MATRIX_PARAMETER, ";key=abcdefghijklmnopqrstuvw"),
        (credentials._INFURA, "infura io /docs"),
        (credentials._ALCHEMY, "alchemy com /docs"),
        (credentials._QUICKNODE, "quiknode pro /docs"),
        (credentials._SIGNED_OBJECT, "s3 amazonaws com /b/o?versionId="),
        (credentials._SIGNED_GOOGLE_OBJECT, "googleapis com /b/o?alt="),
        (credentials._ORACLE_OBJECT, "objectstorage eu oraclecloud com /n/x"),
        (credentials._CLOUDSMITH, "dl cloudsmith io /public/owner-repository"),
        (credentials._SCHEME, "unbearer "),
        (f"^{credentials._MIXED_VALUE}", "abc1"),
        (credentials._AUTHORIZATION, "Basic instructions"),
        (credentials._NAMED_SECRET.pattern, "subtoken: x"),
        (f"^{fact._DOTTED}$", "localhost"),
        (f"^{fact._QUAD}$", "1.2.3"),
        (f"^{fact._REST}$", ":123456"),
        (f"^{fact._USER_NAME}", "evil"),
        (fact._USER_QUAD, "1.10.0.0.1"),
    ],
)
def test_a_part_of_a_url_pattern_does_not_match(part: str, sample: str) -> None:
    assert not re.search(part, sample)


def test_every_shape_of_a_credential_is_sought() -> None:
    pattern = credentials._credential_value().pattern
    assert all(shape in pattern for shape in credentials._SHAPES)
