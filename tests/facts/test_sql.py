"""What SQL facts promise: only what is known to read is called read-only, and writes name their
tables.
"""

from __future__ import annotations

import logging
import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel.readers.sql import sql_fact
from agenttool_otel.readers.sql.fact import _EXPLAIN, _PRAGMA, _SHOW, MAX_LENGTH
from agenttool_otel.readers.sql.names import is_secret_column, names_file
from agenttool_otel.readers.sql.text import Unproven, scan
from agenttool_otel.readers.types import SqlFact


def fact(query: object, dialect: str = "") -> SqlFact:
    return sql_fact(query, argument="/query", dialect=dialect)


READS = [
    ("", "select 1"),
    (
        "",
        "SELECT a, count(*) FROM t WHERE b = 'x' GROUP BY a HAVING count(*) > 1 ORDER BY 2 LIMIT 5",
    ),
    ("", "with q as (select * from t) select * from q union all select 1, 2"),
    (
        "",
        "select case when a then 1 else 2 end, cast(b as int), coalesce(c, d), max(f) over (partition by g) from t",
    ),
    (
        "",
        "select * from a join b using (id) where a.x in (select y from c) and exists (select 1 from d)",
    ),
    ("", "select 'drop table x; --' from t"),
    ("", "select 'it''s' from t;"),
    ("", "-- a comment\nselect 1 /* another */"),
    ("", "explain select * from t"),
    ("", "explain delete from t where a = 1"),
    ("mysql", "explain insert into t (a) values (1)"),
    ("postgres", "explain (format json) update t set a = 1 where b in (select c from d)"),
    ("tsql", "select string_agg(a, ', ') from t; -- done"),
    ("", "select id, name from dbo.Users order by id for json path"),
    ("", "select a.x, b.y from t as a, unnest(b) as b(y)"),
    ("", "values (1, 2)"),
    ("", "describe t"),
    ("", "show tables"),
    ("", "select `key`, `my-proj.ds`.`update` from `settings`"),
    ("", "select top 20 [Order Id] from [dbo].[Orders] with (nolock) order by [Order Id]"),
    (
        "",
        "select [Order Id] from [Sales].[Orders] order by 1 offset 10 rows fetch next 5 rows only",
    ),
    ("", "select * from unnest([1, 2, 3]) as x with offset as pos"),
    ("", "select * except (a) from `p.d.t` where b = 'x'"),
    ("", "select tags['en'], data #> '{address,city}' from people where data @> '{\"a\": true}'"),
    (
        "",
        "select group_concat(distinct tag separator '|') from t where ts > now() - interval '7 days'",
    ),
    ("", "select top (50) a, list_filter(b, x -> x > 1), safe_divide(c, d) from t"),
    ("", "select approx_quantiles(a, 100)[offset(95)] from `p.d.events_*`"),
    ("tsql", "select j.a from t cross apply openjson(b) with (a nvarchar(20) '$.a') j"),
    ("", "select json_value(a, '$.b'), strftime('%Y', c), toStartOfHour(d), uniq(e) from t"),
    (
        "postgres",
        "select data->>'a', x::text from t where y ilike '%z%' and d > now() - interval '1 day'",
    ),
    ("postgres", "explain (analyze, buffers) select * from t where a = $1"),
    ("mysql", "select `a` from `b` where c like '%x' # comment"),
    ("sqlite", "pragma table_info(t)"),
    ("tsql", "select top 5 [a b] from dbo.t"),
    ("bigquery", "select * from `p.d.t` where a = 1"),
]

NOT_READS = [
    ("", "select * from file('/etc/passwd', 'LineAsString')"),
    ("", "select * from file ('a.csv')"),
    ("", "select order_seq.nextval"),
    ("snowflake", 'select s."NEXTVAL" from t'),
    ("", "select * from `data/*.csv`"),
    ("", "select * from `x.csv*`"),
    ("", "select * from histogram('https://evil.example/x.csv', a)"),
    ("", "insert into t values (1)"),
    ("", "update t set a = 1 where b = 2"),
    ("", "delete from t"),
    ("", "drop table t"),
    ("", "truncate table t"),
    ("", "alter table t add column x int"),
    ("", "create table a as select * from b"),
    ("", "grant select on t to u"),
    ("", "merge into a using b on a.x = b.x when matched then delete"),
    ("", "select 1; drop table t"),
    ("", "select 1;\ndelete from t"),
    ("", "call p()"),
    ("", "begin; commit"),
    ("", "set x = 1"),
    ("", "use other"),
    ("", "explain analyze delete from t"),
    ("", "explain explain select 1"),
    ("", "explain update t set a = my_function(1)"),
    ("", "explain insert into t select sleep(9)"),
    ("", "explain delete from t; delete from t"),
    ("", "explain drop table t"),
    ("", "explain create table a as select 1"),
    ("postgres", "explain (analyse) delete from t where a = 1"),
    ("postgres", "explain with q as (delete from t returning a) select * from q"),
    ("", "select my_function(1)"),
    ("", "select s.lower('x')"),
    ("", "select sleep(10)"),
    ("", "select 1 shutdown"),
    ("", "select * from t checkpoint"),
    ("", "vacuum"),
    ("", "not sql at all"),
    ("", ""),
    ("", "   "),
    ("", "-- only a comment"),
    # where strings and comments end is not the same everywhere
    ("", "select 'a\\' , '; drop table x; --'"),
    ("", 'select "a\\" , "; drop table x; --"'),
    ("", "select '''a' , '; drop table x; --'"),
    ("", "select 1 --1"),
    ("", "select 1 # drop"),
    ("", "select $$a$$"),
    ("", "select q'[a']' from t"),
    ("", "select `a'b` from t"),
    ("", "select `; drop table t; --` from t"),
    ("", "select `a--b` from t"),
    ("", "select [a'b] from t"),
    ("", "select [a; drop table t; --] from t"),
    ("", "select a['b]', '; drop table t; --'] from t"),
    ("", "select a #> '{b}'\n; drop table t"),
    ("", "select * from t with (tablockx)"),
    ("", "select `a` from t into outfile '/x'"),
    ("", "select 1 /* a /* b */ ; drop table t -- */"),
    ("mysql", "select 1 /*!50000 ; drop table t */"),
    ("mysql", "/*! drop table t */"),
    ("mysql", "/*M! drop table t */"),
    ("mysql", "select /*!1 into outfile '/x' */ 1"),
    ("mysql", "select * from t into outfile '/x'"),
    ("mysql", "select load_file('/etc/passwd')"),
    ("mysql", "select @a := 1"),
    ("mysql", "load data infile 'x' into table t"),
    ("mysql", "replace into t values (1)"),
    ("mysql", "handler t open"),
    ("mysql", "select benchmark(1000000, md5(1))"),
    ("mysql", "select * from t for update"),
    ("mysql", "select get_lock('a', 1)"),
    ("postgres", "with x as (delete from t returning *) select * from x"),
    ("postgres", "with x as (insert into t values (1) returning *) select * from x"),
    ("postgres", "with x as (update t set a = 1 returning *) select 1"),
    ("postgres", "select * into n from t"),
    ("postgres", "select nextval('s')"),
    ("postgres", "select setval('s', 1)"),
    ("postgres", "select pg_sleep(1)"),
    ("postgres", "select pg_catalog.pg_sleep(1)"),
    ("postgres", "select lo_export(1, '/x')"),
    ("postgres", "select pg_read_file('/x')"),
    ("postgres", "select * from dblink('host=h', 'delete from t') as x(a int)"),
    ("postgres", "select set_config('a', 'b', false)"),
    ("postgres", "select query_to_xml('delete from t', true, true, '')"),
    ("postgres", "select pg_terminate_backend(1)"),
    ("postgres", "copy t to '/x'"),
    ("postgres", "copy (select 1) to program 'sh'"),
    ("postgres", "do $$ begin delete from t; end $$"),
    ("postgres", "explain (analyze) update t set a = 1"),
    ("postgres", "prepare p as delete from t"),
    ("postgres", "select a operator(evil.+) b from t"),
    ("postgres", "lock table t"),
    ("postgres", "notify c"),
    ("sqlite", "attach database 'x' as y"),
    ("sqlite", "pragma journal_mode = wal"),
    ("sqlite", "pragma writable_schema(1)"),
    ("sqlite", "select load_extension('x')"),
    ("sqlite", "select writefile('x', 'y')"),
    ("sqlite", ".shell rm x"),
    ("tsql", "exec xp_cmdshell 'dir'"),
    ("tsql", "select * from openrowset('a', 'b', 'c')"),
    ("tsql", "select 1 exec sp_who"),
    ("duckdb", "select * from read_csv('x.csv')"),
    ("duckdb", "select * from 'x.csv'"),
    ("duckdb", "copy t to 'x.csv'"),
    ("duckdb", "install httpfs"),
    ("clickhouse", "select * from url('http://h/x', CSV, 'a String')"),
    ("snowflake", "select * from @stage"),
    ("postgres", "select rolname, rolpassword from pg_authid"),
    ("postgres", 'select * from "pg_catalog"."pg_shadow" where usename = $1'),
    ("postgres", "with a as (select * from pg_authid) select 1 from a"),
    ("mysql", "select user, authentication_string from mysql.user"),
    ("mysql", "select 1 from t join `mysql`.`user` u on u.user = t.user"),
    ("tsql", "select name, password_hash from master.sys.sql_logins"),
    ("no-such-database", "select 1"),
]


@pytest.mark.parametrize(("dialect", "query"), READS)
def test_queries_that_only_read_are_proven(dialect: str, query: str) -> None:
    result = fact(query, dialect)
    assert (result["read_only"], result["parsed"], result["tables_written"]) == (True, True, [])


@pytest.mark.parametrize(("dialect", "query"), NOT_READS)
def test_everything_else_is_not_called_read_only(dialect: str, query: str) -> None:
    assert not fact(query, dialect)["read_only"]


@pytest.mark.parametrize(
    "query", [query for dialect, query in NOT_READS if dialect and query != "select 1"]
)
def test_an_unstated_dialect_is_never_read_more_freely(query: str) -> None:
    for text in (
        query,
        query.replace("select ", "select `c`, "),
        query.replace("select ", "select [c], "),
    ):
        assert not fact(text)["read_only"], text


@pytest.mark.parametrize("query", [query for dialect, query in NOT_READS if not dialect])
def test_a_read_in_front_or_behind_does_not_hide_a_write(query: str) -> None:
    assert (
        not fact(f"select 1; {query}")["read_only"] or not query.strip() or query.startswith("--")
    )
    assert (
        not fact(f"{query}\n; select 1")["read_only"] or not query.strip() or query.startswith("--")
    )


@pytest.mark.parametrize(
    ("query", "statements", "read", "written"),
    [
        ("select * from a join s.b using (i)", ["select"], ["a", "s.b"], []),
        ("insert into t select * from u", ["insert"], ["u"], ["t"]),
        ("update t set x = 1 from u where t.i = u.i", ["update"], ["u"], ["t"]),
        (
            "with q as (select * from r) delete from s.t where i in (select i from q)",
            ["delete"],
            ["r"],
            ["s.t"],
        ),
        ("drop table a, b", ["drop"], [], ["a", "b"]),
        ("create table a as select * from b", ["create"], ["b"], ["a"]),
        ("truncate table t", ["truncate"], [], ["t"]),
        ("select 1; drop table x", ["select", "drop"], [], ["x"]),
        ("explain delete from t", ["explain", "delete"], ["t"], []),
        ("merge into a using b on a.x = b.x when matched then delete", ["merge"], ["b"], ["a"]),
    ],
)
def test_statements_and_tables_are_named(
    query: str, statements: list[str], read: list[str], written: list[str]
) -> None:
    result = fact(query)
    assert (result["statements"], result["tables_read"], result["tables_written"]) == (
        statements,
        read,
        written,
    )


@pytest.mark.parametrize(
    ("query", "unbounded"),
    [
        ("delete from t", True),
        ("update t set a = 1", True),
        ("delete from t where 1 = 1", True),
        ("delete from t where true", True),
        ("delete from t where id = 1 or 1 = 1", True),
        ("delete from t where (id = 1 or ('a' = 'a'))", True),
        ("with x as (delete from t returning *) select * from x", True),
        ("delete from t where id = 1", False),
        ("update t set a = 1 where b = 2 and 1 = 1", False),
        ("select * from t", False),
    ],
)
def test_writes_without_a_real_condition_are_told(query: str, unbounded: bool) -> None:
    assert fact(query, "postgres")["unbounded_write"] is unbounded


def test_flags_of_definition_comment_and_number() -> None:
    assert fact("drop table t")["ddl"]
    assert fact("select * into n from t", "postgres")["ddl"]
    assert not fact("select 1")["ddl"]
    assert fact("select 1; select 2")["multiple"]
    assert fact("select 1; select 2")["read_only"]
    assert not fact("select 1;")["multiple"]
    assert fact("select 1 -- x")["comments"]
    assert fact("select /* x */ 1")["comments"]
    assert not fact("select '-- x'")["comments"]


def test_what_could_not_be_parsed_still_says_what_its_words_show() -> None:
    result = fact("select 1; drop tabel x cascade cascade cascade")
    assert not result["parsed"]
    assert result["statements"] == ["select", "drop"]
    assert result["ddl"]
    assert result["multiple"]


@pytest.mark.parametrize("value", [None, 1, b"select 1", ["select 1"], {}, object()])
def test_what_is_no_text_is_not_parsed(value: object) -> None:
    assert fact(value)["unparsed"] == "not_text"
    assert not fact(value)["read_only"]


def test_the_parser_logs_nothing_of_the_query(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        fact("call secret_procedure('topsecret')")
        fact("show topsecret weird !", "postgres")
    assert caplog.text == ""
    logging.getLogger("sqlglot").warning("others may still log")
    assert "others may still log" in caplog.text


HOSTILE = {
    "parentheses": "select " + "(" * 8000,
    "nested": "select " + "(" * 16 + "a in (1" + ")" * 17,
    "not": "select " + "not " * 4000,
    "minus": "select " + "- " * 7000,
    "plus": "select " + "1+" * 8000 + "1",
    "case": "select " + "case when a then " * 900,
    "union": "select 1 " + "union select 1 " * 1000,
    "dots": "select " + "a." * 8000,
    "semicolons": ";" * 16000,
    "casts": "select a" + "::int" * 3000,
    "subqueries": "select * from " + "(select * from " * 16 + "t" + ")" * 16,
    "joins": "select * from t" + " join t" * 2000,
    "lambdas": "select f(" + "x -> " * 3000,
    "arrays": "select a::" + "array<" * 2500,
    "exists": "select " + "exists " * 2000,
    "intervals": "select " + "interval " * 1800,
    "quotes": "'" * 16000,
    "megabyte": "select 1 " * 120_000,
    "megabyte of comments": "/*" * 500_000,
}


@pytest.mark.speed
@pytest.mark.parametrize("dialect", ["", "mysql", "duckdb"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_answered_in_bounded_time(name: str, dialect: str) -> None:
    fact("select 1")  # sqlglot and the table are loaded once
    started = time.thread_time()
    result = fact(HOSTILE[name], dialect)
    assert time.thread_time() - started < 20
    if len(HOSTILE[name]) > MAX_LENGTH:
        assert not result["parsed"]


@settings(max_examples=300, deadline=3000)
@given(
    st.text(max_size=200), st.sampled_from(["", "postgres", "mysql", "sqlite", "tsql", "nonsense"])
)
def test_any_text_gives_a_consistent_fact(text: str, dialect: str) -> None:
    result = fact(text, dialect)
    assert result["parsed"] is (result["unparsed"] is None)
    assert not (result["read_only"] and not result["parsed"])


_PIECE_TEXT = """
    select * from t where a = 1 'x' ; -- /* */ drop table insert into values ( ) , delete update set with as union all
    explain analyze pragma writable_schema table_info(t) attach x order by count(*) lower(a) random() null and or not
    limit replace begin commit vacuum create index on reindex case when then else end " ` [ ] || + last_insert_rowid()
"""
_QUERIES = st.lists(st.sampled_from(_PIECE_TEXT.split()), min_size=1, max_size=12).map(" ".join)


@pytest.mark.slow
@settings(max_examples=1500, deadline=3000)
@given(_QUERIES, st.sampled_from(["", "sqlite"]))
def test_a_generated_read_only_query_changes_nothing(query: str, dialect: str) -> None:
    """Run for real: SQLite's own count of changes, its schema and its settings stay as they
    were.
    """
    if not fact(query, dialect)["read_only"]:
        return
    with sqlite3.connect(":memory:", isolation_level=None) as base:
        base.execute("create table t (a int)")
        base.execute("insert into t values (1), (2)")
        before = (
            base.total_changes,
            list(base.iterdump()),
            base.execute("pragma schema_version").fetchall(),
        )
        try:
            for statement in query.split(";"):
                base.execute(statement).fetchall()
        except sqlite3.Error:
            pass
        assert (base.total_changes, list(base.iterdump())) == before[:2]
        assert base.execute("pragma schema_version").fetchall() == before[2]
        assert not base.in_transaction
    base.close()


@pytest.mark.parametrize(
    "query",
    [
        "with recursive t(n) as (select 1 union all select n+1 from t) select * from t",
        "with recursive t(n, s) as (select 1, 'x' union all select n + 1, s || s from t where n < 60) select s from t",
        "with recursive t(n, s) as (select 1, 'x' union all select n + 1, concat(s, s) from t where n < 60) select 1",
        "with recursive t(n, a, b) as (select 1, 1, 2 union all select n+1, a||b, b||a from t where n < 60) select 1",
        "with recursive t(n, s) as (select 1, 2 union all select n+1, replace(s, 2, 22) from t where n < 60) select 1",
        "with recursive t(n, s) as (select 1, 'x' union all select n + 1, hex(s) from t where n < 60) select 1",
        "select max(number) from system.numbers",
        "select max(number) from numbers(10000000000)",
        "summarize 'orders.csv'",
        "summarize orders.csv",
        "select * from orders.csv",
        "describe orders.csv",
        "show orders.csv",
        "show tables into outfile 'a.csv'",
        "show tables\ndrop table x",
        "select * from a[date '1'--'2' ]",
        "select struct(@a := 1)",
        "with recursive t(n) as (select 1 union all select n+1 from t where 1=1) select * from t",
        "select printf('%.*c', 1000000000, 'x')",
        "select printf('%1000000000d', 1)",
        "select repeat('x', 1000000000)",
        "select repeat('x', 10000 * 10000)",
        "select rpad('x', 1e9, 'y')",
        "select lpad('x', 200000 * level) from e connect by prior id = boss",
        "select * from generate_series(1, 1000000000000)",
        "select level from dual connect by 1 = 1",
        "select level from dual connect by level <= 100000000",
        "select level from orders connect by level <= 50",
        "select id from e connect by prior id = boss or 1 = 1",
        "select id from e connect by prior 1 = 1",
        "select id from e connect by nocycle prior id = prior boss",
        "select id from e connect by nocycle prior dept = dept",
        "select 1 from (select 1 union all select 2) connect by level <= 99",
        "select level from dual, (select 1 from dual connect by level <= 999) connect by level <= 999",
        "select repeat('x', 99 * level) from (select 1000000000 as level) t",
        "select /*+ SET_VAR(sort_buffer_size = 16G) */ id from orders",
        "select /*+ INDEX(t i) SET_VAR(sort_buffer_size = 16G) */ id from t",
        "select a from t order by a with fill from 1 to 99999999999",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n > 0) select max(n) from t",
        *(
            f"with recursive t(n) as (select 1 union all select {step} from t where {condition}) select n from t"
            for step, condition in (
                ("n + (-1)", "n < 10"),
                ("n + 0.0", "n < 10"),
                ("n * 1", "n < 10"),
                ("n / 1", "n > 0"),
                ("n - (-1)", "n > 0"),
                ("n + null", "coalesce(n, 0) < 5"),
                ("n + 1", "n * 0 < 5"),
                ("n + 1", "-n < 5"),
                ("n + 1", "n % 10 < 100"),
                ("n + 1", "n < n + 5"),
                ("n + 1", "n between 0 and n + 5"),
                ("n + 1", "n < 9000000000000000000"),
                ("n + 1", "n < 1e308"),
                ("likely(n)", "n < 10"),
                ("date(n, '-1 day')", "n < '2021'"),
                ("date(n)", "n < '2021'"),
                ("n || ''", "length(n) < 5"),
                ("substr(n, 1)", "n <> ''"),
                ("trim(n)", "n <> ''"),
                ("iif(n > 0, n, n)", "n is not null"),
                ("n + (select 1 limit 1)", "n > 0"),
                ("n + 1", "n < 9 union all select n - 1 from t where n > 0"),
                ("10 - n", "n > 1"),
                ("substr(n, -2)", "n <> ''"),
                ("substr('ab', 2)", "n <> ''"),
                ("n + interval '-1 day'", "n < now()"),
            )
        ),
        "with recursive t(n) as (select 1 union all select n + 1 from T) select n from t",
        "with recursive t(n) as (select 1 union all select n + 1 from t limit 999999999999) select n from t",
        "with recursive t(n) as (select 1 union all select t.n from t join s on s.name = s.name) select n from t",
        "with recursive t(n) as (select 1 union all select t.n from t join s on s.name = t.n) select n from t",
        "with recursive t(n) as (select 1 union all select n + 1 from t where 0 < n) select max(n) from t",
        "select a from t order by a with fill step 0.0000000001",
        "with recursive t(n) as (select 1 union all select n - 1 from t where n < 10) select max(n) from t",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n <> 0) select max(n) from t",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 9 or n > 0) select max(n) from t",
        "with recursive t(n) as (select 1 union all select n + 0 from t where n < 10) select max(n) from t",
        "with recursive t(n) as (select 1 union all select n % 7 + 1 from t where n < 99) select max(n) from t",
        "with recursive t(n, m) as (select 1, 1 union all select n + 1, m from t where m < 9) select max(n) from t",
        "with recursive t(n) as (select 1 union all select n from t where n = 1) select max(n) from t",
        "with recursive t(n) as (select 1 union all select t.n + 1 from t cross join regions) select max(n) from t",
        "with recursive t(n) as (select 1 union all select coalesce(n, 0) from t where n = 1) select max(n) from t",
    ],
)
def test_work_without_a_bound_is_not_proven(query: str) -> None:
    assert not sql_fact(query, argument="/q")["read_only"]


@pytest.mark.parametrize(
    "query",
    [
        "with recursive t(n) as (select 1 union all select n+1 from t where n < 10) select * from t",
        "with recursive t(n, s) as (select 1, 'x' union all select n + 1, s || ',' || n from t where n < 9) select 1",
        "with recursive t as (select id, name as p from e union all select e.id, t.p || e.name from e join t"
        " on e.boss = t.id) select p from t",
        "with recursive t(n) as (select 9 union all select n - 1 from t where n > 1) select * from t",
        "with recursive t(n) as (select 1 union all select cast(n + 2 as int) from t where 99 >= n) select * from t",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n between 1 and 9) select * from t",
        "with recursive d(x) as (select date '2026-01-01' union all select x + interval '1 day' from d"
        " where (x < date '2026-02-01')) select x from d",
        "with d as (select cast('2026-01-01' as date) as d union all select dateadd(day, 1, d) from d"
        " where d < '2026-02-01') select d from d",
        "with recursive d(x) as (select date('2026-01-01') union all select date(x, '+1 day') from d"
        " where x < '2026-02-01') select x from d",
        "with recursive Cnt(x) as (select 1 union all select X + 1 from cnt where X < 5) select x from cnt",
        "with recursive s(rest) as (select 'a,b' union all select substr(rest, instr(rest, ',') + 1) from s"
        " where rest <> '') select rest from s",
        "with recursive t as (select id from e union all select e.id from e join t using (boss)) select * from t",
        "select h from reads order by h with fill step toIntervalHour(1)",
        "with recursive t(n) as (select 1 union all select n+1 from t limit 10) select * from t",
        "with recursive t as (select id from e union all select e.id from e join t on e.boss = t.id) select * from t",
        "select level from dual connect by level <= 12",
        "select lpad(' ', 2 * level) || name from e start with boss is null connect by prior id = boss",
        "select id, sys_connect_by_path(name, '/') from e start with boss is null connect by nocycle prior id = boss",
    ],
)
def test_a_query_that_may_make_its_own_rows_is_a_question(query: str) -> None:
    """Each of them ends, which is not proven: enforcement runs such a query without a question."""
    result = sql_fact(query)
    assert result["parsed"]
    assert not result["read_only"]


@pytest.mark.parametrize(
    "query",
    [
        "select/*+ INDEX(r started_ix) */ r.shot from runs r",
        "select /*+ PARALLEL(4) */ count(*) from runs",
        "select [shot no], [peak energy (keV)] from [beam data].[runs 2026]",
        "select array_agg(struct(day, n)) from visits",
        "select id from customers for json path, root('customers')",
        "with t as (select id from orders) select * from t",
        "select printf('%5.2f', price), repeat('-', 20), lpad(name, 12, ' ') from orders",
        "select count(*) from orders where due = any(array[date '2024-03-31', date '2024-04-30'])",
        "summarize orders",
        "show index from orders where Key_name <> 'PRIMARY'",
        "select uniqExact(user_id), quantile(0.95)(ms) from requests where ts >= now() - interval 1 day",
    ],
)
def test_other_work_with_a_bound_is_proven(query: str) -> None:
    assert sql_fact(query, argument="/q")["read_only"]


@pytest.mark.parametrize(
    ("query", "proven"),
    [
        ("select email, password_hash from users where is_admin", False),
        ("select id, webhook_signing_secret from merchants", False),
        ("select id, stripe_api_key from merchants", False),
        ("select most_common_vals from pg_stats where attname = 'password'", False),
        ("select session_data from django_session", False),
        ("select id from users where has_password", True),
        ("select to_jsonb(u) ->> 'encrypted_password' from users u", False),
        ("select payload ->> 'status' from events", True),
        ("select client_id, secret from clients", False),
        ("select u.totp_secret from users as u", False),
        ("select email from users where refresh_token = 'x'", False),
        ("select id from users where (password like 'h%') is true", False),
        ("select count(case when password like 'h%' then 1 end) from users", False),
        ("select id from users where password is 'hunter2'", False),
        ("select count(password_hash) from users where password_digest is null", True),
        ("select email, password_changed_at, token_count from users", True),
    ],
)
def test_columns_that_hold_secrets_are_no_mere_reading(query: str, proven: bool) -> None:
    assert sql_fact(query, argument="/q")["read_only"] is proven


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("select 'a''b' from t", "select '''' from t"),
        ("select [Order Id] from t", "select [Order Id] from t"),
        ("select a[safe_offset(1)] from t", "select a[safe_offset(1)] from t"),
        ("select `a.b-c` from t", "select '' from t"),
        ("select 1 -- x\n, 2", "select 1  \n, 2"),
        ("select 1 /* x */", "select 1  "),
    ],
)
def test_a_scan_leaves_what_is_not_quoted(text: str, plain: str) -> None:
    assert scan(text, "")[0] == plain


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("select 1\x00", "control_character"),
        ("select 1 /*! x */", "executable_comment"),
        ("select 1 /*M! x */", "executable_comment"),
        ("select '\\'", "escaped_quote"),
        ("select " + "not " * 32, "too_deep"),
        ("select $a$x$a$", "dollar_quote"),
        ("select {x}", "ambiguous_quote"),
    ],
)
def test_a_scan_refuses_what_no_reading_is_certain_of(text: str, construct: str) -> None:
    with pytest.raises(Unproven, match=construct):
        scan(text, "")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("explain select 1", "select 1"),
        ("explain query plan select 1", "select 1"),
        ("explain format = json select 1", "select 1"),
        ("explain (analyze, buffers) select 1", "select 1"),
    ],
)
def test_each_form_of_explain_ends_before_its_statement(text: str, rest: str) -> None:
    match = _EXPLAIN.match(text)
    assert match is not None
    assert text[match.end() :] == rest


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pragma table_info(t)", "table_info"),
        ("pragma main.index_list('t');", "index_list"),
        ("pragma x = 1", None),
        ("pragma table_info(t); drop table t", None),
    ],
)
def test_a_pragma_is_one_name_with_one_value_at_most(text: str, name: str | None) -> None:
    match = _PRAGMA.match(text)
    assert (match and match[1]) == name


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("show tables", True),
        ("show columns from t like 'a%';", True),
        ("summarize orders", True),
        ("show orders.csv", False),
        ("show tables into outfile 'a'", False),
        ("show tables\ndrop table x", False),
        ("summarize a b", False),
    ],
)
def test_show_names_no_file_and_no_second_statement(text: str, shows: bool) -> None:
    assert (_SHOW.match(text) is not None) is shows


@pytest.mark.parametrize(
    ("column", "secret"),
    [
        ("password", True),
        ("client_secret", True),
        ("stripe_api_key", True),
        ("google_refresh_token", True),
        ("userpassword_hash", True),
        ("has_password", False),
        ("needs_api_key", False),
        ("token_count", False),
    ],
)
def test_columns_of_secrets_by_name(column: str, secret: bool) -> None:
    assert is_secret_column(column) is secret


@pytest.mark.parametrize(
    ("table", "file"),
    [
        ("orders.csv", True),
        ("data/x", True),
        ("s3:bucket", True),
        ("*.parquet", True),
        ("events_*", False),
        ("dbo.orders", False),
    ],
)
def test_tables_that_are_files_by_name(table: str, file: bool) -> None:
    assert names_file(table) is file


@pytest.mark.speed
@pytest.mark.parametrize(
    "query",
    [
        f"select a[{'timestamp(' * 18}t{')' * 18}] from s",
        f"select {'timestamp(' * 12}t{')' * 12} from s",
        f"select {'struct(' * 12}t{')' * 12} from s",
        f"select /*+ {'a' * 16_000} */ * from a",
        f"select {'[(' * 500}",
    ],
    ids=range(5),
)
def test_a_query_is_read_in_little_time_whatever_it_nests(query: str) -> None:
    started = time.thread_time()
    sql_fact(query, argument="/q")
    assert time.thread_time() - started < 2
