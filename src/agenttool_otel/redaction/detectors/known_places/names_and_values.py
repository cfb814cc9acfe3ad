"""Names and values that stand apart.

Group 1 is the name of what group 2 (or 3) holds; the name's class decides how the value has to look.
"""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    LINE_END,
    NAME,
    OPTIONAL_QUOTE,
    QUOTE,
    TO_NEXT_LINE,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

STORES: Final = (
    r"(?:kv|config|configure|consul|etcdctl|ssm|secrets?|vars?|variables?|env|param\w*"
    r"|setting\w*|option)\b"
)
NAME_ABOVE: Final = (
    "(?:[a-z]{2,12}[ _-])?(?:password|passphrase|passwort|passcode|secret"
    "|(?:access|api|auth)[ _-]?(?:token|key))"
)

STATEMENTS: Final = (
    Statement(
        # output "api_token" {\n  value = "..."
        id="terraform_block",
        keywords=("output ", "resource ", "data "),
        prefilter=r"(?:output|resource|data)\s+\\*\"\w+\\*\"",
        pattern=(
            r"\b(?:output|resource|data)\s+"
            + QUOTE
            + NAME
            + QUOTE
            + r"(?:\s+"
            + QUOTE
            + r"[\w.-]{1,80}"
            + QUOTE
            + r")?\s*\{[^{}]*?\b(?:value|result|secret|token|key)\s*=\s*"
            + QUOTE
            + r"([^\"'\r\n\\]{1,512})"
            + QUOTE
        ),
        named=True,
    ),
    Statement(
        # - name: DB_PASSWORD\n  value: hunter2
        id="name_and_value",
        keywords=("value", "</"),
        prefilter=r"</?value>|value[\\\"']*\s?[:=]|=[\"'][\w.:-]+[\"'][^<>]*>[^<>\s]",
        pattern=(
            r"(?i)\b(?:\w{1,16}?key|\w{1,16}?name|name|key|id|field|header|variable|parameter)(?:"
            + QUOTE
            + r")?[ \t]{0,20}[:=]\s?(?:"
            + QUOTE
            + ")?"
            + NAME
            + "(?:"
            + QUOTE
            + r")?[ \t]*(?:,\s{0,40}|\s{1,40})(?:[\w-]{1,20}=\"[^\"<>]{0,80}\"\s{1,40}){0,4}(?:"
            + QUOTE
            + r")?(?:\w{1,16}?value|value|val|content)(?:"
            + QUOTE
            + r")?[ \t]{0,20}[:=]\s?(?:"
            + QUOTE
            + r"([^\"'\r\n\\]{1,512})"
            + QUOTE
            + r"|([^\s\"'{}\[\],<>]{1,512}))"
        ),
        named=True,
    ),
    Statement(
        # <key>APIKey</key>\n<string>...</string>
        id="name_element_and_value_element",
        keywords=("value", "</"),
        pattern=(
            r"(?i)<(?:name|key|id)>\s{0,8}"
            + NAME
            + r"\s{0,8}</(?:name|key|id)>\s{0,64}<(?:value|string)>([^<>\r\n]{1,512})</"
        ),
        named=True,
    ),
    Statement(
        # <string name="backend_api_secret">...</string>
        id="element_with_name",
        keywords=("value", "</"),
        pattern=(
            r"(?i)\b(?:name|key|id)\s?=\s?[\"']"
            + NAME
            + r"[\"'][^<>\r\n]{0,80}>([^<>\r\n]{1,512})</"
        ),
        named=True,
    ),
    Statement(
        # <password>hunter2</password>
        id="element",
        keywords=("</",),
        prefilter=r"<[\w:]*(?:passw|pwd|secret|token)\w*[\s>]",
        pattern=(
            r"<(?:\w{1,16}:)?"
            + NAME
            + r"(?:\s[^<>\r\n]{0,300})?>\s{0,64}(?:<[Vv]alue>)?([^<>\s][^<>\r\n]{1,512})</"
        ),
        named=True,
    ),
    Statement(
        # password: |\n  hunter2
        id="yaml_block_scalar",
        keywords=(": |", ": >"),
        prefilter=r":[ \t]*[|>][-+]?\d?[ \t]*\r?\n",
        pattern=(
            "(?m)" + NAME + OPTIONAL_QUOTE + r":[ \t]*[|>][-+]?\d?[ \t]*\r?\n[ \t]+([^\r\n]{1,512})"
        ),
        named=True,
    ),
    Statement(
        # variable "smtp_password" {\n  default = "hunter2"
        id="terraform_variable",
        keywords=("variable ",),
        prefilter=r"variable\s+\"",
        pattern=(r"variable\s+\"" + NAME + r"\"\s*\{[^{}]*?default\s*=\s*\"([^\"\r\n]{1,512})\""),
        named=True,
    ),
    Statement(
        # #define API_SECRET "..."
        id="defined_constant",
        keywords=(
            'key "',
            'secret "',
            'token "',
            "key\t",
            "secret\t",
            "token\t",
            "credential",
            "#define",
        ),
        prefilter=r"(?:secret|token|key|credential)[\w-]*[ \t]+\"[^\"]{10}",
        pattern=(
            r"(?i)(?:^|[^\w.-])([A-Za-z_][\w-]{0,40}(?:secret|token|key|credential)[\w-]{0,24})"
            r"[ \t]+\"([^\"\r\n]{10,512})\""
        ),
        named=True,
    ),
    Statement(
        # #define WIFI_PASS "hunter2"
        id="defined_constant",
        keywords=("#define", "%define", "equ "),
        pattern=r"(?m)^[ \t]*[#%]define[ \t]+" + NAME + r"[ \t]+\(?L?\"([^\"\r\n]{3,512})\"",
        named=True,
    ),
    Statement(
        # setx API_TOKEN ...
        id="windows_setx",
        keywords=("setx",),
        prefilter=r"\bsetx\s",
        pattern=r"(?i)\bsetx[ \t]+" + NAME + r"[ \t]+\"?([^\s\"]{1,512})",
        named=True,
    ),
    Statement(
        # pulumi config set --secret dbPassword hunter2
        id="config_set",
        keywords=(" set ",),
        prefilter=r"config(?:ure)?[ \t]+set",
        pattern=(
            r"\b(?:config|configure)[ \t]+set[ \t]+(?:--\w+[ \t]+)?"
            + NAME
            + r"[ \t]+"
            + OPTIONAL_QUOTE
            + word(1, 512)
        ),
        named=True,
    ),
    Statement(
        # ENV SECRET_KEY ...
        id="dockerfile_variable",
        keywords=("env ", "arg ", "env\t", "arg\t"),
        prefilter=r"\b(?:env|arg)[ \t]+\w+[ \t]+\S",
        pattern=(
            r"(?mi)^[ \t]*(?:ENV|ARG)[ \t]+"
            + NAME
            + r"[ \t]+(?:\"([^\"\r\n]{1,255})\"|([^\s=\"'][^\s\"']{0,255}))"
            + LINE_END
        ),
        named=True,
    ),
    Statement(
        # sealedsecret: recovered plain value for key "oauth-client-secret" -> ...
        id="property_set_to",
        keywords=("' to '", '" to "', '" -> ', "' -> "),
        pattern=(QUOTE + NAME + QUOTE + r"\s(?:to|->)\s" + QUOTE + r"?([^\"'\s]{3,256})"),
        mixed=True,
        named=True,
    ),
    Statement(
        # $ terraform output -raw cloudflare_api_token\n...
        id="printed_output",
        keywords=("output ",),
        prefilter=r"\boutput[ \t]+-raw[ \t]",
        pattern=(r"\boutput[ \t]+(?:-[\w-]+[ \t]+)+" + NAME + r"[ \t]*\r?\n" + word(6, 512)),
        named=True,
    ),
    Statement(
        # DBPassword:\n    Type: String\n    Default: hunter2
        id="default_of_parameter",
        keywords=("default:",),
        prefilter=r"\bdefault:[ \t]*\S",
        pattern=(
            r"(?m)^[ \t]*"
            + NAME
            + r":[ \t]*\r?\n(?:[ \t]+(?:Type|Description|NoEcho|MinLength|MaxLength)\b"
            + TO_NEXT_LINE
            + r"){0,6}[ \t]+Default:[ \t]*"
            + OPTIONAL_QUOTE
            + word(3, 256)
        ),
        named=True,
    ),
    Statement(
        # password: <%= ENV.fetch("DB_PW") { "hunter2" } %>
        id="default_of_variable",
        keywords=("env.fetch", "getenv(", "environ.get("),
        pattern=(
            r"(?i)(?:env\.fetch|getenv|environ\.get)\s?\(\s*"
            + QUOTE
            + NAME
            + QUOTE
            + r"\s*(?:,\s*|\)\s*\{\s*)"
            + QUOTE
            + r"([^\"'\r\n]{3,256})"
            + QUOTE
        ),
        named=True,
    ),
    Statement(
        # <meta-data android:name="io.fabric.ApiSecret" android:value="..."/>
        id="manifest_value",
        keywords=("android:value",),
        pattern=(
            "android:name="
            + QUOTE
            + NAME
            + QUOTE
            + r"\s+android:value="
            + QUOTE
            + r"([^\"'\r\n]{3,512})"
            + QUOTE
        ),
        named=True,
    ),
    Statement(
        # master_password = <<EOT\nhunter2
        id="here_document",
        keywords=("<<",),
        prefilter=(
            r"=\s*<<[-~]?" + OPTIONAL_QUOTE + "[a-z_]{2,20}" + OPTIONAL_QUOTE + r"[ \t]*\r?\n"
        ),
        pattern=(
            NAME
            + r"\s*=\s*<<[-~]?"
            + OPTIONAL_QUOTE
            + "[A-Za-z_]{2,20}"
            + OPTIONAL_QUOTE
            + r"[ \t]*\r?\n[ \t]*([^\r\n]{3,512}?)[ \t\r]*\n"
        ),
        named=True,
    ),
    Statement(
        # password | hunter2
        id="record_of_client",
        keywords=(" | ",),
        prefilter=r"(?:^|\n)[ \t]*\w*(?:passw\w*|pwd|secret|token|api_?key)[ \t]*\|[ \t]",
        pattern=(r"(?m)^[ \t]*" + NAME + r"[ \t]*\|[ \t]+([^\s|]{3,512})" + LINE_END),
        named=True,
    ),
    Statement(
        # consul kv put app/db_password hunter2
        id="put_into_store",
        keywords=(" put ", " set ", " write ", " add "),
        prefilter=r"\b" + STORES + r"[^\r\n|;]{0,40}\b(?:put|set|write|add)[ \t]",
        pattern=(
            r"\b"
            + STORES
            + r"[^\r\n|;]{0,40}?\b(?:put|set|write|add)[ \t]+(?:-{1,2}[\w-]+[ \t]+)*"
            + OPTIONAL_QUOTE
            + r"(?:[\w.:-]*[/.:])*([A-Za-z_][\w-]{1,63})"
            + OPTIONAL_QUOTE
            + r"[ \t]+"
            + OPTIONAL_QUOTE
            + r"([^\s\"'|;<>=-][^\s\"'|;<>]{2,511})"
        ),
        named=True,
    ),
    Statement(
        # {:password, "hunter2"}
        id="symbol_and_value",
        keywords=(":",),
        prefilter=r"[\s({]:\w*(?:passw\w*|pwd|secret|token|api_key),",
        pattern=(
            r"(?m)(?:^|[\s({]):" + NAME + r"\s*,\s*" + QUOTE + r"([^\"'\r\n\\]{3,256})" + QUOTE
        ),
        named=True,
    ),
    Statement(
        # php > echo $config->password;\nhunter2
        id="symbol_and_value",
        keywords=("> ", "irb", "in ["),
        prefilter=(
            r"(?:^|[\r\n])(?:>{1,3}|irb[^>\r\n]*>|(?:php|pry|ghci|scala|iex)[^>\r\n]*>"
            r"|in \[\d+\]:)[ \t]"
        ),
        pattern=(
            r"(?m)^(?:>{1,3}|(?:irb|php|pry|ghci|scala|iex|mysql|\[\d+\])[^>\r\n]*>|In \[\d+\]:)"
            r"[ \t][^\r\n]*?"
            + NAME
            + r"[\)\]\"';]*[ \t]*\r?\n(?:(?:=>|Out\[\d+\]:|=)[ \t]*)?"
            + OPTIONAL_QUOTE
            + word(6, 512)
            + OPTIONAL_QUOTE
            + LINE_END
        ),
        named=True,
    ),
    Statement(
        # set -Ux DB_PASSWORD hunter2
        id="exported_variable",
        keywords=("set -", "set --", "env:"),
        prefilter=r"\b(?:set[ \t]+-|env:\w+[ \t])",
        pattern=(
            r"(?:\bset[ \t]+(?:-{1,2}[\w-]+[ \t]+)+|(?i:\benv:))"
            + NAME
            + r"[ \t]+(?:-Value[ \t]+)?"
            + OPTIONAL_QUOTE
            + r"([^\s\"'|;-][^\s\"'|;]{2,511})"
        ),
        named=True,
    ),
    Statement(
        # Airtable.new("...")
        id="constructed_client",
        keywords=('("', "('", '(\\"'),
        prefilter=r"\(\\*[\"'][\w.=-]{20}",
        pattern=(
            r"(?:\bnew\s+)?\b"
            + NAME
            + r"\(\s*"
            + QUOTE
            + r"([\w.=+/-]{20,256})"
            + QUOTE
            + r"\s*[,)]"
        ),
        likely=True,
        named=True,
    ),
    Statement(
        # 1) "requirepass"\n2) "..."
        id="name_above_value",
        keywords=(') "', "hgetall"),
        pattern=(
            r"(?m)^[ \t]*\d{1,3}\)[ \t]+"
            + QUOTE
            + NAME
            + QUOTE
            + r"[ \t]*\r?\n[ \t]*\d{1,3}\)[ \t]+"
            + QUOTE
            + r"([^\"\r\n]{3,512})"
            + QUOTE
        ),
        named=True,
    ),
    Statement(
        # config get requirepass\nrequirepass\n...
        id="name_above_value",
        keywords=("config get", "etcdctl get", "hgetall"),
        pattern=(
            r"(?i)\b(?:config get|hgetall|etcdctl get)\b"
            + TO_NEXT_LINE
            + r"(?:[^\r\n]+\r?\n[^\r\n]+\r?\n){0,8}?"
            + OPTIONAL_QUOTE
            + r"(?:[\w.:-]*/)*"
            + NAME
            + OPTIONAL_QUOTE
            + r"[ \t]*\r?\n"
            + OPTIONAL_QUOTE
            + word(3, 512)
            + OPTIONAL_QUOTE
            + r"[ \t\r]*(?:\n|\z)"
        ),
        named=True,
    ),
    Statement(
        # access token\n...
        id="name_above_value",
        keywords=("pass", "secret", "token", "api", "access key"),
        prefilter=(
            r"(?:^|[\r\n])[ \t]*(?:[a-z]+[ _-])?(?:password|passphrase|passwort|passcode|secret"
            r"|token|key):?[ \t]*\r?\n"
        ),
        pattern=(
            r"(?mi)^[ \t]*("
            + NAME_ABOVE
            + r")[ \t]*:?[ \t]*\r?\n[ \t]*([^\s:\"'<>{}()\[\]=,;/]{8,512})[ \t\r]*(?:\n|\z)"
        ),
        mixed=True,
        named=True,
    ),
)
