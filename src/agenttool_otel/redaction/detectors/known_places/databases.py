"""Databases: statements, clients, addresses."""

from __future__ import annotations

from typing import Final

from agenttool_otel.redaction.detectors.known_places.parts import (
    OPTIONAL_QUOTE,
    QUOTED_VALUE,
    word,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement

REDIS_RULE_OR_END: Final = r"(?:[ \t]+(?:[~&+%>-]|allkeys|allcommands|resetkeys)|[ \t\r]*(?:\n|\z))"
MEMBER_OF_SECRET: Final = r"(?:secret|password|session_token|bearer_token)\s+"

STATEMENTS: Final = (
    Statement(
        # ALTER USER 'app'@'%' IDENTIFIED BY 'hunter2';
        id="sql_identified_by",
        keywords=("identified ",),
        pattern=(
            r"(?i)\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?" + QUOTED_VALUE
        ),
    ),
    Statement(
        # set password "hunter2"
        id="sql_password",
        keywords=("password",),
        pattern=(
            r"(?i)\bpassword(?:\s+for\s+\S+\s*=|\s+=)?\s+(?:N|password\s*\(\s*)?" + QUOTED_VALUE
        ),
    ),
    Statement(
        # SET PASSWORD FOR 'bob'@'%' = PASSWORD('hunter2');
        id="sql_password",
        keywords=("password",),
        pattern=r"(?:^|[^\w.])(?:PASSWORD|password)\s*\(\s*" + QUOTED_VALUE + r"\s*\)",
    ),
    Statement(
        # EXEC sp_addlinkedsrvlogin 'ERP', 'false', NULL, 'report', 'hunter2';
        id="linked_server_login",
        keywords=("sp_addlinkedsrvlogin",),
        pattern=r"(?i)\bsp_addlinkedsrvlogin\b[^\r\n;]*,\s*N?" + QUOTED_VALUE,
    ),
    Statement(
        # PRAGMA key = 'hunter2';
        id="database_key",
        keywords=("pragma ",),
        pattern=r"(?i)\bpragma\s+(?:hexkey|rekey|key)\s*=\s*" + QUOTED_VALUE,
    ),
    Statement(
        # INSERT INTO users (name, password) VALUES ('ann', 'hunter2');
        id="inserted_secret",
        keywords=("values",),
        prefilter=r"(?:secret|password|token|api_key)\w*\s*\)\s*values",
        pattern=(
            r"(?i)\(\s*[^()]{0,200}\b\w*(?:secret|password|token|api_key)"
            r"\s*\)\s*values\s*\([^()]{0,300},\s*" + QUOTED_VALUE + r"\s*\)"
        ),
    ),
    Statement(
        # CREATE SECRET s3 (TYPE S3, KEY_ID 'AKIA...', SECRET '...', REGION 'eu-west-1');
        id="create_secret",
        keywords=("create secret", "persistent secret", "replace secret"),
        pattern=(
            r"(?i)\bcreate\s+(?:or\s+replace\s+)?(?:persistent\s+)?secret\b[^;]{0,300}?[\s(,]"
            + MEMBER_OF_SECRET
            + QUOTED_VALUE
        ),
    ),
    Statement(
        # Refresh failed: invalid_grant (refresh_token=...)
        id="grant_in_brackets",
        keywords=("_token=", "client_secret=", "api_key="),
        pattern=(
            r"(?i)\((?:refresh_token|access_token|id_token|client_secret|api_key)="
            r"([^\s()&\"']{8,})\)"
        ),
        kind="credential",
    ),
    Statement(
        # sqlplus scott/hunter2@//ora:1521/ORCL
        id="oracle_client",
        keywords=("sqlplus", "sqlldr", "expdp", "impdp", "rman"),
        pattern=(
            r"\b(?:sqlplus|sqlldr|expdp|impdp|rman)\s+(?:-\S+\s+|target\s+)*"
            + OPTIONAL_QUOTE
            + r"[A-Za-z][\w$]{0,60}/([^\s@/\"']{3,128})(?:@|\s|[\"']|$)"
        ),
    ),
    Statement(
        # robot/...@ORCL as sysdba
        id="oracle_login",
        keywords=("as sysdba", "as sysoper"),
        pattern=(
            r"(?i)(?:^|[\s\"'])[a-z][\w$#]{0,60}/([^\s\"'@/]{3,128})(?:@\S{1,128})?\s+as\s+sys"
            r"(?:dba|oper)\b"
        ),
    ),
    Statement(
        # jdbc:oracle:thin:etl/...@db:1521/orcl
        id="oracle_url",
        keywords=("jdbc:oracle",),
        pattern=r"(?i)jdbc:oracle:[a-z]+:[^\s\"'/@:]{1,64}/([^\s\"'@]{1,128})@",
        kind="url_password",
    ),
    Statement(
        # dataSource = etl:...@(db1:3306)/dw
        id="go_mysql_dsn",
        keywords=("@tcp", "@unix(", "@udp", "@cloudsql", "@("),
        pattern=r"[\w.$%{}-]{0,64}:([^\s\"'`]{1,128})@(?:(?:tcp|udp)[46]?|unix|cloudsql\w*)?\(",
        kind="url_password",
    ),
    Statement(
        # DSN=warehouse;UID=etl;PWD={...}
        id="odbc_braces",
        keywords=("={",),
        prefilter=r"(?:pwd|password)\s?=\s?\{",
        pattern=r"(?i)(?:^|[;\"'\s])(?:pwd|password)\s?=\s?\{([^{}\r\n]{1,128})\}",
        mixed=True,
    ),
    Statement(
        # db1:5432:*:app:...
        id="pgpass",
        keywords=(":5432:", ":5433:", ":6432:", ":*:"),
        pattern=(
            r"(?m)^[\w.*-]{1,128}:(?:5432|5433|6432|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:"
            r"([^\s:]{3,128})[ \t\r]*(?:[ \t]#.*)?$"
        ),
    ),
    Statement(
        # identified by authentication_string: '*...'
        id="mysql_hash",
        keywords=("authentication_string", "mysql_native_password", "identified by", "password("),
        pattern=r"(?:^|[\s\"'|,(])(\*[0-9A-F]{40})\b",
        kind="password_hash",
    ),
    Statement(
        # pgbouncer userlist: "app" "md5..."
        id="postgres_hash",
        keywords=('"md5', "'md5", "scram-sha-256$"),
        pattern=r"[\"'](md5[0-9a-f]{32}|SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=:]+)[\"']",
        kind="password_hash",
    ),
    Statement(
        # requirepass hunter2
        id="redis_config",
        keywords=("requirepass", "masterauth", "auth-pass"),
        pattern=(
            r"(?mi)(?:^[ \t]*(?:\d{1,6}[:-])?|\bset[ \t]+)"
            r"(?:requirepass|masterauth|sentinel auth-pass \S+)[ \t]+"
            + OPTIONAL_QUOTE
            + word(3, 256)
        ),
    ),
    Statement(
        # ACL SETUSER worker on >... ~* +@all
        id="redis_user",
        keywords=("acl setuser",),
        pattern=r"(?i)\bacl[ \t]+setuser\b[^\r\n]*?[ \t]>" + word(3, 128),
    ),
    Statement(
        # user exporter on >... ~* &* -@all +info +ping
        id="redis_user",
        keywords=(" on >", " off >"),
        pattern=(
            r"(?m)^[ \t]*user[ \t]+\S+[ \t]+(?:on|off)[ \t]+>([^\s\"'=][^\s\"']{2,127})"
            + REDIS_RULE_OR_END
        ),
    ),
)
