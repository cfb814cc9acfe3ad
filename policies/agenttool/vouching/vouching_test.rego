package agenttool.vouching.vouching_test

import data.agenttool.lib.fixtures_test as f

c := object.union(data.agenttool.defaults, data.agenttool.defaults.presets.assistant)

asked_for := {"called_for": true, "matched": ["send"], "named": [], "delegated": false}

unasked := object.union(asked_for, {"called_for": false, "matched": []})

value(changes) := object.union(f.value_fact, object.union({"untrusted": false, "trust": "user"}, changes))

sending(values) := calling(values, asked_for)

calling(values, intent) := f.changed({
	"tool": {"id": "mail.send", "namespace": "mail", "name": "send", "read_only": false, "destructive": false},
	"permission_profile": {"access_kinds": ["external_send"], "write_effects": ["remote_mutation"]},
	"facts": {"paths": [], "intent": intent, "provenance": values},
})

deleting(values) := object.union(sending(values), {"tool": {"destructive": true}})

vouched_for(document) if data.agenttool.vouching.vouches(c) with input as document

asked(document) := found if {
	found := f.rules(data.agenttool.rules.dataflow.ask) with input as document
		with data.agenttool.settings as {"preset": "assistant"}
}

decided(document) := behavior if {
	behavior := data.agenttool.permission.decision.behavior with input as document
		with data.agenttool.settings as {"preset": "assistant"}
}

name(rule) := concat(".", ["agenttool.rules.dataflow", rule])

test_a_vouched_target_runs[trust] if {
	some trust in ["user", "trusted", "record", "inferred"]
	vouched_for(sending({"/to": value({"trust": trust})}))
	decided(sending({"/to": value({"trust": trust})})) == "allow"
}

test_the_same_call_is_asked_about_in_balanced if {
	data.agenttool.permission.decision.behavior == "ask" with input as sending({"/to": value({})})
}

test_an_inferred_record_does_not_count_in_balanced if {
	document := sending({"/to": value({"trust": "inferred"})})
	found := f.rules(data.agenttool.rules.dataflow.ask) with input as document
	found == {name("unknown_source")}
}

test_an_untrusted_or_unknown_target_is_asked_about if {
	asked(sending({"/to": f.value_fact})) == {name("untrusted_target")}
	asked(sending({"/to": value({"trust": "unknown"})})) == {name("unvouched")}
	decided(sending({"/to": value({"trust": "unknown"})})) == "ask"
}

test_a_made_up_id_needs_the_words if {
	made_up := {"/file_id": value({"trust": "unknown", "made_up_id": true})}
	vouched_for(sending(made_up))
	not vouched_for(calling(made_up, unasked))
	not vouched_for(sending({"/file_id": value({"trust": "unknown", "made_up_id": true, "certain": false})}))
}

test_a_number_is_as_harmless_as_its_target if {
	vouched_for(sending({"/to": value({}), "/amount": value({"role": "bounded", "trust": "unknown"})}))
	number := object.union(f.value_fact, {"role": "bounded"})
	data.agenttool.vouching.vouched(c, "/amount", number) with input as sending({"/to": value({}), "/amount": number})
	not data.agenttool.vouching.vouched(c, "/amount", number) with input as sending({"/amount": number})
}

test_a_target_that_the_configuration_knows_runs if {
	document := object.union(sending({"/to": f.value_fact}), {"input": {"to": "ann@example.org"}})
	data.agenttool.permission.decision.behavior == "allow" with input as document
		with data.agenttool.settings as {"preset": "assistant", "counterparties": {"known": ["ann@example.org"]}}
}

test_content_is_carried if vouched_for(sending({"/to": value({}), "/body": object.union(
	f.value_fact,
	{"role": "content"},
)}))

test_an_untrusted_link_is_not if {
	document := sending({"/to": value({}), "/body": object.union(f.value_fact, {"role": "content", "link": true})})
	asked(document) == {name("outward")}
}

test_confidential_data_goes_to_whom_the_user_or_its_source_named if {
	body := object.union(f.value_fact, {"role": "content", "private": ["tool:account.me"]})
	vouched_for(sending({"/to": value({}), "/body": body}))
	vouched_for(sending({"/to": value({"trust": "record", "sources": ["tool:account.me"]}), "/body": body}))
	asked(sending({"/to": value({"trust": "record"}), "/body": body})) == {name("outward")}
}

test_the_words_decide_where_the_targets_are_not_the_users if {
	record := {"/to": value({"trust": "record"})}
	asked(calling(record, unasked)) == {name("not_called_for")}
	vouched_for(calling({"/to": value({})}, unasked))
	vouched_for(calling(record, object.union(unasked, {"delegated": true})))
	asked(calling({}, unasked)) == {name("not_called_for")}
	asked(calling({}, null)) == {name("not_called_for")}
	vouched_for(calling({}, asked_for))
}

classified := object.union(unasked, {"classified": true})

test_a_classifier_answers_what_only_the_words_leave_open if {
	record := {"/to": value({"trust": "record"})}
	vouched_for(calling(record, classified))
	asked(calling(record, object.union(classified, {"classified": false}))) == {name("not_called_for")}
	asked(calling(record, object.union(unasked, {"classified": "yes"}))) == {name("not_called_for")}
}

test_a_classifier_answers_nothing_else if {
	record := {"/to": value({"trust": "record"})}
	not vouched_for(calling({"/to": value({"untrusted": true, "trust": "free_text"})}, classified))
	not vouched_for(object.union(deleting(record), {"facts": {"intent": classified}}))
	some_kinds := ["payment", "credential", "code_execution"]
	every kind in some_kinds {
		not vouched_for(object.union(calling(record, classified), {"permission_profile": {"access_kinds": [kind]}}))
	}
}

test_what_cannot_be_undone_needs_a_target_of_the_users if {
	record := {"/file_id": value({"trust": "record"})}
	asked(deleting(record)) == {name("not_named")}
	vouched_for(deleting({"/file_id": value({})}))
	not vouched_for(deleting({}))
	not vouched_for(object.union(deleting({"/file_id": value({})}), {"facts": {"intent": unasked}}))
	approved := object.union(deleting(record), {"facts": {"approved": ["/file_id"]}})
	vouched_for(approved)
}

test_credentials_and_lasting_effects_count_as_such[index] if {
	some index, profile in [{"access_kinds": ["credential"]}, {"write_effects": ["irreversible"]}]
	document := object.union(sending({"/to": value({"trust": "record"})}), {"permission_profile": profile})
	asked(document) == {name("not_named")}
}

test_numbers_and_content_need_no_naming if {
	vouched_for(deleting({"/file_id": value({}), "/count": value({"role": "bounded", "trust": "unknown"})}))
}

test_other_questions_stay if {
	document := object.union(sending({"/to": value({})}), {"permission_profile": {"risk_level": "critical"}})
	decided(document) == "ask"
}

test_a_missing_or_mistyped_member_vouches_for_nothing if {
	base := sending({"/to": value({})})
	members := ["/facts/provenance/~1to/trust", "/facts/provenance/~1to/certain", "/facts/provenance/~1to/untrusted"]
	{document | some document in f.missing(base, members); vouched_for(document)} == set()
	{document | some document in f.mistyped(base, members, [7, null, {"x": 1}, "x"]); vouched_for(document)} == set()
	{document |
		some document in f.mistyped(base, ["/facts/provenance"], [7, null, "x", [7]])
		vouched_for(document)
	} == set()
}

test_nothing_is_vouched_for_where_nothing_was_looked_up[index] if {
	some index, changes in [{"traced": false}, {"aimed": false}, {"traced": "x"}, {"aimed": null}]
	not vouched_for(object.union(calling({}, asked_for), {"facts": changes}))
	not vouched_for(object.union(sending({"/to": value({})}), {"facts": changes}))
}

test_the_question_says_what_was_not_looked_up if {
	asked(object.union(calling({}, asked_for), {"facts": {"traced": false, "aimed": false}})) == {name("untraced")}
	asked(object.union(calling({}, asked_for), {"facts": {"aimed": false}})) == {name("no_target")}
}

test_effects_that_nobody_stated_are_not_mild[index] if {
	some index, changes in [
		{"tool": {"inferred": ["write_effects"]}, "permission_profile": {"write_effects": []}},
		{"tool": {"inferred": ["access_kinds"]}, "permission_profile": {"access_kinds": []}},
		{"permission_profile": {"write_effects": []}},
	]
	document := object.union(sending({"/to": value({"trust": "record"})}), changes)
	asked(document) == {name("not_named")}
}

test_a_stated_source_vouches_for_a_value_of_free_text if {
	listed := {"sourced": "listed", "allowed": ["mail.*"], "untrusted": true, "trust": "free_text"}
	decided(sending({"/to": value(listed)})) == "allow"
	decided(sending({"/to": value(object.union(listed, {"sourced": "other"}))})) == "ask"
	decided(sending({"/to": value({"sourced": "other", "allowed": ["mail.*"]})})) == "ask"
}
