"""Compare every Rego builtin of the embedded engine with a real OPA, and write what comes out of it.

Run with a real OPA at hand (``AGENTTOOL_OPA`` or ``--opa``)::

    python tools/builtin_table.py

It evaluates the probes below on both, and writes ``policy/rego/builtin_probes.json`` of the
package (what it is checked against when it loads a bundle) and the table in ``docs/engines.md``.
``--check`` writes nothing and fails when the files are stale.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROBES_FILE = ROOT / "src" / "agenttool_otel" / "policy" / "rego" / "builtin_probes.json"
DOCS = ROOT / "docs" / "engines.md"
BEGIN, END = "<!-- builtins: begin -->", "<!-- builtins: end -->"

# Expressions by builtin. One that starts with "~" is a known difference in a corner: it is listed
# in the docs and does not take the builtin away. "ERR" in the results means: an error under strict
# builtin errors, or undefined.
PROBES: dict[str, list[str]] = {
    "abs": ["abs(-3)", "abs(2.5)"],
    "all": ["all([true, true])", "all([true, false])", "all([])"],
    "any": ["any([false, true])", "any([])"],
    "array.concat": ["array.concat([1], [2, 3])"],
    "array.flatten": ["array.flatten([1, [2, [3]]])"],
    "array.reverse": ["array.reverse([1, 2, 3])"],
    "array.slice": [
        "array.slice([1, 2, 3], 1, 2)",
        "array.slice([1, 2, 3], 2, 1)",
        "array.slice([1], -1, 9)",
    ],
    "base64.decode": ['base64.decode("aGk=")', 'base64.decode("?")'],
    "base64.encode": ['base64.encode("hi")'],
    "base64.is_valid": ['base64.is_valid("aGk=")', 'base64.is_valid("?")'],
    "base64url.decode": ['base64url.decode("aGk")', 'base64url.decode("aGk=")'],
    "base64url.encode": ['base64url.encode("hi??")'],
    "base64url.encode_no_pad": ['base64url.encode_no_pad("hi??")'],
    "bits.and": ["bits.and(6, 3)"],
    "bits.lsh": ["bits.lsh(1, 4)"],
    "bits.negate": ["bits.negate(5)"],
    "bits.or": ["bits.or(6, 3)"],
    "bits.rsh": ["bits.rsh(16, 2)"],
    "bits.xor": ["bits.xor(6, 3)"],
    "ceil": ["ceil(1.2)", "ceil(-1.2)"],
    "concat": ['concat(",", ["a", "b"])', 'concat("/", {"b", "a"})', 'concat("", [])'],
    "contains": ['contains("abc", "b")', 'contains("abc", "")', 'contains("é", "é")'],
    "count": ['count("héllo")', "count([1, 2])", "count({1, 2, 2})", 'count({"a": 1})', "count(1)"],
    "crypto.hmac.equal": ['crypto.hmac.equal("a", "a")'],
    "crypto.hmac.md5": ['crypto.hmac.md5("a", "k")'],
    "crypto.hmac.sha1": ['crypto.hmac.sha1("a", "k")'],
    "crypto.hmac.sha256": ['crypto.hmac.sha256("a", "k")'],
    "crypto.hmac.sha512": ['crypto.hmac.sha512("a", "k")'],
    "crypto.md5": ['crypto.md5("a")'],
    "crypto.sha1": ['crypto.sha1("a")'],
    "crypto.sha256": ['crypto.sha256("a")'],
    "endswith": ['endswith("abc", "bc")', 'endswith("abc", "")', 'endswith("abc", "x")'],
    "floor": ["floor(1.7)", "floor(-1.2)"],
    "format_int": ["format_int(255, 16)", "format_int(5, 2)"],
    "glob.match": [
        'glob.match("*.com", ["."], "api.com")',
        'glob.match("*.com", ["."], "a.b.com")',
        'glob.match("**.com", ["."], "a.b.com")',
        'glob.match("*.com", null, "a.b.com")',
        'glob.match("*.com", [], "a.b.com")',
        'glob.match("{a,b}*", ["/"], "bcd")',
        'glob.match("[a-c]x", ["/"], "bx")',
        'glob.match("?at", ["."], "cat")',
        'glob.match("fs.*", ["."], "fs.read")',
        'glob.match("fs.*", [], "fs.read.all")',
        'glob.match("/w/**", ["/"], "/w/a/b")',
        'glob.match("*", [], "anything at all")',
        'glob.match("a*", ["."], "bc")',
        'glob.match("[!a]x", ["/"], "bx")',
        r'glob.match("a\\*b", [], "a*b")',
        'glob.match("é*", [], "éa")',
    ],
    "glob.quote_meta": ['glob.quote_meta("*.x")'],
    "graph.reachable": ['graph.reachable({"a": ["b"], "b": []}, ["a"])'],
    "graph.reachable_paths": ['graph.reachable_paths({"a": ["b"], "b": []}, ["a"])'],
    "graphql.is_valid": ['graphql.is_valid("{ a }", "type Query { a: String }")'],
    "hex.decode": ['hex.decode("6869")', 'hex.decode("x")'],
    "hex.encode": ['hex.encode("hi")'],
    "indexof": ['indexof("abc", "c")', 'indexof("abc", "x")', 'indexof("éa", "a")'],
    "indexof_n": ['indexof_n("abab", "b")'],
    "intersection": ["intersection({{1, 2}, {2, 3}})"],
    "io.jwt.decode": ['io.jwt.decode("eyJhbGciOiJIUzI1NiJ9.e30.x")'],
    "is_array": ["is_array([])", 'is_array("x")'],
    "is_boolean": ["is_boolean(true)", "is_boolean(1)"],
    "is_null": ["is_null(null)", "is_null(0)"],
    "is_number": ["is_number(1)", 'is_number("1")'],
    "is_object": ["is_object({})", "is_object([])"],
    "is_set": ["is_set({1})", "is_set([1])"],
    "is_string": ['is_string("")', "is_string(1)"],
    "json.filter": ['json.filter({"a": {"b": 1, "c": 2}}, ["a/b"])'],
    "json.is_valid": ['json.is_valid("{}")', 'json.is_valid("{")'],
    "json.marshal": ['json.marshal({"b": 1, "a": [true, null]})', '~json.marshal("<é>")'],
    "json.marshal_with_options": ['json.marshal_with_options({"a": 1}, {"pretty": true})'],
    "json.match_schema": ['json.match_schema({"a": 1}, {"type": "object"})'],
    "json.patch": ['json.patch({"a": 1}, [{"op": "add", "path": "/b", "value": 2}])'],
    "json.remove": ['json.remove({"a": {"b": 1, "c": 2}}, ["a/b"])'],
    "json.unmarshal": ['json.unmarshal("{\\"a\\": 1.5}")', 'json.unmarshal("{")'],
    "json.verify_schema": ['json.verify_schema({"type": "object"})'],
    "lower": ['lower("ABÉ")', '~lower("İ")'],
    "max": ["max([1, 3, 2])", "max({1, 5})", "max([])"],
    "min": ["min([1, 3, 2])", "min([])"],
    "net.cidr_contains": [
        'net.cidr_contains("10.0.0.0/8", "10.1.2.3")',
        'net.cidr_contains("10.0.0.0/8", "11.0.0.1")',
        'net.cidr_contains("10.0.0.0/8", "10.1.0.0/16")',
        'net.cidr_contains("fd00::/8", "fd00::1")',
        'net.cidr_contains("x", "10.0.0.1")',
    ],
    "net.cidr_contains_matches": ['net.cidr_contains_matches("10.0.0.0/8", "10.1.2.3")'],
    "net.cidr_expand": ['net.cidr_expand("10.0.0.0/30")'],
    "net.cidr_intersects": ['net.cidr_intersects("10.0.0.0/8", "10.1.0.0/16")'],
    "net.cidr_is_valid": [
        'net.cidr_is_valid("10.0.0.0/8")',
        'net.cidr_is_valid("x")',
        'net.cidr_is_valid("::/0")',
    ],
    "net.cidr_merge": ['net.cidr_merge(["10.0.0.0/9", "10.128.0.0/9"])'],
    "numbers.range": ["numbers.range(1, 4)", "numbers.range(3, 1)"],
    "numbers.range_step": ["numbers.range_step(1, 7, 3)"],
    "object.filter": ['object.filter({"a": 1, "b": 2}, ["a"])'],
    "object.get": [
        'object.get({"a": {"b": 1}}, ["a", "b"], 0)',
        'object.get({"a": 1}, "x", "d")',
        'object.get({"a": null}, "a", 3)',
        'object.get({"a": 1}, ["a", "b"], 3)',
        "object.get([1], [0], 3)",
    ],
    "object.keys": ['object.keys({"b": 1, "a": 2})'],
    "object.remove": ['object.remove({"a": 1, "b": 2}, ["a"])'],
    "object.subset": [
        'object.subset({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}})',
        "object.subset([1, 2, 3], [2, 3])",
    ],
    "object.union": ['object.union({"a": {"b": 1}}, {"a": {"c": 2}})'],
    "object.union_n": ['object.union_n([{"a": 1}, {"b": 2}, {"a": 3}])'],
    "product": ["product([2, 3])", "product([])"],
    "regex.find_all_string_submatch_n": ['regex.find_all_string_submatch_n("a(b)?", "abaa", -1)'],
    "regex.find_n": ['regex.find_n("[a-z]+", "ab 12 cd", -1)'],
    "regex.globs_match": ['regex.globs_match("a.*", "a.b")'],
    "regex.is_valid": ['regex.is_valid("(a")', 'regex.is_valid("a")'],
    "regex.match": [
        'regex.match("^a+$", "aaa")',
        'regex.match("a", "xax")',
        'regex.match("(?i)ABC", "abc")',
        r'regex.match(`^\p{L}+$`, "né")',
        r'regex.match(`\bfoo\b`, "a foo b")',
        r'regex.match(`^[\w.-]+@x$`, "a.b@x")',
        'regex.match("(a", "a")',
        'regex.match("(?s)a.b", "a\\nb")',
        'regex.match("a.b", "a\\nb")',
        'regex.match("^b$", "a\\nb")',
        r'~regex.match(`\d+`, "٣")',
    ],
    "regex.replace": ['regex.replace("abab", "a", "x")', 'regex.replace("foo", "(o+)", "<$1>")'],
    "regex.split": ['regex.split("[,;]", "a,b;c")'],
    "regex.template_match": ['regex.template_match("urn:{.*}", "urn:x", "{", "}")'],
    "rego.parse_module": ['rego.parse_module("a.rego", "package a")'],
    "round": ["round(1.5)", "round(-1.5)", "round(2.4)"],
    "semver.compare": ['semver.compare("1.2.3", "1.2.4")', 'semver.compare("1.0.0-a", "1.0.0")'],
    "semver.is_valid": ['semver.is_valid("1.2.3")', 'semver.is_valid("x")'],
    "sort": ["sort([3, 1, 2])", 'sort({"b", "a"})', 'sort([1, "a", null, true, [1], {"a": 1}])'],
    "split": ['split("a/b/c", "/")', 'split("abc", "")', 'split("", "/")'],
    "sprintf": [
        'sprintf("%s is %d", ["a", 3])',
        'sprintf("%v %v %v", [1, "x", true])',
        'sprintf("%v", [[1, "a"]])',
        'sprintf("%v", [{"a": 1}])',
        'sprintf("%v", [{"b", "a"}])',
        'sprintf("100%%", [])',
        'sprintf("%s", [null])',
        '~sprintf("%5d|%05d|%x|%X|%o|%b", [3, 3, 255, 255, 8, 5])',
        'sprintf("%.2f", [1.234])',
        'sprintf("%q", ["a"])',
        '~sprintf("%-5s|", ["a"])',
        '~sprintf("%s %s", ["a"])',
        '~sprintf("%s", ["a", "b"])',
        '~sprintf("%d", ["a"])',
        r'~sprintf("%v", [["\u0014"]])',
    ],
    "startswith": [
        'startswith("abc", "ab")',
        'startswith("abc", "")',
        'startswith("abc", "b")',
        'startswith(1, "b")',
    ],
    "strings.any_prefix_match": [
        'strings.any_prefix_match("abc", ["x", "ab"])',
        'strings.any_prefix_match(["abc"], "ab")',
        'strings.any_prefix_match("abc", {"x"})',
    ],
    "strings.any_suffix_match": [
        'strings.any_suffix_match("abc", ["x", "bc"])',
        'strings.any_suffix_match("abc", {"x"})',
    ],
    "strings.count": ['strings.count("banana", "an")'],
    "strings.render_template": ['strings.render_template("{{.a}}", {"a": "x"})'],
    "strings.replace_n": ['strings.replace_n({"a": "b", "c": "d"}, "ac")'],
    "strings.reverse": ['strings.reverse("abé")'],
    "strings.split_n": ['strings.split_n("a/b/c", "/", 2)'],
    "substring": [
        'substring("abcd", 1, 2)',
        'substring("abcd", 1, -1)',
        'substring("é1", 1, 1)',
        'substring("ab", 5, 1)',
    ],
    "sum": ["sum([1, 2.5])", "sum([])", "sum({1, 2})"],
    "time.add_date": ["time.add_date(1700000000000000000, 1, 1, 1)"],
    "time.clock": [
        "time.clock(1700000000000000000)",
        'time.clock([1700000000000000000, "Europe/Berlin"])',
    ],
    "time.date": ["time.date(1700000000000000000)"],
    "time.diff": ["time.diff(1700000000000000000, 1600000000000000000)"],
    "time.format": ["time.format(1700000000000000000)"],
    "time.parse_duration_ns": ['time.parse_duration_ns("1h2m")', 'time.parse_duration_ns("x")'],
    "time.parse_ns": ['time.parse_ns("2006-01-02", "2024-02-29")'],
    "time.parse_rfc3339_ns": [
        'time.parse_rfc3339_ns("2026-11-21T10:00:00Z")',
        'time.parse_rfc3339_ns("2026-11-21T10:00:00.123456+02:00")',
        'time.parse_rfc3339_ns("x")',
    ],
    "time.weekday": ["time.weekday(1700000000000000000)"],
    "to_number": [
        'to_number("12")',
        'to_number("1.5")',
        'to_number("x")',
        "to_number(true)",
        "to_number(null)",
    ],
    "trim": ['trim("..a..", ".")'],
    "trim_left": ['trim_left("..a..", ".")'],
    "trim_prefix": ['trim_prefix("abc", "ab")', 'trim_prefix("abc", "x")'],
    "trim_right": ['trim_right("..a..", ".")'],
    "trim_space": ['trim_space(" a\\t\\n")'],
    "trim_suffix": ['trim_suffix("abc", "bc")'],
    "type_name": [
        "type_name(1)",
        "type_name(null)",
        "type_name({1})",
        "type_name({})",
        "type_name([])",
        "type_name(true)",
    ],
    "union": ["union({{1}, {2}})"],
    "units.parse": ['units.parse("10K")', 'units.parse("1.5Mi")'],
    "units.parse_bytes": ['units.parse_bytes("10KiB")', 'units.parse_bytes("1MB")'],
    "upper": ['upper("abé")', '~upper("ß")'],
    "uri.is_valid": ['uri.is_valid("https://x/")'],
    "uri.parse": ['uri.parse("https://x/a?b=1")'],
    "urlquery.decode": ['urlquery.decode("a%20b")'],
    "urlquery.decode_object": ['urlquery.decode_object("a=1&b=2&a=3")'],
    "urlquery.encode": ['urlquery.encode("a b/é")'],
    "urlquery.encode_object": ['urlquery.encode_object({"a": "1 2"})'],
    "uuid.parse": ['uuid.parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")'],
    "walk": [
        '[v | walk({"a": [1, "x"]}, [_, v]); is_string(v)]',
        'count([p | [p, _] := walk({"a": [1, {"b": 2}]})])',
        '{v | [p, v] := walk({"a": [1, {"b": 2}]}); p == ["a", 1, "b"]}',
        '~{[p, v] | [p, v] := walk({"a": [1]})}',
    ],
    "yaml.is_valid": ['yaml.is_valid("a: 1")'],
    "yaml.marshal": ['yaml.marshal({"a": [1]})'],
    "yaml.unmarshal": ['yaml.unmarshal("a: [1, x]")'],
    "replace": ['replace("aXbX", "X", "-")', 'replace("ab", "", "-")', 'replace("ab", "z", "-")'],
    # operators, under the names that OPA gives them
    "plus": ["1 + 2", "0.5 + 0.25", "~0.1 + 0.2", '1 + "a"', "9007199254740993 + 1"],
    "minus": ["3 - 5", "{1, 2} - {2}", "{1} - 1"],
    "mul": ["3 * 4", "1.5 * 2"],
    "div": ["6 / 3", "1 / 4", "1 / 0", "~1 / 3"],
    "rem": ["7 % 3", "-7 % 3", "1 % 0"],
    "and": ["{1, 2} & {2, 3}"],
    "or": ["{1} | {2}", "{1} | 1"],
    "lt": ['1 < "a"', "null < false", "[1] < [1, 2]", '"a" < "b"', "{1} < {2}"],
    "gt": ["2 > 1", '"b" > "a"'],
    "gte": ["2 >= 2"],
    "lte": ["2 <= 1"],
    "neq": ["1 != 1.0", '"a" != 1'],
    "eq": ["[x | x = 1]"],
    "assign": ["[x | x := 1]"],
    "equal": ["1 == 1.0", '{"a": 1} == {"a": 1}', "[1] == [2]"],
    "internal.member_2": ["1 in [1]", "2 in {1}", '1 in {"a": 1}', '"b" in "abc"', "1 in 5"],
    "internal.member_3": ['"a", 1 in {"a": 1}', "0, 5 in [5]"],
    "internal.template_string": ['$"{1 + 1}"'],
    "rand.intn": [],
    "time.now_ns": [],
    "uuid.rfc4122": [],
    "print": [],
    "trace": [],
}
INTENTIONALLY_REFUSED = {
    "http.send",
    "net.lookup_ip_addr",
    "opa.runtime",
    "io.jwt.decode_verify",
    "rego.parse_module",
}


def opa_program(given: str | None) -> str:
    """Find a real OPA."""
    for candidate in (
        given,
        os.environ.get("AGENTTOOL_OPA"),
        str(ROOT / ".servers" / "opa"),
        shutil.which("opa"),
        str(Path.home() / ".cache" / "agenttool" / "bin" / "opa"),
    ):
        if candidate and Path(candidate).is_file():
            return candidate
    raise SystemExit("no OPA program found; set AGENTTOOL_OPA")


def opa_answers(opa: str, expressions: list[str]) -> list[Any]:
    """Evaluate each expression under strict builtin errors."""
    answers: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        for expression in expressions:
            module = Path(folder) / "probe.rego"
            module.write_text(f"package probe\n\nresult := {_body(expression)}\n")
            done = subprocess.run(
                [
                    opa,
                    "eval",
                    "--format",
                    "json",
                    "--strict-builtin-errors",
                    "-d",
                    str(module),
                    "data.probe.result",
                ],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            try:
                document = json.loads(done.stdout)
                answers.append({"value": document["result"][0]["expressions"][0]["value"]})
            except (ValueError, KeyError, IndexError):
                answers.append("ERR")
    return answers


def _body(expression: str) -> str:
    return expression.removeprefix("~")


def embedded_answer(expression: str) -> Any:
    """Evaluate an expression on the installed regorus."""
    import regorus

    engine = regorus.Engine()
    try:
        engine.add_policy("probe.rego", f"package probe\n\nresult := {_body(expression)}\n")
        value = json.loads(engine.eval_rule_as_json("data.probe.result"))
    except Exception as error:
        text = str(error)
        return "LACKS" if "could not find function" in text else "ERR"
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return "PANIC"
    return "ERR" if value == "<undefined>" else {"value": value}


def main() -> int:
    """Compare, and write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--opa")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    opa = opa_program(options.opa)
    capabilities = json.loads(
        subprocess.run([opa, "capabilities", "--current"], capture_output=True, check=True).stdout
    )
    version = subprocess.run(
        [opa, "version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    declared = {
        item["name"]: bool(item.get("nondeterministic")) for item in capabilities["builtins"]
    }
    flat = [(name, expression) for name, items in PROBES.items() for expression in items]
    expected = dict(
        zip(flat, opa_answers(opa, [expression for _, expression in flat]), strict=True)
    )
    table: dict[str, dict[str, Any]] = {}
    for name, nondeterministic in sorted(declared.items()):
        agreed, differs, corners, lacks = [], [], [], False
        for expression in PROBES.get(name, []):
            want, got = expected[name, expression], embedded_answer(expression)
            lacks = lacks or got == "LACKS"
            if got == want:
                agreed.append([expression.removeprefix("~"), want])
            else:
                (corners if expression.startswith("~") else differs).append(
                    expression.removeprefix("~")
                )
        if name in INTENTIONALLY_REFUSED:
            state = "refused"
        elif name in PROBES and not PROBES[name]:
            state = "agrees"
        elif not PROBES.get(name) or lacks:
            state = "lacks"
        else:
            state = "agrees" if not differs else "differs"
        table[name] = {
            "state": state,
            "nondeterministic": nondeterministic,
            "probes": agreed,
            "corners": corners,
            "differs": differs,
        }
    probes = json.dumps({"opa": version, "builtins": table}, indent=1, ensure_ascii=False) + "\n"
    rows = ["| builtin | embedded | note |", "|---|---|---|"]
    for name, row in table.items():
        notes = [f"`{item}`".replace("|", "\\|") for item in row["differs"] + row["corners"]]
        note = ("differs: " + ", ".join(notes)) if notes else ""
        if row["nondeterministic"]:
            note = (
                ("not cached" + ("; " + note if note else "")) if row["state"] == "agrees" else note
            )
        rows.append(f"| `{name}` | {row['state']} | {note} |")
    counts = {
        state: sum(row["state"] == state for row in table.values())
        for state in ("agrees", "differs", "lacks", "refused")
    }
    head = (
        f"Compared with OPA {version} on {len(flat)} expressions: {counts['agrees']} of {len(table)} builtins agree, "
        f"{counts['differs']} differ, {counts['lacks']} are missing or unproven, "
        f"{counts['refused']} are refused on purpose.\n"
    )
    section = f"{BEGIN}\n{head}\n" + "\n".join(rows) + f"\n{END}"
    text = DOCS.read_text() if DOCS.exists() else f"# Engines\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN, 1)
    document = before + section + rest.split(END, 1)[1]
    if options.check:
        stale = [
            str(path.name)
            for path, new in ((PROBES_FILE, probes), (DOCS, document))
            if not path.exists() or path.read_text() != new
        ]
        if stale:
            print("stale:", ", ".join(stale))
        return bool(stale)
    PROBES_FILE.write_text(probes)
    DOCS.parent.mkdir(exist_ok=True)
    DOCS.write_text(document)
    print(head)
    return 0


if __name__ == "__main__":
    sys.exit(main())
