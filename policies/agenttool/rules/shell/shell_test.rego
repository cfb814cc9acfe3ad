package agenttool.rules.shell_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.shell.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.shell.deny)

asked := f.rules(data.agenttool.rules.shell.ask)

name(rule) := concat(".", ["agenttool.rules.shell", rule])

test_a_command_that_only_reads_is_clear if {
	no_findings with input as f.with_shell({})
	asked == set() with input as f.with_shell({})
	denied == set() with input as f.with_shell({})
	data.agenttool.rules.shell.allow == {data.agenttool.rules.shell.allowed} with input as f.with_shell({})
}

test_no_commands_are_clear_and_prove_nothing if {
	no_findings with input as f.base
	not data.agenttool.rules.shell.proven(data.agenttool.config.effective) with input as f.base
}

test_what_is_not_proven_is_asked[rule] if {
	some rule, change in {
		"unparsed": {"parsed": false},
		"sensitive_read": {"sensitive_read": true},
		"network": {"network": true, "connects": true, "commands": command(["curl", "x"])},
		"network_unknown": {"network": true, "commands": command(["some-program", "x"])},
		"incomplete": {"complete": false, "commands": command(["cat", "x"])},
	}
	document := f.with_shell(change)
	not no_findings with input as document
	asked == {name(rule)} with input as document
}

test_a_network_of_which_nothing_is_stated_is_asked_about_as_a_known_one if {
	line := object.remove(object.union(f.shell_fact, {"network": true}), ["connects"])
	document := object.union(f.with_shell({}), {"facts": {"shell": [line]}})
	name("network") in asked with input as document
}

test_an_unknown_construct_is_asked if {
	asked == {name("unparsed")} with input as f.with_shell({"unparsed": "substitution"})
}

test_what_may_write_is_asked[index] if {
	some index, change in [{"read_only": false}, {"writes": true}, {"executes": true}]
	document := f.with_shell(object.union(change, {"commands": command(["touch", "x"])}))
	not no_findings with input as document
	asked == {name("not_read_only")} with input as document
	denied == set() with input as document
}

test_a_destructive_command_is_asked if {
	document := f.with_shell({"destructive": true, "commands": command(["rm", "x"])})
	asked == {name("destructive"), name("not_read_only")} with input as document
	denied == set() with input as document
}

command(words) := [{
	"name": words[0],
	"argv": words,
	"spellings": [words, array.concat([regex.replace(words[0], `^.*/`, "")], array.slice(words, 1, count(words)))],
	"plain": words,
	"repository": null,
	"carries": false,
	"assignments": [],
	"redirects": [],
	"category": "writer",
	"directory": "/proj",
	"places": [],
	"complete": true,
	"unreviewed": [],
	"read_only": false,
	"reason": "",
}]

# METADATA
# title: A command that destroys one place
destroying(operation, covers, path) := [object.union(
	command(["rm", path])[0],
	{"places": [{
		"word": path,
		"operation": operation,
		"covers": covers,
		"path": object.union(f.path_fact, {"lexical": path, "resolved": path, "access": "write"}),
	}]},
)]

category_of(words, category) := [object.union(command(words)[0], {"category": category})]

coding_settings := {"preset": "coding"}

test_a_category_that_is_agreed_to_is_clear[category] if {
	some category in ["writer", "deleter", "vcs_local"]
	document := f.with_shell({"read_only": false, "writes": true, "executes": true, "network": true, "commands": category_of(["x"], category)})
	no_findings with input as document with data.agenttool.settings as coding_settings
	asked == set() with input as document with data.agenttool.settings as coding_settings
	data.agenttool.rules.shell.allow == {{
		"rule": name("agreed"),
		"message": "the configuration agrees to such commands",
		"type": "rule",
	}} with input as document with data.agenttool.settings as coding_settings
	not no_findings with input as document
}

test_a_category_for_a_sandbox_needs_one[category] if {
	some category in ["runner", "tester", "builder"]
	changed := {"read_only": false, "writes": true, "complete": false, "commands": category_of(["x"], category)}
	document := f.with_shell(changed)
	not no_findings with input as document with data.agenttool.settings as coding_settings
	mode := object.union(document, {"session": {"mode": "boxed"}})
	settings := object.union(coding_settings, boxes)
	not no_findings with input as mode with data.agenttool.settings as coding_settings
	not no_findings with input as document with data.agenttool.settings as settings
	no_findings with input as mode with data.agenttool.settings as settings
	no_findings with input as mode with data.agenttool.settings as boxes
}

boxes := {"shell": {"sandbox_modes": {"boxed": true}}}

test_what_a_tool_states_of_a_sandbox_counts_for_nothing[category] if {
	some category in ["runner", "tester", "builder"]
	document := f.with_shell({"read_only": false, "commands": category_of(["x"], category)})
	stated := object.union(document, {"permission_profile": {"sandbox_profile": "boxed"}})
	not no_findings with input as stated with data.agenttool.settings as object.union(coding_settings, boxes)
}

test_a_sandbox_is_not_enough_where_a_preset_forbids_it[preset] if {
	some preset in ["strict", "plan"]
	some category in ["runner", "tester", "builder"]
	document := f.with_shell({"read_only": false, "writes": true, "commands": category_of(["x"], category)})
	boxed := object.union(document, {"session": {"mode": "boxed"}})
	not no_findings with input as boxed with data.agenttool.settings as object.union(boxes, {"preset": preset})
}

test_other_categories_are_asked_about[category] if {
	some category in [
		"tree_deleter", "installer", "vcs_remote", "vcs_config", "vcs_history", "network", "privileged", "service",
		"disk", "unknown",
	]
	changed := {"read_only": false, "writes": true, "commands": category_of(["x"], category)}
	document := object.union(f.with_shell(changed), {"session": {"mode": "boxed"}})
	settings := object.union(coding_settings, boxes)
	asked == {name("not_read_only")} with input as document with data.agenttool.settings as settings
}

test_a_writer_whose_places_are_not_all_known_is_asked_about if {
	commands := [object.union(command(["cp", "a", "b"])[0], {"complete": false})]
	document := f.with_shell({"read_only": false, "writes": true, "complete": false, "commands": commands})
	asked == {name("not_read_only"), name("incomplete")} with input as document with data.agenttool.settings as coding_settings
}

listed(kind, entries) := {"shell": {"commands": {kind: entries}}}

test_commands_that_begin_with_listed_words_are_agreed_to if {
	tester := [object.union(command(["npm", "test", "--", "x"])[0], {"category": "tester", "complete": false})]
	document := f.with_shell({"read_only": false, "executes": true, "complete": false, "commands": tester})
	not no_findings with input as document
	no_findings with input as document with data.agenttool.settings as listed("allow", [["npm", "test"]])
	not no_findings with input as document with data.agenttool.settings as listed("allow", [["npm", "run"], ["np"], []])
}

test_an_allowed_command_must_be_bounded_and_bare[index] if {
	some index, change in [
		{"complete": false},
		{"complete": false, "category": "unknown"},
		{"assignments": ["LD_PRELOAD"], "plain": []},
		{"places": [{"word": "x"}]},
	]
	commands := [object.union(command(["cp", "a", "b"])[0], change)]
	document := f.with_shell({"read_only": false, "commands": commands})
	not no_findings with input as document with data.agenttool.settings as listed("allow", [["cp"]])
}

# METADATA
# title: A command with words that no table accounts for
unreviewed(words, odd) := f.with_shell({"read_only": false, "executes": true, "complete": false, "commands": [object.union(
	command(words)[0],
	{"category": "tester", "complete": false, "unreviewed": odd},
)]})

test_words_that_are_not_reviewed_are_a_question_of_their_own if {
	asked == {name("not_read_only"), name("incomplete"), name("unreviewed")} with input as unreviewed(["pytest", "-p", "x"], ["-p", "x"])
	asked == {name("not_read_only"), name("incomplete")} with input as unreviewed(["pytest", "-q"], [])
}

test_an_entry_names_each_word_that_is_not_reviewed[index] if {
	document := unreviewed(["pytest", "-p", "x"], ["-p", "x"])
	some index, fits in [
		{"entry": ["pytest"], "agreed": false},
		{"entry": ["pytest", "-p"], "agreed": false},
		{"entry": ["pytest", "-p", "x"], "agreed": true},
		{"entry": {"words": ["pytest", "-p", "x"]}, "agreed": true},
	]
	settings := listed("allow", [fits.entry])
	found := {true | data.agenttool.rules.shell.no_findings(data.agenttool.config.effective) with input as document with data.agenttool.settings as settings}
	count(found) > 0 == fits.agreed
}

test_words_of_the_wrong_type_are_asked_about[index] if {
	some index, odd in [null, "x", {"x": true}]
	document := unreviewed(["pytest"], odd)
	name("unreviewed") in asked with input as document
	not no_findings with input as document with data.agenttool.settings as listed("allow", [["pytest"]])
}

test_one_listed_command_does_not_allow_the_line if {
	commands := array.concat(command(["npm", "test"]), command(["rm", "x"]))
	document := f.with_shell({"read_only": false, "commands": commands})
	not no_findings with input as document with data.agenttool.settings as listed("allow", [["npm"]])
}

# METADATA
# title: A restriction looks at every way to read a command, a permission at the plain words alone
test_a_restriction_holds_in_any_reading[kind] if {
	some kind in ["ask", "deny"]
	wrapped := object.union(command(["timeout", "5", "rm", "x"])[0], {"spellings": [["timeout", "5", "rm", "x"], ["rm", "x"]]})
	document := f.with_shell({"commands": [wrapped]})
	not no_findings with input as document with data.agenttool.settings as listed(kind, [["rm"]])
	no_findings with input as document with data.agenttool.settings as listed(kind, [["mv"]])
}

test_a_permission_sees_the_plain_words if {
	timed := object.union(command(["time", "npm", "test"])[0], {"category": "tester", "complete": false, "plain": ["npm", "test"]})
	document := f.with_shell({"read_only": false, "commands": [timed]})
	no_findings with input as document with data.agenttool.settings as listed("allow", [["npm", "test"]])
	run := object.union(timed, {"plain": ["uv", "run", "npm", "test"], "spellings": [["npm", "test"]]})
	other := f.with_shell({"read_only": false, "commands": [run]})
	not no_findings with input as other with data.agenttool.settings as listed("allow", [["npm", "test"]])
}

test_a_shell_that_carries_its_commands_adds_no_question if {
	shell := object.union(command(["bash", "-c", "npm test"])[0], {"category": "runner", "complete": false, "carries": true})
	inner := object.union(command(["npm", "test"])[0], {"category": "tester", "complete": false})
	settings := listed("allow", [["npm", "test"]])
	carried := f.with_shell({"read_only": false, "complete": false, "commands": [shell, inner]})
	no_findings with input as carried with data.agenttool.settings as settings
	other := f.with_shell({"read_only": false, "commands": [shell, command(["rm", "x"])[0]]})
	not no_findings with input as other with data.agenttool.settings as settings
}

test_nobody_agrees_to_a_repository_in_doubt[settings] if {
	some settings in [
		coding_settings,
		{"shell": {"categories": {"vcs_local": "sandbox"}, "sandbox_modes": {"boxed": true}}},
		listed("allow", [["git"]]),
		{"preset": "observe"},
		{},
	]
	doubtful := object.union(category_of(["git", "add", "."], "vcs_local")[0], {"repository": "repository that lies elsewhere"})
	document := object.union(
		f.with_shell({"read_only": false, "commands": [doubtful]}),
		{"session": {"mode": "boxed"}},
	)
	not no_findings with input as document with data.agenttool.settings as settings
	name("repository") in asked with input as document with data.agenttool.settings as settings
}

test_an_entry_may_have_examples_beside_its_words if {
	entry := {"words": ["npm", "test"], "match": ["npm test"], "not_match": ["npm publish"]}
	document := f.with_shell({"read_only": false, "commands": command(["npm", "publish"])})
	asked == {name("not_read_only")} with input as document with data.agenttool.settings as listed("allow", [entry])
	tested := f.with_shell({"read_only": false, "commands": command(["npm", "test"])})
	no_findings with input as tested with data.agenttool.settings as listed("allow", [entry])
}

test_listed_commands_are_asked_about_and_denied if {
	document := f.with_shell({})
	not no_findings with input as document with data.agenttool.settings as listed("ask", [["ls"]])
	asked == {name("asked_command")} with input as document with data.agenttool.settings as listed("ask", [["ls"]])
	not no_findings with input as document with data.agenttool.settings as listed("deny", [["ls", "-l"]])
	denied == {name("denied_command")} with input as document with data.agenttool.settings as listed("deny", [["ls", "-l"]])
	no_findings with input as document with data.agenttool.settings as listed("deny", [["cat"]])
}

test_programs_that_wreck_a_machine_are_denied[program] if {
	some program in ["mkfs", "mkfs.ext4", "/sbin/reboot", "shutdown", "wipefs"]
	document := f.with_shell({"read_only": false, "commands": command([program, "now"])})
	not no_findings with input as document
	denied == {name("critical")} with input as document
}

test_destroying_a_place_is_denied[index] if {
	some index, commands in [
		destroying("delete_tree", ["root"], "/proj"),
		destroying("delete", ["home"], "/home/ann"),
		destroying("delete_tree", [], "/etc"),
		destroying("delete_tree", ["root", "home"], "/"),
		command(["rm", "-rf", "--no-preserve-root", "x"]),
	]
	document := f.with_shell({"destructive": true, "commands": commands})
	denied == {name("critical_target")} with input as document
	not no_findings with input as document with data.agenttool.settings as coding_settings
}

test_a_link_to_a_place_is_that_place if {
	commands := destroying("delete_tree", [], "/proj/x")
	linked := json.patch(commands, [{"op": "replace", "path": "/0/places/0/path/resolved", "value": "/usr"}])
	denied == {name("critical_target")} with input as f.with_shell({"destructive": true, "commands": linked})
}

test_writing_to_a_root_is_no_destruction[operation] if {
	some operation in ["enter", "read", "overwrite", "append"]
	document := f.with_shell({"destructive": true, "commands": destroying(operation, [], "/proj")})
	denied == set() with input as document
}

test_destroying_a_file_is_not_denied if {
	document := f.with_shell({"destructive": true, "commands": command(["rm", "-rf", "/proj/build"])})
	denied == set() with input as document
}

test_reading_a_place_is_not_denied if {
	denied == set() with input as f.with_shell({"commands": command(["ls", "/"])})
}

test_running_what_is_downloaded_is_denied if {
	document := f.with_shell({"runs_download": true})
	not no_findings with input as document
	denied == {name("downloaded_code")} with input as document
	denied == set() with input as f.with_shell({"commands": command(["curl", "https://example.org/x"])})
}

test_facts_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, {}]
	document := json.patch(f.with_shell({}), [{"op": "replace", "path": "/facts/shell", "value": value}])
	not no_findings with input as document
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
	"/facts/shell/0/runs_download",
	"/facts/shell/0/complete",
	"/facts/shell/0/commands",
	"/facts/shell/0/commands/0/places",
	"/facts/shell",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.with_shell({}), members)
		no_findings with input as document
	} == set()
}

test_a_place_without_its_path_is_never_clear if {
	document := json.patch(f.with_shell({}), [{"op": "remove", "path": "/facts/shell/0/commands/0/places/0/path"}])
	not no_findings with input as document
	asked == {name("incomplete")} with input as document
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
		no_findings with input as document
	} == set()
}

test_commands_of_the_wrong_type_are_no_denial_and_no_error[index] if {
	some index, commands in [
		7,
		null,
		[7],
		[{"name": 7}],
		[{"name": "rm", "argv": 7}],
		[{"argv": [7]}],
		[{"spellings": 7}],
		[{"spellings": [7, []]}],
	]
	document := f.with_shell({"destructive": true, "commands": commands})
	denied == set() with input as document
	name("destructive") in asked with input as document
}

test_extra_members_change_nothing if no_findings with input as f.with_shell({"extra": {"read_only": false}})

test_a_line_of_readers_and_agreed_commands_is_clear if {
	reader := object.union(command(["cat", "x"])[0], {"category": "reader", "read_only": true})
	commands := array.concat([reader], category_of(["cp"], "writer"))
	document := f.with_shell({"read_only": false, "writes": true, "commands": commands})
	no_findings with input as document with data.agenttool.settings as coding_settings
	unbounded := array.concat([object.union(reader, {"complete": false})], category_of(["cp"], "writer"))
	doubtful := f.with_shell({"read_only": false, "writes": true, "commands": unbounded})
	not no_findings with input as doubtful with data.agenttool.settings as coding_settings
}

test_a_permission_takes_the_command_as_it_is_written if {
	as_written := {"name": "npm", "argv": ["/usr/bin/npm", "test"], "assignments": [], "plain": []}
	data.agenttool.rules.shell.permitted(as_written, ["npm", "test"])
	not data.agenttool.rules.shell.permitted(as_written, ["npm", "run"])
	not data.agenttool.rules.shell.permitted(object.union(as_written, {"assignments": ["PATH"]}), ["npm", "test"])
}
