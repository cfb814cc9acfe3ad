package agenttool.rules.destructive_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.destructive.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.destructive.deny)

asked := f.rules(data.agenttool.rules.destructive.ask)

name(rule) := concat(".", ["agenttool.rules.destructive", rule])

test_a_harmless_tool_is_clear if {
	no_findings with input as f.base
	asked == set() with input as f.base
	denied == set() with input as f.base
}

test_local_writes_need_no_question_here if no_findings with input as f.writing

test_a_destructive_tool_is_asked if {
	document := f.changed({"tool": {"destructive": true}})
	not no_findings with input as document
	asked == {name("declared")} with input as document
	denied == set() with input as document
}

test_effects_on_others_are_asked[effect] if {
	some effect in ["remote_mutation", "irreversible", "something new"]
	document := f.changed({"permission_profile": {"write_effects": [effect]}})
	not no_findings with input as document
	asked == {name("effects")} with input as document
}

test_a_proven_command_or_query_has_no_effects if {
	no_findings with input as object.union(f.with_shell({}), {"tool": {"destructive": true}})
	no_findings with input as f.with_sql({})
	not no_findings with input as f.with_sql({"read_only": false})
}

test_a_root_itself_is_denied[place] if {
	some place in ["/proj", "/"]
	document := object.union(
		f.with_path({"access": "write", "lexical": place, "resolved": place}),
		{"tool": {"destructive": true, "read_only": false}},
	)
	denied == {name("root")} with input as document
	asked == {name("declared")} with input as document
}

test_a_link_to_a_root_is_denied if {
	document := object.union(
		f.with_path({"access": "write", "resolved": "/proj"}),
		{"tool": {"destructive": true, "read_only": false}},
	)
	denied == {name("root")} with input as document
}

test_forbidden_tools_are_denied[pattern] if {
	some pattern in ["local.files.read_file", "local.*", "read_file", "other"]
	document := f.changed({"tool": {"aliases": ["other"]}})
	settings := {"destructive": {"forbidden_tools": ["x", pattern]}}
	not no_findings with input as document with data.agenttool.settings as settings
	denied == {name("forbidden_tool")} with input as document with data.agenttool.settings as settings
}

test_other_tools_are_not_forbidden if {
	no_findings with input as f.base with data.agenttool.settings as {"destructive": {"forbidden_tools": ["x", "web.*"]}}
}

test_an_unusable_list_forbids_nothing_and_clears_nothing if {
	not no_findings with input as f.base with data.agenttool.settings as {"destructive": {"forbidden_tools": "x"}}
}

members := ["/tool/destructive", "/permission_profile/write_effects", "/tool", "/permission_profile"]

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
		some document in f.mistyped(f.base, members, [7, [7], {"x": 1}, "nonsense", null])
		no_findings with input as document
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended
