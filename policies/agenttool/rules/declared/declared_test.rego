package agenttool.rules.declared_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.declared.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.declared.deny)

asked := f.rules(data.agenttool.rules.declared.ask)

name(rule) := concat(".", ["agenttool.rules.declared", rule])

test_a_stated_read_only_tool_is_clear if {
	no_findings with input as f.base
	asked == set() with input as f.base
	denied == set() with input as f.base
	data.agenttool.rules.declared.allow == {data.agenttool.rules.declared.allowed} with input as f.base
}

test_a_tool_that_states_nothing_is_asked if {
	document := f.changed({"tool": {"read_only": false, "inferred": ["read_only", "destructive"]}})
	not no_findings with input as document
	asked == {name("unstated")} with input as document
}

test_a_guessed_read_only_is_no_statement[word] if {
	some word in ["read_only", "is_read_only"]
	document := f.changed({"tool": {"read_only": true, "inferred": [word]}})
	not no_findings with input as document
	asked == {name("unstated")} with input as document
}

test_a_tool_that_writes_is_asked if {
	document := f.changed({"tool": {"read_only": false}})
	not no_findings with input as document
	asked == {name("writes")} with input as document
}

test_the_writes_of_a_file_tool_are_judged_by_its_paths if no_findings with input as f.writing

test_a_file_tool_with_other_access_is_asked if {
	document := object.union(f.writing, {"permission_profile": {"access_kinds": ["file_write", "network"]}})
	asked == {name("writes")} with input as document
}

test_a_file_tool_without_a_path_to_write_is_asked if {
	document := object.union(f.writing, {"facts": {"paths": []}})
	asked == {name("writes")} with input as document
}

test_disabled_tools_are_denied[state] if {
	some state in ["draft", "disabled", "retired"]
	document := f.changed({"tool": {"lifecycle": state}})
	not no_findings with input as document
	denied == {name("lifecycle")} with input as document
}

test_tools_that_are_not_ready_are_asked[state] if {
	some state in ["deferred", "requires_setup", "who knows"]
	document := f.changed({"tool": {"lifecycle": state}})
	not no_findings with input as document
	asked == {name("not_ready")} with input as document
}

test_deprecated_tools_still_run if no_findings with input as f.changed({"tool": {"lifecycle": "deprecated"}})

test_sensitive_access_is_asked[kind] if {
	some kind in ["credential", "payment", "external_send", "code_execution"]
	document := f.changed({"permission_profile": {"access_kinds": ["file_read", kind]}})
	not no_findings with input as document
	asked == {concat("_", [name("access"), kind])} with input as document
}

test_unknown_access_is_asked if {
	document := f.changed({"permission_profile": {"access_kinds": ["teleport"]}})
	not no_findings with input as document
	asked == {name("unproven")} with input as document
}

test_a_proven_command_covers_its_tool if no_findings with input as f.with_shell({})

test_an_unproven_command_covers_nothing if {
	document := f.with_shell({"read_only": false})
	not no_findings with input as document
	asked == {name("unstated"), name("access_code_execution")} with input as document
}

test_a_command_covers_only_a_shell_tool if {
	document := object.union(f.with_shell({}), {"tool": {"kind": "function"}})
	not no_findings with input as document
	asked == {name("unstated"), name("access_code_execution")} with input as document
}

test_a_proven_query_covers_its_tool if no_findings with input as f.with_sql({})

test_an_unproven_query_covers_nothing if {
	asked == {name("writes")} with input as f.with_sql({"read_only": false})
}

members := [
	"/tool/id",
	"/tool/namespace",
	"/tool/name",
	"/tool/aliases",
	"/tool/lifecycle",
	"/tool/read_only",
	"/tool/inferred",
	"/permission_profile/access_kinds",
	"/tool",
	"/permission_profile",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.base, members)
		no_findings with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(f.base, members)
		count(asked) == 0 with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(f.base, members, [7, [7], {"x": 1}, null])
		no_findings with input as document
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended
