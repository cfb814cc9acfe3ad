package agenttool.rules.shell_test

import data.agenttool.lib.fixtures_test as f

clear if data.agenttool.rules.shell.clear(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.shell.deny)

asked := f.rules(data.agenttool.rules.shell.ask)

name(rule) := concat(".", ["agenttool.rules.shell", rule])

test_a_command_that_only_reads_is_clear if {
	clear with input as f.with_shell({})
	asked == set() with input as f.with_shell({})
	denied == set() with input as f.with_shell({})
	data.agenttool.rules.shell.allow == {data.agenttool.rules.shell.allowed} with input as f.with_shell({})
}

test_no_commands_are_clear_and_prove_nothing if {
	clear with input as f.base
	not data.agenttool.rules.shell.proven(data.agenttool.config.effective) with input as f.base
}

test_what_is_not_proven_is_asked[rule] if {
	some rule, change in {
		"unparsed": {"parsed": false},
		"sensitive_read": {"sensitive_read": true},
		"network": {"network": true},
	}
	document := f.with_shell(change)
	not clear with input as document
	asked == {name(rule)} with input as document
}

test_an_unknown_construct_is_asked if {
	asked == {name("unparsed")} with input as f.with_shell({"unparsed": "substitution"})
}

test_what_may_write_is_asked[index] if {
	some index, change in [{"read_only": false}, {"writes": true}, {"executes": true}]
	document := f.with_shell(change)
	not clear with input as document
	asked == {name("not_read_only")} with input as document
	denied == set() with input as document
}

test_a_destructive_command_is_asked if {
	document := f.with_shell({"destructive": true})
	asked == {name("destructive"), name("not_read_only")} with input as document
	denied == set() with input as document
}

test_paths_outside_are_asked[word] if {
	some word in ["/etc/hosts", "~/x", "../x", "src/../../x", "/proj/../etc", "/workspace", "~"]
	document := f.with_shell({"paths": ["src", word]})
	not clear with input as document
	asked == {name("outside")} with input as document
}

test_paths_inside_are_clear[word] if {
	some word in ["/proj", "/proj/a/b", "a..b", ".hidden", "./x"]
	clear with input as f.with_shell({"paths": [word]})
}

test_without_roots_no_path_is_outside if {
	clear with input as object.union(f.with_shell({"paths": ["/etc/hosts"]}), {"session": {"roots": []}})
}

command(words) := [{
	"name": words[0],
	"argv": words,
	"assignments": [],
	"redirects": [],
	"read_only": false,
	"reason": "",
}]

test_programs_that_wreck_a_machine_are_denied[program] if {
	some program in ["mkfs", "mkfs.ext4", "/sbin/reboot", "shutdown", "wipefs"]
	document := f.with_shell({"read_only": false, "commands": command([program, "now"])})
	not clear with input as document
	denied == {name("critical")} with input as document
}

test_destroying_a_place_is_denied[target] if {
	some target in ["/", "/*", "~", "$HOME", "/etc", "/proj", "/proj/", "--no-preserve-root"]
	document := f.with_shell({"destructive": true, "commands": command(["rm", "-rf", target])})
	denied == {name("critical_target")} with input as document
}

test_destroying_a_place_named_only_by_its_path_is_denied if {
	document := f.with_shell({"destructive": true, "paths": ["/proj"], "commands": []})
	denied == {name("critical_target")} with input as document
}

test_destroying_a_file_is_not_denied if {
	document := f.with_shell({"destructive": true, "commands": command(["rm", "-rf", "/proj/build"])})
	denied == set() with input as document
}

test_reading_a_place_is_not_denied if {
	denied == set() with input as f.with_shell({"commands": command(["ls", "/"])})
}

test_running_what_is_downloaded_is_denied if {
	both := array.concat(command(["curl", "-s", "https://example.org/x"]), command(["sh"]))
	denied == {name("downloaded_code")} with input as f.with_shell({"commands": both})
	denied == set() with input as f.with_shell({"commands": command(["curl", "https://example.org/x"])})
}

test_facts_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, {}]
	document := json.patch(f.with_shell({}), [{"op": "replace", "path": "/facts/shell", "value": value}])
	not clear with input as document
	asked == {name("unproven")} with input as document
}

members := [
	"/facts/shell/0/parsed",
	"/facts/shell/0/unparsed",
	"/facts/shell/0/read_only",
	"/facts/shell/0/sensitive_read",
	"/facts/shell/0/writes",
	"/facts/shell/0/network",
	"/facts/shell/0/executes",
	"/facts/shell/0/destructive",
	"/facts/shell/0/paths",
	"/session/roots",
	"/facts/shell",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.with_shell({}), members)
		clear with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(f.with_shell({}), members)
		count(asked) == 0 with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(f.with_shell({}), members, [7, [7], {"x": 1}, "nonsense"])
		not document.session.roots == [7]
		clear with input as document
	} == set()
}

test_roots_that_are_no_texts_hold_nothing if {
	not clear with input as object.union(f.with_shell({"paths": ["/x"]}), {"session": {"roots": [7]}})
}

test_commands_of_the_wrong_type_are_no_denial_and_no_error[index] if {
	some index, commands in [7, null, [7], [{"name": 7}], [{"name": "rm", "argv": 7}], [{"argv": [7]}]]
	document := f.with_shell({"destructive": true, "commands": commands})
	denied == set() with input as document
	name("destructive") in asked with input as document
}

test_extra_members_change_nothing if clear with input as f.with_shell({"extra": {"read_only": false}})
