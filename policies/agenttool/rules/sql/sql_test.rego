package agenttool.rules.sql_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.sql.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.sql.deny)

asked := f.rules(data.agenttool.rules.sql.ask)

name(rule) := concat(".", ["agenttool.rules.sql", rule])

test_one_statement_that_only_reads_is_clear if {
	no_findings with input as f.with_sql({})
	asked == set() with input as f.with_sql({})
	denied == set() with input as f.with_sql({})
	data.agenttool.rules.sql.allow == {data.agenttool.rules.sql.allowed} with input as f.with_sql({})
}

test_no_statements_are_clear_and_prove_nothing if {
	no_findings with input as f.base
	not data.agenttool.rules.sql.proven(data.agenttool.config.effective) with input as f.base
}

test_a_guessed_statement_proves_nothing_about_its_tool if {
	no_findings with input as f.with_sql({"inferred": true})
	not data.agenttool.rules.sql.proven(data.agenttool.config.effective) with input as f.with_sql({"inferred": true})
}

test_a_text_that_is_not_understood_is_asked[index] if {
	some index, change in [{"parsed": false}, {"unparsed": "a comment"}]
	not no_findings with input as f.with_sql(change)
	asked == {name("unparsed")} with input as f.with_sql(change)
}

test_a_change_is_asked[index] if {
	some index, change in [{"read_only": false}, {"ddl": true}, {"tables_written": ["orders"]}]
	not no_findings with input as f.with_sql(change)
	asked == {name("writes")} with input as f.with_sql(change)
	denied == set() with input as f.with_sql(change)
}

test_several_statements_are_asked if {
	not no_findings with input as f.with_sql({"multiple": true})
	asked == {name("multiple")} with input as f.with_sql({"multiple": true})
}

test_a_change_of_every_row_is_denied if {
	denied == {name("unbounded_write")} with input as f.with_sql({"unbounded_write": true, "read_only": false})
}

test_forbidden_statements_are_denied[kind] if {
	some kind in ["grant", "REVOKE"]
	denied == {name("forbidden_statement")} with input as f.with_sql({"statements": [kind], "read_only": false})
}

test_protected_tables_are_denied if {
	document := f.with_sql({"tables_read": ["orders", "PG_Shadow"]})
	not no_findings with input as document
	denied == {name("protected_table")} with input as document
	denied == {name("protected_table")} with input as f.with_sql({"tables_written": ["mysql.user"]})
}

test_facts_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, {}]
	document := json.patch(f.with_sql({}), [{"op": "replace", "path": "/facts/sql", "value": value}])
	not no_findings with input as document
	asked == {name("unproven")} with input as document
}

members := [
	"/facts/sql/0/parsed",
	"/facts/sql/0/unparsed",
	"/facts/sql/0/read_only",
	"/facts/sql/0/multiple",
	"/facts/sql/0/ddl",
	"/facts/sql/0/tables_read",
	"/facts/sql/0/tables_written",
	"/facts/sql/0/unbounded_write",
	"/facts/sql",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.with_sql({}), members)
		no_findings with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(f.with_sql({}), members)
		count(asked) == 0 with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(f.with_sql({}), members, [7, [7], {"x": 1}, "nonsense"])
		no_findings with input as document
	} == set()
}

test_kinds_of_the_wrong_type_are_no_error[index] if {
	some index, kinds in [7, [7], null]
	denied == set() with input as f.with_sql({"statements": kinds})
}

test_extra_members_change_nothing if no_findings with input as f.with_sql({"extra": true})
