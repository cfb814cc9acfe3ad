package agenttool.sandbox.sandbox_test

import data.agenttool.lib.fixtures_test as f
import data.agenttool.rules.effects_test as e
import data.agenttool.sandbox

# what is decided of whole calls is tested in tests/bundle/test_held_calls.py
on(document, sandboxes) := object.union(document, {"execution": {"sandboxes": sandboxes, "scope": "thread"}})

command := f.with_shell({"read_only": false, "complete": false})

question := "agenttool.rules.shell.not_read_only"

table(word) := {"sandbox": {"answers": {question: word}}}

both := ["read", "rehearse"]

test_a_proven_profile_answers_what_the_table_has if {
	question in sandbox.rehearse_questions with input as on(command, both)
	not question in sandbox.read_questions with input as on(command, both)
	settings := table("read")
	question in sandbox.read_questions with input as on(command, both) with data.agenttool.settings as settings
}

test_both_profiles_answer_questions[name] if {
	some name in both
	settings := table(name)
	question in sandbox.held_questions with input as on(command, both) with data.agenttool.settings as settings
}

test_a_profile_that_is_not_proven_answers_nothing[name] if {
	some name, document in {
		"none": on(command, []),
		"another": on(command, ["read", "write"]),
		"text": on(command, "rehearse"),
		"null": on(command, null),
		"no execution": json.remove(command, ["/execution"]),
	}
	not question in sandbox.held_questions with input as document
}

test_reading_that_is_not_proven_answers_nothing if {
	settings := table("read")
	not question in sandbox.held_questions with input as on(command, ["rehearse"]) with data.agenttool.settings as settings
}

test_a_word_of_the_table_that_is_no_profile_answers_nothing[word] if {
	some word in ["write", "ask", "", null, true, ["rehearse"]]
	input_ := on(command, ["read", "rehearse", "write"])
	settings := table(word)
	not question in sandbox.held_questions with input as input_ with data.agenttool.settings as settings
}

test_a_question_outside_of_the_table_is_not_answered if {
	not "agenttool.rules.shell.network" in sandbox.held_questions with input as on(command, both)
}

test_only_calls_with_commands_are_held[name] if {
	some name, change in {
		"another kind": {"tool": {"kind": "function"}},
		"no command": {"facts": {"shell": []}},
		"commands of another type": {"facts": {"shell": "ls"}},
		"effects": {"facts": {"effects": null}},
		"no roots": {"session": {"roots": []}},
		"roots of another type": {"session": {"roots": "/proj"}},
	}
	document := object.union(on(command, both), change)
	count(sandbox.held_questions) == 0 with input as document
}

test_each_profile_has_an_obligation[profile] if {
	some profile, finding in sandbox.findings
	finding.obligations.sandbox == {"profile": profile, "network": "none"}
}

test_a_rehearsal_answers_questions_about_words if {
	waived := sandbox.waived with input as e.after([], {}) with data.agenttool.settings as {"preset": "coding"}
	"agenttool.rules.declared.writes" in waived
	not "agenttool.rules.paths.write_inside" in waived
}

test_a_switched_off_question_is_not_answered if {
	settings := {"preset": "coding", "sandbox": {"rehearsed": {"agenttool.rules.declared.writes": false}}}
	waived := sandbox.waived with input as e.after([], {}) with data.agenttool.settings as settings
	not "agenttool.rules.declared.writes" in waived
}

wish := "agenttool.rules.dataflow.untrusted_target"

test_whose_wish_it_was_does_not_matter_where_nothing_changed[name] if {
	some name, paths in {"nothing": [], "a cache": [e.effect({"noise": true})]}
	wish in sandbox.waived with input as e.after(paths, {})
}

test_whose_wish_it_was_is_asked_with_what_it_changed[name] if {
	some name, document in {
		"a file": e.after([e.effect({})], {}),
		"a cache and a file": e.after([e.effect({"noise": true}), e.effect({})], {}),
		"a connection": e.after([], {"connections": [{"host": "h", "port": 1, "attempts": 1}]}),
		"counted connections": e.after([], {"counts": {"connections": 1}}),
		"an owner": e.after([], {"counts": {"owner": 1}}),
		"paths of another type": e.after([], {"paths": null}),
		"noise of another type": e.after([e.effect({"noise": "true"})], {}),
	}
	not wish in sandbox.waived with input as document
}

test_effects_that_nobody_rehearsed_answer_nothing[name] if {
	some name, change in {
		"not proven": {"execution": {"sandboxes": ["read"]}},
		"preflight": {"invocation": {"preflight": true}},
		"another kind": {"tool": {"kind": "function"}},
		"words beside them": {"facts": {"shell": command.facts.shell}},
		"sandboxes of the wrong type": {"execution": {"sandboxes": "rehearse"}},
		"incomplete effects": {"facts": {"effects": {"complete": false}}},
		"effects of the wrong type": {"facts": {"effects": true}},
	}
	waived := sandbox.waived with input as object.union(e.after([], {}), change)
	waived == set()
}
