package agenttool.rules.override_test

import data.agenttool.lib.fixtures_test as f
import data.agenttool.rules.effects_test as e
import data.agenttool.rules.override as rules

on(document, refused) := object.union(
	document,
	{"execution": {"sandboxes": ["read", "rehearse"], "scope": "thread", "refused": refused}},
)

command := f.with_shell({"read_only": false, "complete": false})

test_a_call_that_was_refused_something_is_asked_about if {
	some finding in rules.ask with input as on(command, ["connect"])
	finding.type == "sandbox_override"
	not rules.clear with input as on(command, ["connect"])
}

test_nothing_is_asked_where_nothing_was_refused[name] if {
	some name, document in {
		"nothing": on(command, []),
		"no word of it": json.remove(on(command, []), ["/execution/refused"]),
		"no execution": json.remove(command, ["/execution"]),
		"a tool that is no shell": object.union(on(command, ["write"]), {"tool": {"kind": "function"}}),
		"after a rehearsal": object.union(e.after([], {}), {"execution": {"refused": ["connect"]}}),
	}
	rules.clear with input as document
	count(rules.ask) == 0 with input as document
}

test_a_switched_off_override_is_no_question if {
	settings := {"sandbox": {"override": false}}
	rules.clear with input as on(command, ["connect"]) with data.agenttool.settings as settings
	count(rules.ask) == 0 with input as on(command, ["connect"]) with data.agenttool.settings as settings
}

test_the_strictest_presets_hold_again[preset] if {
	some preset in ["strict", "plan"]
	count(rules.ask) == 0 with input as on(command, ["write"]) with data.agenttool.settings as {"preset": preset}
}
