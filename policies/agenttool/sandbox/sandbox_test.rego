package agenttool.sandbox_test

import data.agenttool.lib.fixtures_test as f
import data.agenttool.permission
import data.agenttool.rules.effects_test as e
import data.agenttool.sandbox

held(sandboxes) := {"execution": {"sandboxes": sandboxes, "scope": "thread"}}

# a test run, of which nobody knows what it writes
unproven := f.with_shell({
	"read_only": false,
	"complete": false,
	"commands": [object.union(f.shell_fact.commands[0], {
		"read_only": false, "complete": false, "category": "unknown", "places": [],
	})],
})

on(document, sandboxes) := object.union(document, held(sandboxes))

decided(document, preset) := decision if {
	decision := permission.decision with input as document with data.agenttool.settings as {"preset": preset}
}

test_what_a_rehearsal_answers_is_rehearsed[preset] if {
	some preset in ["balanced", "coding"]
	decision := decided(on(unproven, ["read", "rehearse"]), preset)
	decision.behavior == "allow"
	decision.reason.rule_ref == "agenttool.sandbox.rehearse"
	"agenttool.rules.shell.not_read_only" in decision.rule_refs
	decision.obligations.sandbox == {"profile": "rehearse", "network": "none"}
}

test_without_the_profile_it_is_asked_about[name] if {
	some name, sandboxes in {"none": [], "read alone": ["read"], "write": ["write"], "text": "rehearse"}
	decision := decided(on(unproven, sandboxes), "balanced")
	decision.behavior == "ask"
	not decision.obligations.sandbox
}

test_without_execution_it_is_asked_about if {
	decided(json.remove(unproven, ["/execution"]), "balanced").behavior == "ask"
}

test_strict_holds_so_that_nothing_is_written if {
	decision := decided(
		json.patch(on(unproven, ["read", "rehearse"]), [{
			"op": "replace", "path": "/permission_profile/risk_level", "value": "low",
		}]),
		"strict",
	)
	not decision.obligations.sandbox.profile == "rehearse"
}

test_plan_and_strict_rehearse_nothing[preset] if {
	some preset in ["plan", "strict"]
	not decided(on(unproven, ["rehearse"]), preset).behavior == "allow"
}

test_read_answers_where_the_table_has_it if {
	profile := sandbox.profile_for(
		{"sandbox": {"answers": {"q": "read"}}},
		"q",
	) with input as on(unproven, ["read"])
	profile == "read"
	sandbox.finding(profile).obligations.sandbox.profile == "read"
}

test_a_word_of_the_table_that_is_no_profile_answers_nothing[word] if {
	some word in ["write", "ask", "", null, true, ["rehearse"]]
	not sandbox.profile_for({"sandbox": {"answers": {"q": word}}}, "q") with input as on(
		unproven,
		["read", "rehearse", "write"],
	)
}

test_one_question_outside_of_the_table_is_asked_with_all_others[name] if {
	some name, change in {"network": {"network": true}, "secret": {"sensitive_read": true}}
	facts := {"facts": {"shell": [object.union(unproven.facts.shell[0], change)]}}
	decision := decided(on(object.union(unproven, facts), ["read", "rehearse"]), "coding")
	decision.behavior == "ask"
	not decision.obligations.sandbox
}

test_a_denial_is_no_question if {
	facts := {"facts": {"shell": [object.union(unproven.facts.shell[0], {"runs_download": true})]}}
	decided(on(object.union(unproven, facts), ["read", "rehearse"]), "coding").behavior == "deny"
}

test_a_tool_that_is_no_command_is_asked_about if {
	decided(on(f.writing, ["read", "rehearse"]), "balanced").behavior == "ask"
	other := object.union(unproven, {"tool": {"kind": "function"}})
	decided(on(other, ["read", "rehearse"]), "balanced").behavior == "ask"
}

test_nobody_has_to_be_reachable if {
	document := object.union(on(unproven, ["rehearse"]), {"session": {"interactive": false}})
	decided(document, "balanced").behavior == "allow"
}

test_a_call_without_findings_is_not_held if {
	not decided(on(f.base, ["read", "rehearse"]), "balanced").obligations.sandbox
}

test_after_the_rehearsal_the_words_are_not_asked_about_again if {
	decision := decided(e.after([], {}), "balanced")
	decision.behavior == "allow"
	not decision.obligations.sandbox
}

test_balanced_asks_about_effects_and_coding_keeps_them if {
	decided(e.after([e.effect({})], {}), "balanced").reason.rule_ref == "agenttool.rules.paths.write_inside"
	decided(e.after([e.effect({})], {}), "coding").behavior == "allow"
}

test_an_effect_outside_of_the_roots_is_denied if {
	outside := e.effect({"lexical": "/usr/bin/x", "resolved": "/usr/bin/x", "inside": false})
	decided(e.after([outside], {}), "coding").behavior == "deny"
}

test_effects_that_nobody_rehearsed_answer_nothing[name] if {
	some name, change in {
		"not proven": {"execution": {"sandboxes": ["read"]}},
		"preflight": {"invocation": {"preflight": true}},
		"another kind": {"tool": {"kind": "function"}},
		"words beside them": {"facts": {"shell": unproven.facts.shell}},
		"sandboxes of the wrong type": {"execution": {"sandboxes": "rehearse"}},
	}
	decided(object.union(e.after([], {}), change), "coding").behavior == "ask"
}

test_effects_of_another_type_are_denied_or_asked_about[name] if {
	some name, effects in {"null": null, "false": false, "text": "x", "empty": {}, "list": []}
	document := json.patch(e.after([], {}), [{"op": "replace", "path": "/facts/effects", "value": effects}])
	decided(document, "coding").behavior == "deny"
}

test_a_claim_of_effects_does_not_start_a_rehearsal if {
	document := object.union(unproven, {"facts": {"effects": e.effects([], {})}})
	decided(on(document, ["read", "rehearse"]), "coding").behavior == "ask"
}
