package agenttool.rules.paths_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.paths.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.paths.deny)

asked := f.rules(data.agenttool.rules.paths.ask)

name(rule) := concat(".", ["agenttool.rules.paths", rule])

test_reading_inside_the_roots_is_clear if {
	no_findings with input as f.base
	denied == set() with input as f.base
	asked == set() with input as f.base
}

no_path(arguments) := object.union(
	f.changed({"facts": {"paths": []}}),
	{"input": object.union({"path": "plain"}, arguments)},
)

test_no_paths_are_clear[index] if {
	some index, arguments in [{}, {"query": "total of may"}, {"limit": 3, "deep": [{"a": "b"}]}]
	no_findings with input as no_path(arguments)
	asked == set() with input as no_path(arguments)
}

test_a_file_tool_whose_path_is_in_an_unknown_argument_is_asked[place] if {
	some place in ["/etc/shadow", "~/.ssh", ".env", "../x", "a/b", "a\\b", "/srv/my file"]
	some arguments in [{"target": place}, {"deep": {"list": ["x", place]}}]
	not no_findings with input as no_path(arguments)
	asked == {name("undeclared")} with input as no_path(arguments)
}

test_other_tools_may_have_texts_with_slashes if {
	document := object.union(no_path({"query": "and/or"}), {"tool": {"kind": "retrieval"}})
	no_findings with input as document
	asked == set() with input as document
}

test_arguments_or_a_kind_of_another_type_tell_nothing if {
	{document |
		some document in f.mistyped(no_path({"target": "/srv/x"}), ["/input", "/tool/kind"], [7, null, ["x"]])
		no_findings with input as document
	} == set()
}

test_an_unknown_access_of_a_read_only_tool_is_a_read if no_findings with input as f.with_path({"access": "unknown"})

test_an_unknown_access_of_another_tool_is_a_write if {
	document := object.union(f.with_path({"access": "unknown"}), {"tool": {"read_only": false}})
	not no_findings with input as document
	asked == {name("write_inside")} with input as document
}

test_reading_without_roots_is_clear if {
	no_findings with input as object.union(f.with_path({"inside": false, "roots": []}), {"session": {"roots": []}})
}

test_writing_without_roots_is_asked if {
	document := object.union(f.writing, {"session": {"roots": []}, "facts": {"paths": [object.union(
		f.path_fact,
		{"access": "write", "inside": false},
	)]}})
	not no_findings with input as document
	asked == {name("write_unrooted")} with input as document
	denied == set() with input as document
}

test_reading_outside_is_asked if {
	document := f.with_path({"inside": false, "lexical": "/srv/x", "resolved": "/srv/x"})
	not no_findings with input as document
	asked == {name("read_outside")} with input as document
	denied == set() with input as document
}

test_writing_outside_is_denied if {
	document := f.with_path({"access": "write", "inside": false, "lexical": "/srv/x"})
	denied == {name("write_outside")} with input as document
	data.agenttool.rules.paths.deny == {{
		"rule": name("write_outside"),
		"message": "the path to write lies outside of the session's roots",
		"type": "working_dir",
		"blocked_path": "/srv/x",
	}} with input as document
}

test_writing_inside_is_asked if {
	not no_findings with input as f.writing
	asked == {name("write_inside")} with input as f.writing
	denied == set() with input as f.writing
}

test_an_escape_through_a_link_is_denied if {
	document := f.with_path({"escapes": true, "inside": false, "resolved": "/srv/x"})
	denied == {name("escapes")} with input as document
	name("read_outside") in asked with input as document
}

test_an_escape_is_denied_without_roots_too if {
	document := object.union(f.with_path({"escapes": true}), {"session": {"roots": []}})
	not no_findings with input as document
	denied == {name("escapes")} with input as document
}

test_sensitive_places_are_denied[kind] if {
	some kind in ["key", "credential", "approval"]
	document := f.with_path({"sensitive": kind})
	not no_findings with input as document
	denied == {name("sensitive")} with input as document
}

test_sensitive_places_for_writing_are_denied[kind] if {
	some kind in ["key", "credential", "system", "approval", "policy", "vcs"]
	document := f.with_path({"sensitive": kind, "access": "write"})
	denied == {name("sensitive")} with input as document
}

test_reading_policy_version_control_and_system_is_asked[kind] if {
	some kind in ["policy", "vcs", "system"]
	document := f.with_path({"sensitive": kind})
	not no_findings with input as document
	asked == {name("sensitive_place")} with input as document
	denied == set() with input as document
}

test_a_file_that_holds_what_looks_like_a_secret_is_asked_for_reading if {
	asked == {name("sensitive_place")} with input as f.with_path({"sensitive": "content"})
	no_findings with input as f.with_path({"sensitive": "content"})
		with data.agenttool.settings as {"paths": {"sensitive": {"content": {"read": "allow"}}}}
}

test_dotfiles_may_be_read_and_are_asked_for_writing if {
	no_findings with input as f.with_path({"sensitive": "agent_config"})
	no_findings with input as f.with_path({"sensitive": "dotfile"})
	asked == {name("sensitive_place"), name("write_inside")} with input as f.with_path({
		"sensitive": "dotfile",
		"access": "write",
	})
}

test_a_place_that_may_be_written_by_configuration if {
	document := f.with_path({"sensitive": "dotfile", "access": "write"})
	settings := {"paths": {"sensitive": {"dotfile": {"write": "allow"}}}}
	asked == {name("write_inside")} with input as document with data.agenttool.settings as settings
}

test_an_unknown_kind_of_place_is_asked if {
	document := f.with_path({"sensitive": "something new"})
	not no_findings with input as document
	asked == {name("sensitive_place")} with input as document
}

test_a_rejected_path_is_denied if {
	document := f.with_path({"rejected": "nul", "certain": false})
	denied == {name("rejected")} with input as document
	name("uncertain") in asked with input as document
}

test_an_uncertain_path_is_asked[index] if {
	some index, change in [
		{"certain": false},
		{"resolved": null},
		{"encoded": true},
		{"confusable": true},
		{"variables": true},
		{"windows": ["stream"]},
	]
	document := f.with_path(change)
	not no_findings with input as document
	asked == {name("uncertain")} with input as document
}

test_a_file_with_a_second_name_is_asked_for_writing if {
	document := f.with_path({"access": "write", "hard_links": 2})
	asked == {name("hard_link"), name("write_inside")} with input as document
	no_findings with input as f.with_path({"hard_links": 2})
	asked == {name("write_inside")} with input as f.with_path({"access": "write", "hard_links": null})
}

test_one_bad_path_among_good_ones_counts if {
	document := f.changed({"facts": {"paths": [
		f.path_fact,
		object.union(f.path_fact, {"sensitive": "key"}),
	]}})
	not no_findings with input as document
	denied == {name("sensitive")} with input as document
}

test_facts_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, {}, {"a": f.path_fact}]
	document := json.patch(f.base, [{"op": "replace", "path": "/facts/paths", "value": value}])
	not no_findings with input as document
	asked == {name("unproven")} with input as document
}

members := [
	"/facts/paths/0/access",
	"/facts/paths/0/lexical",
	"/facts/paths/0/resolved",
	"/facts/paths/0/inside",
	"/facts/paths/0/escapes",
	"/facts/paths/0/variables",
	"/facts/paths/0/encoded",
	"/facts/paths/0/confusable",
	"/facts/paths/0/windows",
	"/facts/paths/0/sensitive",
	"/facts/paths/0/rejected",
	"/facts/paths/0/certain",
	"/session/roots",
	"/facts/paths",
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
		some document in f.mistyped(f.base, members, [7, ["x"], {"x": 1}, "nonsense"])
		not document.facts.paths[0].lexical == "nonsense"
		not document.facts.paths[0].resolved == "nonsense"
		not document.session.roots == ["x"]
		no_findings with input as document
	} == set()
}

test_facts_that_are_no_objects_are_never_clear if {
	{value |
		some value in ["x", 7, null, [], [f.path_fact]]
		no_findings with input as f.changed({"facts": {"paths": [value]}})
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended

test_the_answer_names_the_rule if {
	data.agenttool.rules.paths.allow == {data.agenttool.rules.paths.allowed} with input as f.base
	data.agenttool.rules.paths.allow == set() with input as f.changed({"facts": {"paths": []}})
}

touched(operation, changes) := {
	"word": "x",
	"operation": operation,
	"covers": [],
	"path": object.union(f.path_fact, changes),
}

with_place(operation, changes) := f.with_shell({"commands": [{"places": [touched(operation, changes)]}]})

test_a_place_of_a_command_is_judged_like_a_path_argument[rule] if {
	some rule, change in {
		"read_outside": {"inside": false},
		"uncertain": {"certain": false},
		"sensitive_place": {"sensitive": "vcs"},
		"write_inside": {"access": "write"},
	}
	document := with_place("read", change)
	not no_findings with input as document
	asked == {name(rule)} with input as document
}

test_a_place_of_a_command_is_denied_like_a_path_argument[rule] if {
	some rule, change in {
		"escapes": {"escapes": true},
		"sensitive": {"sensitive": "credential"},
		"write_outside": {"access": "write", "inside": false, "lexical": "/srv/x", "resolved": "/srv/x"},
	}
	name(rule) in denied with input as with_place("read", change)
}

test_a_place_inside_is_clear if no_findings with input as with_place("read", {})

test_that_a_sensitive_file_is_there_is_no_secret_inside[operation] if {
	some operation in ["list", "enter"]
	no_findings with input as with_place(operation, {"sensitive": "credential"})
	name("sensitive") in denied with input as with_place(operation, {"sensitive": "credential", "inside": false})
	name("sensitive") in denied with input as with_place("read", {"sensitive": "credential"})
	name("escapes") in denied with input as with_place(operation, {"sensitive": "credential", "escapes": true})
}

temporary_file := {"access": "write", "inside": false, "lexical": "/tmp/x", "resolved": "/tmp/x"}

test_writing_to_the_temporary_directory_is_asked if {
	document := f.with_path(temporary_file)
	denied == set() with input as document
	asked == {name("write_temporary")} with input as document
	asked == {name("read_temporary")} with input as json.patch(document, [{"op": "replace", "path": "/facts/paths/0/access", "value": "read"}])
}

test_a_link_in_the_temporary_directory_is_no_temporary_file if {
	linked := object.union(temporary_file, {"resolved": "/srv/x"})
	denied == {name("write_outside")} with input as f.with_path(linked)
	not_there := object.union(temporary_file, {"resolved": null})
	denied == {name("write_outside")} with input as f.with_path(not_there)
}

test_a_place_without_a_usable_path_is_uncertain if {
	{place |
		some place in [{"operation": "read"}, {"operation": "read", "path": "/x"}, "x"]
		document := f.with_shell({"commands": [{"places": [place]}]})
		not name("uncertain") in asked with input as document
	} == set()
}
