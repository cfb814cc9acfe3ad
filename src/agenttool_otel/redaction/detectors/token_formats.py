"""Documented token formats of providers.

Format facts are taken from the providers' documentation and from the rule set of gitleaks (MIT, see
NOTICE); the patterns are written for RE2 and for redaction, not copied. To add a format, add a
``TokenRule`` here; the tests fill its pattern with random values by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WORD_START: Final = r"(?:^|[^A-Za-z0-9_]|\\[nrt]|%[0-9A-Fa-f]{2})"
"""Where a word begins, an escaped line break or a percent-encoded byte before it included."""
BASE64_START: Final = r"(?:^|[^A-Za-z0-9_+/-]|\\[nrt]|%[0-9A-Fa-f]{2}|//?)"
"""The same where base64 cannot go on to the left."""
WORD_END: Final = r"(?:$|[^A-Za-z0-9_-])"
"""Where a word ends."""
HEX: Final = r"[0-9a-fA-F]"
"""A hexadecimal digit."""
UUID: Final = HEX + "{8}(?:-" + HEX + "{4}){3}-" + HEX + "{12}"
"""``123e4567-e89b-42d3-a456-426614174000``"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRule:
    """One format.

    Attributes:
        id: stable name, part of what redactions state.
        keywords: literals in lower case, one of which occurs in every match.
        pattern: RE2; group 1 is what is removed.
        kind: what is removed, of low cardinality; the id where empty.
        entropy: least Shannon entropy of group 1, in bits per byte.
        filler: whether matches made of x, stars and alphabets are dropped as examples.
        joined: whether it is distinctive enough to be looked for across line breaks.
        digit: whether a match without a digit must not read like words, because names have the
            same shape.
    """

    id: str
    keywords: tuple[str, ...]
    pattern: str
    kind: str = ""
    entropy: float = 0.0
    filler: bool = True
    joined: bool = False
    digit: bool = False


_JWT_START: Final = r"(?:^|[^A-Za-z0-9_+/-]|\\[nrt])"
_JWT_HEADER: Final = r"ey(?:J|Ai)[A-Za-z0-9_-]{13,}"
_JWT_CLAIMS: Final = r"ey(?:J|Ai)[A-Za-z0-9/\\_-]{14,}"
_JWT_SIGNATURE: Final = r"(?:[A-Za-z0-9/\\_-]{10,}={0,2})?"

_OPENAI_KEYS: Final = (
    r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,250}",
    r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
    r"sk-or-v1-[a-f0-9]{64}",
    r"sk-lf-[0-9a-f-]{36}",
    r"sk-[A-Za-z0-9]{48}",
    r"sk-[a-f0-9]{32}",
)
"""Keys of OpenAI, OpenRouter, Langfuse, and the older and other forms with the same beginning."""

_SLACK_TOKENS: Final = (
    r"xapp-\d-[A-Z0-9]+-\d+-(?i:[a-z0-9]+)",
    r"xox[bep]-(?:\d{6,15}-){1,3}[A-Za-z0-9]{18,40}",
    r"xoxe\.xox[bp]-\d-(?i:[a-z0-9]{100,180})",
    r"xoxe-\d-(?i:[a-z0-9]{120,160})",
    r"xox[os]-\d+-\d+-\d+-[a-fA-F\d]+",
    r"xox[ar]-(?:\d-)?[0-9a-zA-Z][0-9a-zA-Z-]{7,100}",
)
"""App-level, bot, user, refresh, legacy and workspace tokens."""

_PUTTY_LINES: Final = r"Lines: \d+(?:\s+[A-Za-z0-9+/=]{8,80})+(?:\s+Private-MAC: [0-9a-f]+)?"

_AZURE_SIGNATURES: Final = r"(?:\+ASt|ACDb|\+ABa|\+AMC|\+ASb|\+AEh|AIoT|\+ARm|\+ACR|AzCa)"
"""Signatures of the services, at a known place of their keys."""
_AZURE_KEYS: Final = (
    r"[A-Za-z0-9+/]{33,76}" + _AZURE_SIGNATURES + r"[A-Za-z0-9+/]{5,6}={0,2}",
    r"[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{5,6}={0,2}",
    r"[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{6}",
    r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}",
)


def _either(alternatives: tuple[str, ...]) -> str:
    """One of several expressions, as a group."""
    return "(" + "|".join(alternatives) + ")"


TOKEN_RULES: Final = (
    TokenRule(
        id="1password_secret_key",
        keywords=("a3-",),
        pattern=(
            WORD_START + "(A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})"
            "-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5})" + WORD_END
        ),
        entropy=3.2,
    ),
    TokenRule(
        # "eyJ" is the beginning of {" in base64
        id="1password_service_token",
        keywords=("ops_eyj",),
        pattern=WORD_START + "(ops_eyJ[A-Za-z0-9+/]{100,}={0,3})",
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="adobe_client_secret",
        keywords=("p8e-",),
        pattern=WORD_START + "(p8e-(?i:[a-z0-9]{32}))" + WORD_END,
        entropy=2.0,
    ),
    TokenRule(
        # Bech32 has no 1, b, i and o
        id="age_secret_key",
        kind="private_key",
        keywords=("age-secret-key-1",),
        pattern="(AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58})",
        filler=False,
    ),
    TokenRule(
        id="airtable_token",
        keywords=("pat",),
        pattern=WORD_START + r"(pat[A-Za-z0-9]{14}\.[a-f0-9]{64})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="alibaba_access_key",
        keywords=("ltai",),
        pattern=BASE64_START + "(LTAI(?i:[a-z0-9]{12,24}))" + WORD_END,
        entropy=2.0,
    ),
    TokenRule(
        # sk-ant-api03-..., sk-ant-admin01-...; all end in AA
        id="anthropic_key",
        keywords=("sk-ant-",),
        pattern=WORD_START + r"(sk-ant-[a-z]{2,10}\d\d-[A-Za-z0-9_-]{80,120}AA)" + WORD_END,
        entropy=3.0,
        filler=False,
        joined=True,
    ),
    TokenRule(
        id="artifactory_api_key",
        keywords=("akcp",),
        pattern=BASE64_START + "(AKCp[A-Za-z0-9]{64,72})" + WORD_END,
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        # "reftkn:" in base64
        id="artifactory_reference_token",
        keywords=("cmvmd",),
        pattern=BASE64_START + "(cmVmd[A-Za-z0-9]{59})" + WORD_END,
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        id="atlassian_token",
        keywords=("atatt3", "atctt3", "atbb"),
        pattern=(
            WORD_START + "(AT(?:ATT3|CTT3)[A-Za-z0-9_=-]{60,250}|ATBB[A-Za-z0-9]{24,32})" + WORD_END
        ),
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="authress_key",
        keywords=("acc_", "acc-"),
        pattern=(
            WORD_START + r"((?:sc|ext|scauth|authress)_(?i:[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-]"
            r"[a-z0-9-]{10,32}\.[a-z0-9+/_=-]{30,120}))" + WORD_END
        ),
        entropy=2.0,
    ),
    TokenRule(
        # AKIA... of a user, ASIA... of the security token service
        id="aws_access_key",
        keywords=("a3t", "akia", "asia", "abia", "acca"),
        pattern=BASE64_START + "((?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})" + WORD_END,
        entropy=2.5,
        joined=True,
    ),
    TokenRule(
        # 40 characters without a form of their own: only behind their access key id
        id="aws_secret_key",
        keywords=("akia", "asia"),
        pattern=(
            r'(?:AKIA|ASIA)[A-Z2-7]{16}(?:[\s"\',:;=|\\]|\\[nr]|\w{1,30}[:=]){1,12}'
            "([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])"
        ),
        entropy=3.5,
        digit=True,
    ),
    TokenRule(
        id="aws_bedrock_key",
        keywords=("absk",),
        pattern=BASE64_START + "(ABSK[A-Za-z0-9+/]{109,269}={0,2})(?:$|[^A-Za-z0-9+/=])",
        entropy=3.0,
        filler=False,
    ),
    TokenRule(
        # "bedrock.amazonaws.com" in base64
        id="aws_bedrock_session_key",
        keywords=("bedrock-api-key-",),
        pattern="(bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=_-]*)",
        filler=False,
    ),
    TokenRule(
        id="aws_mws_key",
        keywords=("amzn.mws",),
        pattern=r"(amzn\.mws\." + UUID + ")",
        entropy=3.0,
    ),
    TokenRule(
        # "8Q~" behind three characters
        id="azure_ad_client_secret",
        keywords=("q~",),
        pattern=(
            r"""(?:^|[\\'"`\s>=:(,])([a-zA-Z0-9_~.]{3}\dQ~[a-zA-Z0-9_~.-]{31,34})"""
            r"""(?:$|[\\'"`\s<),&;])"""
        ),
        entropy=3.3,
    ),
    TokenRule(
        id="azure_storage_key",
        keywords=("accountkey=",),
        pattern="(?i)AccountKey=([A-Za-z0-9+/]{80,90}={0,2})",
        entropy=3.5,
    ),
    TokenRule(
        # 84 characters, of which the 77th to the 80th are AZDO
        id="azure_devops_pat",
        keywords=("azdo",),
        pattern=BASE64_START + "([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="clickhouse_cloud_key",
        keywords=("4b1d",),
        pattern=BASE64_START + "(4b1d[A-Za-z0-9]{38})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="clojars_token",
        keywords=("clojars_",),
        pattern="(?i)(CLOJARS_[a-z0-9]{60})",
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="cloudflare_origin_ca_key",
        keywords=("v1.0-",),
        pattern=WORD_START + r"(v1\.0-[a-f0-9]{24}-[a-f0-9]{146})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="cloudflare_token",
        keywords=("cfut_", "cfat_", "cfk_"),
        pattern=WORD_START + "(cf(?:ut|at|k)_[A-Za-z0-9_-]{40,60})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="databricks_token",
        keywords=("dapi",),
        pattern=BASE64_START + r"(dapi[a-f0-9]{32}(?:-\d)?)" + WORD_END,
        entropy=2.7,
        joined=True,
    ),
    TokenRule(
        id="defined_networking_key",
        keywords=("dnkey",),
        pattern=WORD_START + "((?i:dnkey-[a-z0-9=_-]{26}-[a-z0-9=_-]{52}))" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="digitalocean_token",
        keywords=("v1_",),
        pattern=WORD_START + "(do[opr]_v1_[a-f0-9]{64})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="docker_token",
        keywords=("dckr_",),
        pattern=WORD_START + "(dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,60})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="doppler_token",
        keywords=("dp.",),
        pattern=WORD_START
        + r"(dp\.(?:pt|st|ct|sa|scim|audit)\.(?i:[a-z0-9_.-]{30,70}))"
        + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="duffel_token",
        keywords=("duffel_",),
        pattern=WORD_START + "(duffel_(?:test|live)_(?i:[a-z0-9_=-]{43}))" + WORD_END,
        entropy=2.0,
    ),
    TokenRule(
        id="dynatrace_token",
        keywords=("dt0",),
        pattern=WORD_START + r"(dt0[a-z]\d\d\.(?i:[a-z0-9]{24}\.[a-z0-9]{64}))" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="easypost_key",
        keywords=("ezak", "eztk"),
        pattern=BASE64_START + "(EZ[AT]K(?i:[a-z0-9]{54}))" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        # a cookie's s:ID.SIGNATURE, in which the colon may be percent-encoded
        id="express_session",
        keywords=("s%3a", "s:"),
        pattern=(
            r"(?:^|[^A-Za-z0-9_%])s(?:%3[Aa]|:)([A-Za-z0-9_-]{24,40}\."
            "(?:[A-Za-z0-9+/_-]|%2[BbFf]){42,60})" + WORD_END
        ),
        entropy=3.5,
    ),
    TokenRule(
        # 1234567890123456|AbCd...: the application's id and its secret
        id="facebook_app_token",
        keywords=("|", "%7c"),
        pattern=WORD_START + r"(\d{15,16}(?:\||%7[cC])[0-9A-Za-z_-]{27,40})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="facebook_page_token",
        keywords=("eaa",),
        pattern=BASE64_START + "(EAA[MC][A-Za-z0-9]{90,400})" + WORD_END,
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        id="figma_token",
        keywords=("figd_", "figo_", "figu_"),
        pattern=WORD_START + "(fig[dou]_[A-Za-z0-9_-]{36,60})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="flutterwave_key",
        keywords=("flwpubk", "flwseck"),
        pattern="(FLW(?:PUBK|SECK)(?:_TEST)?-(?i:[a-h0-9]{12,64}(?:-X)?))",
        entropy=2.0,
    ),
    TokenRule(
        id="flyio_token",
        keywords=("fo1_", "fm1", "fm2_"),
        pattern=(
            BASE64_START
            + r"((?:fo1_[\w-]{43}|fm1[ar]_[a-zA-Z0-9+/]{60,}={0,3}|fm2_[a-zA-Z0-9+/]{60,}={0,3}))"
            "(?:$|[^A-Za-z0-9+/=])"
        ),
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        id="frameio_token",
        keywords=("fio-u-",),
        pattern=WORD_START + "(fio-u-(?i:[a-z0-9_=-]{64}))" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="gcp_api_key",
        keywords=("aiza",),
        pattern=BASE64_START + r"(AIza[\w-]{35})" + WORD_END,
        entropy=3.6,
        joined=True,
    ),
    TokenRule(
        id="gcp_oauth_secret",
        keywords=("gocspx-", "ya29.", "1//0"),
        pattern=(
            WORD_START
            + r"(GOCSPX-[A-Za-z0-9_-]{24,40}|ya29\.[A-Za-z0-9_-]{30,}|1//0[A-Za-z0-9_-]{40,})"
            + WORD_END
        ),
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="github_token",
        keywords=("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        pattern=WORD_START + r"(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{60,255})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # glpat-....01.0z1a2b3c4: a routable token ends in its length and a checksum
        id="gitlab_token",
        keywords=(
            "glpat-",
            "gldt-",
            "glffct-",
            "glft-",
            "glimt-",
            "glagent-",
            "gloas-",
            "glptt-",
            "glrt-",
            "glcbt-",
            "glsoat-",
            "glrtr-",
            "glwt-",
        ),
        pattern=(
            WORD_START
            + "(gl(?:pat|dt|ffct|ft|imt|agent|oas|ptt|rt|cbt|soat|rtr|wt)-[0-9A-Za-z_-]{16,160}"
            r"(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?)" + WORD_END
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="gitlab_runner_token",
        keywords=("gr1348941",),
        pattern=WORD_START + r"(GR1348941[\w-]{20})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="gitlab_session_cookie",
        keywords=("gitlab_session=",),
        pattern="(_gitlab_session=[0-9a-z]{32})",
        entropy=3.0,
    ),
    TokenRule(
        # {"k":" in base64
        id="grafana_key",
        keywords=("eyjrijoi",),
        pattern=BASE64_START + "(eyJrIjoi(?i:[a-z0-9]{60,400}={0,3}))(?:$|[^A-Za-z0-9+/=])",
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="grafana_token",
        keywords=("glc_", "glsa_"),
        pattern=(
            WORD_START + "(glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})"
            "(?:$|[^A-Za-z0-9+/=_-])"
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="groq_key",
        keywords=("gsk_",),
        pattern=WORD_START + "(gsk_[A-Za-z0-9]{48,60})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="harness_token",
        keywords=("pat.", "sat."),
        pattern=(
            WORD_START
            + r"((?:pat|sat)\.[a-zA-Z0-9_-]{22}\.[a-zA-Z0-9]{24}\.[a-zA-Z0-9]{20})"
            + WORD_END
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="heroku_token",
        keywords=("hrku-",),
        pattern=(
            WORD_START
            + "(HRKU-(?:AA[0-9a-zA-Z_-]{58}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))"
            + WORD_END
        ),
        entropy=2.8,
        joined=True,
    ),
    TokenRule(
        # letters alone, as a long name has: 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
        id="huggingface_token",
        keywords=("hf_", "api_org_"),
        pattern=WORD_START + "((?:hf_|api_org_)[A-Za-z]{34})" + WORD_END,
        entropy=3.2,
        joined=True,
        digit=True,
    ),
    TokenRule(
        id="infracost_key",
        keywords=("ico-",),
        pattern="(?:^|[^A-Za-z0-9_./-])(ico-[A-Za-z0-9]{32})(?:$|[^A-Za-z0-9_.-])",
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="intra42_secret",
        keywords=("s-s4t2",),
        pattern=WORD_START + "(s-s4t2(?:ud|af)-[a-f0-9]{64})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="jwt",
        keywords=("eyj", "eyai"),
        pattern=_JWT_START + rf"({_JWT_HEADER}\.{_JWT_CLAIMS}\.{_JWT_SIGNATURE})",
        entropy=3.0,
    ),
    TokenRule(
        id="jwt_short",
        kind="jwt",
        keywords=("eyj",),
        pattern=(
            r"(?:^|[^A-Za-z0-9_+/-]|\\[nrt])(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\."
            "[A-Za-z0-9_-]{16,})" + WORD_END
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # five parts; the second, the encrypted key, may be empty (RFC 7516, 5.1)
        id="jwe",
        kind="jwt",
        keywords=("eyj",),
        pattern=(
            BASE64_START
            + r"(eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\."
            "[A-Za-z0-9_-]{8,})" + WORD_END
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # "eyJ" in base64: encoded twice, as Kubernetes keeps it
        id="jwt_base64",
        kind="jwt",
        keywords=("zxlk",),
        pattern=BASE64_START + "(ZXlK[A-Za-z0-9+/_-]{60,}={0,2})",
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="langsmith_key",
        keywords=("lsv2_",),
        pattern=WORD_START + "(lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="linear_key",
        keywords=("lin_",),
        pattern=WORD_START + "(lin_(?:api|oauth)_(?i:[a-z0-9]{40,64}))" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="lob_key",
        keywords=("test_", "live_"),
        pattern=WORD_START + "((?:live|test)_(?:pub_[a-f0-9]{31}|[a-f0-9]{35}))" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # the data centre ends it: ...-us21
        id="mailchimp_key",
        keywords=("-us",),
        pattern=BASE64_START + r"""([a-f0-9]{32}-us\d{1,2})(?:$|[`'"\s;,&]|\\[nr])""",
        entropy=2.8,
    ),
    TokenRule(
        id="mailgun_key",
        keywords=("key-", "pubkey-"),
        pattern=WORD_START + "((?:pub)?key-[a-f0-9]{32})" + WORD_END,
        entropy=2.8,
        joined=True,
    ),
    TokenRule(
        id="mailgun_signing_key",
        keywords=("mailgun",),
        pattern=WORD_START + "([a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8})" + WORD_END,
        entropy=2.8,
    ),
    TokenRule(
        id="mapbox_token",
        keywords=("pk.", "sk."),
        pattern=WORD_START + r"([ps]k\.(?i:[a-z0-9]{60,120}\.[a-z0-9_-]{22}))" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="maxmind_key",
        keywords=("mmk",),
        pattern=WORD_START + "([A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="microsoft_teams_webhook",
        kind="webhook_url",
        keywords=("webhook.office.com",),
        pattern=r"""(https?://[a-z0-9-]+\.webhook\.office\.com/webhookb?2?/[^\s"'`<>\\]{20,})""",
        entropy=3.0,
    ),
    TokenRule(
        id="netlify_token",
        keywords=("nfp_",),
        pattern=WORD_START + "(nfp_[A-Za-z0-9_-]{36,40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="new_relic_key",
        keywords=("nrak-", "nrii-", "nrjs-", "nral", "nraa-"),
        pattern=(
            WORD_START
            + "(NRAK-(?i:[a-z0-9]{27})|NR(?:II|JS)-(?i:[a-z0-9-]{19,32})|NRAA-[a-f0-9]{27})"
            + WORD_END
        ),
        entropy=2.0,
    ),
    TokenRule(
        id="notion_token",
        keywords=("ntn_", "secret_"),
        pattern=(
            WORD_START + r"(ntn_[0-9]{11}[A-Za-z]\w{34}|ntn_[0-9]{11}\w{15,22}[A-Za-z]\w{11,18}"
            "|secret_[A-Za-z0-9]{43})" + WORD_END
        ),
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="npm_token",
        keywords=("npm_",),
        pattern=WORD_START + "(npm_(?i:[a-z0-9]{36}))" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="nuget_key",
        keywords=("oy2",),
        pattern=BASE64_START + "(oy2[a-z0-9]{43})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="octopus_deploy_key",
        keywords=("api-",),
        pattern=r"""(?:^|[^A-Za-z0-9_./-])(API-[A-Z0-9]{26,32})(?:$|[`'"\s;,&]|\\[nr])""",
        entropy=3.2,
    ),
    TokenRule(
        id="openai_key",
        keywords=("sk-",),
        pattern=WORD_START + _either(_OPENAI_KEYS) + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # "sha256~" is a token's, "sha256:" the digest of an image
        id="openshift_token",
        keywords=("sha256~",),
        pattern=WORD_START + r"(sha256~[\w-]{43})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="perplexity_key",
        keywords=("pplx-",),
        pattern=WORD_START + "(pplx-[a-zA-Z0-9]{48})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="pinecone_key",
        keywords=("pcsk_",),
        pattern=WORD_START + "(pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{50,70})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="plaid_token",
        keywords=("access-",),
        pattern=(
            WORD_START + "(access-(?:sandbox|development|production)-" + UUID + ")" + WORD_END
        ),
        entropy=3.0,
    ),
    TokenRule(
        id="planetscale_token",
        keywords=("pscale_",),
        pattern=WORD_START + r"(pscale_(?:tkn|oauth|pw|pass)_(?i:[\w=.-]{32,64}))(?:$|[^\w=-])",
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="postman_key",
        keywords=("pmak-",),
        pattern=WORD_START + "(PMAK-(?i:[a-f0-9]{24}-[a-f0-9]{34}))" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="posthog_key",
        keywords=("phc_", "phx_"),
        pattern=WORD_START + "(ph[cx]_[A-Za-z0-9]{43,50})" + WORD_END,
        entropy=3.3,
        joined=True,
    ),
    TokenRule(
        id="prefect_key",
        keywords=("pnu_",),
        pattern=WORD_START + "(pnu_[a-zA-Z0-9]{36})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="pulumi_token",
        keywords=("pul-",),
        pattern=WORD_START + "(pul-[a-f0-9]{40})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        # a macaroon of version 2: the byte 0x02 is "Ag" in base64
        id="pypi_token",
        keywords=("pypi-ag",),
        pattern=WORD_START + r"(pypi-Ag[\w-]{60,})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="readme_key",
        keywords=("rdme_",),
        pattern=WORD_START + "(rdme_[a-z0-9]{70})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="replicate_token",
        keywords=("r8_",),
        pattern=WORD_START + "(r8_[A-Za-z0-9]{37,40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="rubygems_key",
        keywords=("rubygems_",),
        pattern=WORD_START + "(rubygems_[a-f0-9]{48})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="scalingo_token",
        keywords=("tk-us-",),
        pattern=WORD_START + r"(tk-us-[\w-]{48})(?:$|[^\w-])",
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="sendgrid_key",
        keywords=("sg.",),
        pattern=WORD_START + r"(SG\.(?i:[a-z0-9=_.-]{66}))(?:$|[^\w=-])",
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="sendinblue_key",
        keywords=("xkeysib-",),
        pattern=WORD_START + "(xkeysib-[a-f0-9]{64}-(?i:[a-z0-9]{16}))" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="sentry_token",
        keywords=("sntrys_", "sntryu_"),
        pattern=(
            WORD_START
            + "(sntrys_eyJ[A-Za-z0-9+/=_]{80,600}|sntryu_[a-f0-9]{64})(?:$|[^A-Za-z0-9+/=_-])"
        ),
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="settlemint_token",
        keywords=("sm_",),
        pattern=WORD_START + "(sm_(?:pat|aat|sat)_[A-Za-z0-9]{16})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="shippo_token",
        keywords=("shippo_",),
        pattern=WORD_START + "(shippo_(?:live|test)_[a-fA-F0-9]{40})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="shopify_token",
        keywords=("shpat_", "shpca_", "shppa_", "shpss_"),
        pattern=WORD_START + "(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})" + WORD_END,
        entropy=2.0,
        joined=True,
    ),
    TokenRule(
        id="sidekiq_key",
        keywords=("contribsys",),
        pattern=(
            r"""(?i)CONTRIBSYS__COM\w{0,20}["' ]{0,3}(?::|=|:=|=>)[\s'"`]{0,4}"""
            "([a-f0-9]{8}:[a-f0-9]{8})" + WORD_END
        ),
        entropy=2.0,
    ),
    TokenRule(
        id="slack_token",
        keywords=("xoxb-", "xoxp-", "xoxe", "xoxo-", "xoxs-", "xoxa-", "xoxr-", "xapp-"),
        pattern=WORD_START + _either(_SLACK_TOKENS) + "(?:$|[^A-Za-z0-9_])",
        entropy=2.6,
        joined=True,
    ),
    TokenRule(
        id="slack_webhook",
        kind="webhook_url",
        keywords=("hooks.slack.com",),
        pattern=(
            r"((?:https?://)?hooks\.slack\.com/(?:services|workflows|triggers)"
            "/[A-Za-z0-9+/]{40,60})"
        ),
        entropy=3.0,
    ),
    TokenRule(
        id="discord_webhook",
        kind="webhook_url",
        keywords=("/api/webhooks/",),
        pattern=(
            r"(https?://(?:[a-z]+\.)?discord(?:app)?"
            r"\.com/api/webhooks/\d{15,20}/[A-Za-z0-9_-]{50,80})"
        ),
        entropy=3.0,
    ),
    TokenRule(
        id="discord_bot_token",
        keywords=("discord", "bot", "client.run(", "client.login("),
        pattern=(
            WORD_START
            + r"([MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,40})"
            + WORD_END
        ),
        entropy=4.0,
        joined=True,
    ),
    # the first part is the base64 form of a number of 17 to 20 digits, which nothing else has
    TokenRule(
        id="discord_bot_token_bare",
        kind="discord_bot_token",
        keywords=(".",),
        pattern=(
            WORD_START + "((?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){5,6}"
            r"[A-Za-z0-9]{0,4}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,40})" + WORD_END
        ),
        entropy=3.5,
    ),
    TokenRule(
        id="sonarqube_token",
        keywords=("squ_", "sqp_", "sqa_"),
        pattern=BASE64_START + "(sq[apu]_[0-9a-f]{40})" + WORD_END,
    ),
    TokenRule(
        id="sourcegraph_token",
        keywords=("sgp_", "slk_"),
        pattern=(
            WORD_START
            + "(sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}|slk_[a-f0-9]{64})"
            + WORD_END
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="sourcegraph_legacy",
        kind="sourcegraph_token",
        keywords=("sourcegraph",),
        pattern=(
            r"""(?i)\bsourcegraph[\w .-]{0,20}["' ]{0,3}(?::|=|:=|=>)[\s'"`]{0,4}([a-f0-9]{40})"""
            + WORD_END
        ),
        entropy=2.7,
    ),
    TokenRule(
        id="square_token",
        keywords=("eaaa", "sq0"),
        pattern=BASE64_START + r"(EAAA[\w-]{22,60}|sq0[a-z]{3}-[\w-]{22,60})" + WORD_END,
        entropy=2.0,
    ),
    TokenRule(
        # pk_live_... is public and stays
        id="stripe_key",
        keywords=("sk_", "rk_", "whsec_"),
        pattern=(
            WORD_START
            + "([sr]k_(?:test|live|prod)_[A-Za-z0-9]{10,110}|whsec_[A-Za-z0-9+/]{24,64}={0,2})"
            + WORD_END
        ),
        entropy=2.5,
        joined=True,
    ),
    TokenRule(
        id="supabase_key",
        keywords=("sbp_", "sb_secret_"),
        pattern=WORD_START + "(sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,50})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="tailscale_key",
        keywords=("tskey-",),
        pattern=WORD_START + "(tskey-[a-z]+-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{16,40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # https://api.telegram.org/bot123456789:AAE.../getMe
        id="telegram_bot_token",
        keywords=(":a",),
        pattern="(?:" + WORD_START + r"|/bot)(\d{8,10}:A(?i:[a-z0-9_-]{34}))(?:$|[^A-Za-z0-9_-])",
        entropy=3.2,
    ),
    TokenRule(
        id="terraform_token",
        keywords=("atlasv1.",),
        pattern=WORD_START + r"((?i:[a-z0-9]{14}\.atlasv1\.[a-z0-9_=-]{60,70}))(?:$|[^\w=-])",
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="twilio_key",
        keywords=("sk",),
        pattern=BASE64_START + "(SK[0-9a-fA-F]{32})" + WORD_END,
        entropy=2.8,
    ),
    TokenRule(
        # the 21 and more A's are part of the format, no filler
        id="twitter_bearer",
        keywords=("aaaaaaaaaaaaaaaaaaaaa",),
        pattern=BASE64_START + "(A{21,23}[A-Za-z0-9%]{79,110})" + WORD_END,
        entropy=3.0,
        filler=False,
    ),
    TokenRule(
        id="typeform_token",
        keywords=("tfp_",),
        pattern=WORD_START + r"(tfp_(?i:[a-z0-9_.=-]{40,64}))(?:$|[^\w=.-])",
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="vault_token",
        keywords=("hvs.", "hvb.", "hvr."),
        pattern=WORD_START + r"(hv[sbr]\.[A-Za-z0-9_-]{24,400})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        # s.getElementsByClassNameOf has the same shape
        id="vault_legacy_token",
        kind="vault_token",
        keywords=("s.",),
        pattern=WORD_START + r"(s\.[A-Za-z0-9]{24})" + WORD_END,
        entropy=3.3,
        digit=True,
    ),
    TokenRule(
        id="xai_key",
        keywords=("xai-",),
        pattern=WORD_START + "(xai-[A-Za-z0-9]{70,90})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="yandex_key",
        keywords=("t1.", "aqvn", "yandex"),
        pattern=(
            WORD_START
            + r"(t1\.[A-Z0-9a-z_-]+=?={0,2}\.[A-Z0-9a-z_-]{80,90}={0,2}|AQVN[A-Za-z0-9_-]{35,38}"
            "|YC[a-zA-Z0-9_-]{38})" + WORD_END
        ),
        entropy=3.0,
    ),
    TokenRule(
        id="zapier_webhook",
        kind="webhook_url",
        keywords=("hooks.zapier.com",),
        pattern=r"(https?://hooks\.zapier\.com/hooks/catch/\d+/[a-z0-9]+/?)",
        entropy=3.0,
    ),
    TokenRule(
        id="azure_logic_webhook",
        kind="webhook_url",
        keywords=("logic.azure.com",),
        pattern=r"""(https?://[a-z0-9.-]+\.logic\.azure\.com[^\s"'`<>]*[?&]sig=[\w%-]{20,})""",
        entropy=3.0,
    ),
    TokenRule(
        id="openvpn_static_key",
        kind="private_key",
        keywords=("openvpn static key",),
        pattern=r"(-----BEGIN OpenVPN Static key V1-----[\s\S]*?-----END OpenVPN Static key V1-----)",
        filler=False,
    ),
    TokenRule(
        # the private lines go to their MAC; a text that was cut has none
        id="putty_private_key",
        kind="private_key",
        keywords=("putty-user-key-file-",),
        pattern=(
            r"(PuTTY-User-Key-File-[23]:[\s\S]*?Private-"
            rf"(?:MAC: [0-9a-f]+|{_PUTTY_LINES}))"
        ),
        filler=False,
    ),
    TokenRule(
        # 32 bytes in base64: the last two bits of the 43rd character are zero
        id="wireguard_private_key",
        kind="private_key",
        keywords=("privatekey",),
        pattern=r"(?i)\bPrivateKey\s*=\s*([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)",
        entropy=3.0,
    ),
    TokenRule(
        id="ethereum_private_key",
        kind="private_key",
        keywords=("private", "0x"),
        pattern=r"""(?i)private[\w \-"']{0,12}[:=]\s*["']?((?:0x)?[a-f0-9]{64})\b""",
        entropy=3.0,
    ),
    TokenRule(
        # accounts: ["0x..."] of hardhat.config.js
        id="ethereum_accounts",
        kind="private_key",
        keywords=("accounts", "account"),
        pattern=r"""(?i)accounts?["']?\s?[:=]\s?\[\s?["']((?:0x)?[a-f0-9]{64})["']""",
        entropy=3.0,
    ),
    TokenRule(
        id="openweathermap_key",
        keywords=("appid=",),
        pattern="(?i)[?&]appid=([a-f0-9]{32})" + WORD_END,
        entropy=2.8,
    ),
    TokenRule(
        # Base58: 52 characters from K, L or c if the key is compressed, 51 from 5 or 9 if not
        id="bitcoin_wif_key",
        kind="private_key",
        keywords=("k", "l", "5", "c", "9"),
        pattern=(
            BASE64_START + "((?:[KLc][1-9A-HJ-NP-Za-km-z]{51}|[59][1-9A-HJ-NP-Za-km-z]{50}))"
            "(?:$|[^A-Za-z0-9_+/=-])"
        ),
        entropy=4.2,
    ),
    TokenRule(
        # BIP-32's xprv, and the yprv, zprv, ... of SLIP-132, in Base58
        id="extended_private_key",
        kind="private_key",
        keywords=("prv",),
        pattern=BASE64_START + "([xyztuvYZUV]prv[1-9A-HJ-NP-Za-km-z]{100,112})" + WORD_END,
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        id="contentful_management_token",
        keywords=("cfpat-",),
        pattern=WORD_START + "(CFPAT-[A-Za-z0-9_-]{43,64})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="dropbox_short_lived_token",
        kind="dropbox_token",
        keywords=("sl.",),
        pattern=WORD_START + r"(sl\.(?:u\.)?[A-Za-z0-9_-]{100,})" + WORD_END,
        entropy=3.8,
    ),
    TokenRule(
        id="adafruit_io_key",
        keywords=("aio_",),
        pattern=WORD_START + "(aio_[A-Za-z0-9]{28})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="launchdarkly_key",
        keywords=("sdk-", "mob-", "api-"),
        pattern=WORD_START + "((?:sdk|mob|api)-" + UUID + ")" + WORD_END,
        entropy=2.5,
    ),
    TokenRule(
        # Bech32 has no 1, b, i and o
        id="nostr_private_key",
        kind="private_key",
        keywords=("nsec1",),
        pattern=WORD_START + "(nsec1[02-9ac-hj-np-z]{58})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="backblaze_application_key",
        keywords=("k00",),
        pattern=BASE64_START + "(K00[0-9a-f][A-Za-z0-9+/]{27})(?:$|[^A-Za-z0-9+/=_-])",
        entropy=3.2,
        digit=True,
    ),
    TokenRule(
        # the secret address of a calendar in iCal format
        id="private_calendar_url",
        kind="webhook_url",
        keywords=("/private-",),
        pattern=r"/private-([0-9a-f]{32})/[\w.-]{1,64}\.ics",
        entropy=2.8,
    ),
    TokenRule(
        id="resend_key",
        keywords=("re_",),
        pattern=WORD_START + "(re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,32})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="salesforce_session",
        keywords=("00d",),
        pattern=WORD_START + "(00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,160})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        # {"a":" in base64
        id="cloudflare_tunnel_token",
        keywords=("eyjhijoi",),
        pattern=BASE64_START + "(eyJhIjoi[A-Za-z0-9+/]{80,400}={0,2})(?:$|[^A-Za-z0-9+/=])",
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="brevo_smtp_key",
        keywords=("xsmtpsib-",),
        pattern=WORD_START + "(xsmtpsib-[a-f0-9]{64}-[A-Za-z0-9]{16})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="asana_token",
        keywords=(":",),
        pattern=WORD_START + r"([012]/\d{12,20}(?:/\d{12,20})?:[a-f0-9]{32})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="tavily_key",
        keywords=("tvly-",),
        pattern=WORD_START + "(tvly-(?:dev-|prod-)?[A-Za-z0-9]{28,40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="nvidia_key",
        keywords=("nvapi-",),
        pattern=WORD_START + "(nvapi-[A-Za-z0-9_-]{60,70})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="jina_key",
        keywords=("jina_",),
        pattern=WORD_START + "(jina_[A-Za-z0-9_-]{50,70})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="e2b_key",
        keywords=("e2b_",),
        pattern=WORD_START + "(e2b_[a-f0-9]{40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="firecrawl_key",
        keywords=("fc-",),
        pattern=WORD_START + "(fc-[a-f0-9]{32})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="fireworks_key",
        keywords=("fw_",),
        pattern=WORD_START + "(fw_[A-Za-z0-9]{22,32})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="runpod_key",
        keywords=("rpa_",),
        pattern=WORD_START + "(rpa_[A-Z0-9]{36,60})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="elevenlabs_key",
        keywords=("sk_",),
        pattern=WORD_START + "(sk_[a-f0-9]{48})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="circleci_token",
        keywords=("ccipat_", "cciprj_"),
        pattern=WORD_START + "(CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[a-f0-9]{40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="buildkite_token",
        keywords=("bkua_", "bkat_", "bkct_"),
        pattern=WORD_START + "(bk(?:ua|at|ct)_[a-f0-9]{40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="snyk_token",
        keywords=("snyk_",),
        pattern=WORD_START + r"(snyk_(?:uat|sat)\.[a-f0-9]{8}\.[\w.-]{60,120})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="honeycomb_key",
        keywords=("hca", "hcb"),
        pattern=WORD_START + "(hc[ab][a-z]{2}_[a-z0-9]{58})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="axiom_token",
        keywords=("xaat-", "xapt-"),
        pattern=WORD_START + "(xa[ap]t-" + UUID + ")" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="clickup_token",
        keywords=("pk_",),
        pattern=WORD_START + r"(pk_\d{5,12}_[A-Z0-9]{32})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # ATTA, 64 hexadecimal digits in lower case, and a checksum in upper case
        id="trello_token",
        keywords=("atta",),
        pattern=BASE64_START + "(ATTA[0-9a-f]{64}[0-9A-F]{8})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        # "cio" and letters alone may be a long word
        id="crates_token",
        keywords=("cio",),
        pattern=BASE64_START + "(cio[A-Za-z0-9]{32})" + WORD_END,
        entropy=3.2,
        digit=True,
    ),
    TokenRule(
        id="packagist_token",
        keywords=("packagist_",),
        pattern=WORD_START + "(packagist_[a-z]{3}_[a-f0-9]{60,80})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="mailersend_key",
        keywords=("mlsn.",),
        pattern=WORD_START + r"(mlsn\.[a-f0-9]{64})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="onesignal_key",
        keywords=("os_v2_",),
        pattern=WORD_START + "(os_v2_(?:app|org)_[a-z0-9]{80,120})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="neon_key",
        keywords=("napi_",),
        pattern=WORD_START + "(napi_[a-z0-9]{60,70})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="xata_key",
        keywords=("xau_",),
        pattern=WORD_START + "(xau_[A-Za-z0-9]{36,44})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="atlas_secret",
        keywords=("mdb_sa_sk_",),
        pattern=WORD_START + "(mdb_sa_sk_[A-Za-z0-9_-]{36,48})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        # test_thatUsersWithoutAccountsCanPay is the name of a test
        id="mollie_key",
        keywords=("live_", "test_"),
        pattern=WORD_START + "((?:live|test)_[A-Za-z0-9]{30})" + WORD_END,
        entropy=3.5,
        digit=True,
    ),
    TokenRule(
        id="vercel_token",
        keywords=("vcp_", "vck_", "vci_", "vca_"),
        pattern=WORD_START + "(vc[pkia]_[A-Za-z0-9]{24,60})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="bitwarden_access_token",
        keywords=("0.",),
        pattern=WORD_START + r"(0\." + UUID + r"\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{22}==)",
        entropy=3.2,
    ),
    TokenRule(
        id="paypal_access_token",
        keywords=("access_token$",),
        pattern=(
            WORD_START
            + r"(access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32})"
            + WORD_END
        ),
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="vk_token",
        keywords=("vk1.a.",),
        pattern=WORD_START + r"(vk1\.a\.[A-Za-z0-9_-]{80,400})" + WORD_END,
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="exoscale_key",
        keywords=("exo",),
        pattern=BASE64_START + "(EXO[a-f0-9]{24})" + WORD_END,
        entropy=2.8,
    ),
    TokenRule(
        id="infisical_token",
        keywords=("st.",),
        pattern=WORD_START + r"(st\." + UUID + r"\.[a-f0-9]{32}\.[a-f0-9]{32})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="new_relic_license_key",
        keywords=("nral",),
        pattern=WORD_START + r"((?:(?:eu|us|jp)\d\dxx[a-f0-9]{30}|[a-f0-9]{36})NRAL)" + WORD_END,
        entropy=2.8,
        joined=True,
    ),
    TokenRule(
        id="slack_session",
        kind="slack_token",
        keywords=("xoxc-", "xoxd-"),
        pattern=WORD_START
        + r"(xoxc-(?:\d{6,15}-){2,3}[a-f0-9]{64}|xoxd-[A-Za-z0-9%+/_=-]{60,300})",
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="azure_annotated_key",
        keywords=(
            "+ast",
            "acdb",
            "+aba",
            "+amc",
            "+asb",
            "+aeh",
            "aiot",
            "+arm",
            "+acr",
            "azfu",
            "azse",
            "azca",
            "jqqj99",
        ),
        pattern=(r"(?:^|[^A-Za-z0-9+/_-])" + _either(_AZURE_KEYS) + "(?:$|[^A-Za-z0-9+/=])"),
        entropy=3.5,
    ),
    TokenRule(
        id="confluent_secret",
        keywords=("cflt",),
        pattern=BASE64_START + "(cflt[A-Za-z0-9+/]{60})(?:$|[^A-Za-z0-9+/=])",
        entropy=3.5,
        joined=True,
    ),
    TokenRule(
        id="render_key",
        keywords=("rnd_",),
        pattern=WORD_START + "(rnd_[A-Za-z0-9]{26,40})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="vercel_blob_token",
        keywords=("vercel_blob_rw_",),
        pattern=WORD_START + "(vercel_blob_rw_[A-Za-z0-9]{8,24}_[A-Za-z0-9]{20,50})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="cockroach_key",
        keywords=("ccdb1_",),
        pattern=WORD_START + "(CCDB1_[A-Za-z0-9]{22}_[A-Za-z0-9]{40})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="aiven_password",
        keywords=("avns_",),
        pattern=WORD_START + "(AVNS_[A-Za-z0-9_-]{18,24})" + WORD_END,
        entropy=2.8,
        joined=True,
    ),
    TokenRule(
        id="databricks_oauth_secret",
        kind="databricks_token",
        keywords=("dose",),
        pattern=BASE64_START + "(dose[a-f0-9]{32})" + WORD_END,
        entropy=2.7,
        joined=True,
    ),
    TokenRule(
        id="dbt_token",
        keywords=("dbtc_", "dbtu_", "dbts_"),
        pattern=WORD_START + "(dbt[cus]_[A-Za-z0-9_-]{30,60})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="together_key",
        keywords=("tgp_v1_",),
        pattern=WORD_START + "(tgp_v1_[A-Za-z0-9_-]{40,48})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="cerebras_key",
        keywords=("csk-",),
        pattern=WORD_START + "(csk-[a-z0-9]{40,60})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        # pa-... is too short alone: "voyage" stands before it on the line
        id="voyage_key",
        keywords=("voyage",),
        pattern=r"(?i:voyage)[^\r\n]{0,80}?[^A-Za-z0-9_](pa-[A-Za-z0-9_-]{43})" + WORD_END,
        entropy=3.2,
    ),
    TokenRule(
        id="apify_token",
        keywords=("apify_api_",),
        pattern=WORD_START + "(apify_api_[A-Za-z0-9]{34,42})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="llama_cloud_key",
        keywords=("llx-",),
        pattern=WORD_START + "(llx-[A-Za-z0-9]{40,60})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        # ak-... and 22 characters are too little alone: "modal" stands before it on the line
        id="modal_token",
        keywords=("modal",),
        pattern=r"(?i:modal)[^\r\n]{0,80}?[^A-Za-z0-9_](a[ks]-[A-Za-z0-9]{22})" + WORD_END,
        entropy=3.2,
    ),
    TokenRule(
        id="logfire_token",
        keywords=("pylf_v",),
        pattern=WORD_START + r"(pylf_v\d_(?:[a-z]{2,8}_)?[A-Za-z0-9]{40,60})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="statsig_key",
        keywords=("secret-",),
        pattern=(
            WORD_START + "(secret-(?:[A-Za-z0-9]{36,64}|(?:live|test)-[A-Za-z0-9_-]{36,64}=?))"
            "(?:$|[^A-Za-z0-9_=-])"
        ),
        entropy=3.8,
    ),
    TokenRule(
        id="netbird_token",
        keywords=("nbp_",),
        pattern=WORD_START + "(nbp_[A-Za-z0-9]{36})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="kong_token",
        keywords=("kpat_", "spat_"),
        pattern=WORD_START + "([ks]pat_[A-Za-z0-9]{40,80})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="woocommerce_key",
        keywords=("ck_", "cs_"),
        pattern=WORD_START + "(c[ks]_[a-f0-9]{40})" + WORD_END,
        entropy=3.0,
        joined=True,
    ),
    TokenRule(
        id="gocardless_token",
        keywords=("live_", "sandbox_"),
        pattern=WORD_START + "((?:live|sandbox)_[A-Za-z0-9_-]{40})" + WORD_END,
        entropy=3.6,
    ),
    TokenRule(
        id="tencent_key",
        keywords=("akid",),
        pattern=BASE64_START + "(AKID[A-Za-z0-9]{32})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="facebook_access_token",
        kind="facebook_page_token",
        keywords=("eaa",),
        pattern=BASE64_START + "(EAA[A-Z][A-Za-z0-9]{80,400})" + WORD_END,
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        id="instagram_token",
        keywords=("igqv", "igaa"),
        pattern=BASE64_START + "(IG(?:QV|AA)[A-Za-z0-9_-]{80,400})" + WORD_END,
        entropy=4.0,
        joined=True,
    ),
    TokenRule(
        id="pushbullet_token",
        keywords=("o.",),
        pattern=WORD_START + r"(o\.[A-Za-z0-9]{32})" + WORD_END,
        entropy=3.8,
    ),
    TokenRule(
        id="paseto",
        kind="jwt",
        keywords=(".local.", ".public."),
        pattern=WORD_START + r"(v[1-4]\.(?:local|public)\.[A-Za-z0-9_-]{40,1000})",
        entropy=3.5,
    ),
    TokenRule(
        # the version 0x80 and the first bytes of a time in seconds, in base64
        id="fernet_token",
        keywords=("gaaaaa",),
        pattern=BASE64_START + "(gAAAAA[A-Za-z0-9_-]{90,1000}={0,2})",
        entropy=3.8,
    ),
    TokenRule(
        id="swarm_token",
        keywords=("swmtkn-1-",),
        pattern=WORD_START + "(SWMTKN-1-[a-z0-9]{40,60}-[a-z0-9]{20,30})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="proxmox_token",
        keywords=("pveapitoken=",),
        pattern=r"PVEAPIToken=[^\s=]{3,80}=(" + UUID + ")",
        entropy=2.5,
    ),
    TokenRule(
        id="portainer_token",
        keywords=("ptr_",),
        pattern=WORD_START + "(ptr_[A-Za-z0-9+/]{40,48}={0,2})(?:$|[^A-Za-z0-9+/=])",
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="matrix_token",
        keywords=("syt_",),
        pattern=WORD_START + "(syt_[A-Za-z0-9+/=]{2,80}_[A-Za-z]{20}_[A-Za-z0-9]{6})" + WORD_END,
        entropy=3.2,
        joined=True,
    ),
    TokenRule(
        id="ifttt_key",
        kind="webhook_url",
        keywords=("maker.ifttt.com",),
        pattern=r"maker\.ifttt\.com/trigger/[^\s/]{1,80}/(?:json/)?with/key/([A-Za-z0-9_-]{20,64})",
        entropy=3.0,
    ),
    TokenRule(
        id="chat_webhook",
        kind="webhook_url",
        keywords=("/bot/v2/hook/", "hook.eu", "hook.us", "/hooks/"),
        pattern=(
            r"(?:/bot/v2/hook/|hook\.(?:eu|us)\d\.make\.com/|https?://[\w.-]+/hooks/)"
            "([A-Za-z0-9-]{24,48}(?:/[A-Za-z0-9]{20,64})?)" + WORD_END
        ),
        entropy=3.0,
    ),
    TokenRule(
        # what Google Authenticator exports as a QR code
        id="otp_migration",
        kind="otp_seed",
        keywords=("otpauth-migration",),
        pattern=r"otpauth-migration://offline\?data=([A-Za-z0-9+/%=_-]{16,})",
        entropy=2.5,
    ),
    TokenRule(
        id="shopify_theme_token",
        kind="shopify_token",
        keywords=("shptka_", "shpua_"),
        pattern=WORD_START + "(shp(?:tka|ua)_[a-f0-9]{32})" + WORD_END,
        entropy=2.8,
        joined=True,
    ),
    TokenRule(
        id="ably_key",
        keywords=("ably",),
        pattern=(
            r"(?i:ably)[^\r\n]{0,80}?[^A-Za-z0-9_]([A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{6}:"
            "[A-Za-z0-9_-]{20,60})" + WORD_END
        ),
        entropy=3.2,
    ),
    TokenRule(
        id="mandrill_key",
        keywords=("md-",),
        pattern=WORD_START + "(md-[A-Za-z0-9_-]{22})" + WORD_END,
        entropy=3.4,
        digit=True,
    ),
    TokenRule(
        # "EdScB2", the algorithms of a secret key, in base64
        id="minisign_secret_key",
        kind="private_key",
        keywords=("rwrty0iy",),
        pattern=BASE64_START + "(RWRTY0Iy[A-Za-z0-9+/]{100,}={0,2})",
        entropy=3.0,
    ),
    TokenRule(
        # hs_ed25519_secret_key of Tor
        id="onion_secret_key",
        kind="private_key",
        keywords=("ed25519v1-secret",),
        pattern=r"ed25519v1-secret: type0 ==\s{1,4}([A-Za-z0-9+/]{40,}={0,2})",
        entropy=3.0,
    ),
    TokenRule(
        id="openai_service_key",
        kind="openai_key",
        keywords=("sk-helicone-", "sk_car_", "sk-rh-"),
        pattern=(
            WORD_START
            + "(sk-helicone-[a-z0-9-]{20,60}|sk_car_[A-Za-z0-9_-]{20,40}|sk-rh-[A-Za-z0-9]{40,60})"
            + WORD_END
        ),
        entropy=3.0,
    ),
    TokenRule(
        id="coze_token",
        keywords=("pat_",),
        pattern=WORD_START + "(pat_[A-Za-z0-9]{64})" + WORD_END,
        entropy=3.5,
    ),
    TokenRule(
        id="mem0_key",
        keywords=("m0-",),
        pattern=WORD_START + "(m0-[A-Za-z0-9]{40})" + WORD_END,
        entropy=3.5,
    ),
    TokenRule(
        id="browserbase_key",
        keywords=("bb_live_",),
        pattern=WORD_START + "(bb_live_[A-Za-z0-9_-]{20,40})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="wandb_key",
        keywords=("wandb_v1_",),
        pattern=WORD_START + "(wandb_v1_[A-Za-z0-9_-]{40,120})" + WORD_END,
        entropy=3.5,
    ),
    TokenRule(
        id="linkedin_token",
        keywords=("wpl_ap1.",),
        pattern=WORD_START + r"(WPL_AP1\.[A-Za-z0-9]{12,24}\.[A-Za-z0-9+/=]{4,12})",
        entropy=3.0,
    ),
    TokenRule(
        # "ngrok config add-authtoken 2abc..."
        id="ngrok_token",
        keywords=("ngrok",),
        pattern=(
            r"(?i:ngrok)[^\r\n]{0,80}?[^A-Za-z0-9_]([12][A-Za-z0-9]{26}_[A-Za-z0-9]{20,22})"
            + WORD_END
        ),
        entropy=3.8,
    ),
    TokenRule(
        id="sentry_token_of_app",
        kind="sentry_token",
        keywords=("sntrya_",),
        pattern=WORD_START + "(sntrya_[a-f0-9]{64})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="scaleway_access_key",
        keywords=("scw",),
        pattern=BASE64_START + "(SCW[A-Z0-9]{17})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="spaces_access_key",
        keywords=("do00",),
        pattern=BASE64_START + "(DO00[A-Z0-9]{16})" + WORD_END,
        entropy=3.0,
    ),
    TokenRule(
        id="razorpay_key",
        keywords=("rzp_",),
        pattern=WORD_START + "(rzp_(?:live|test)_[A-Za-z0-9]{14})" + WORD_END,
        entropy=3.0,
    ),
)
"""The formats, in the order in which they are looked for."""
