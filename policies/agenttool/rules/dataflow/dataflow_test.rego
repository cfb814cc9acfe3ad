package agenttool.rules.dataflow_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.dataflow.no_findings(data.agenttool.config.effective)

asked := f.rules(data.agenttool.rules.dataflow.ask)

name(rule) := concat(".", ["agenttool.rules.dataflow", rule])

trust := {true: "free_text", false: "user"}

role("/body") := "content"

role("/subject") := "content"

role("/notes/0/text") := "content"

role("/amount") := "bounded"

default role(_) := "target"

sending(pointer, untrusted) := f.changed({
	"tool": {"id": "mail.send", "namespace": "mail", "name": "send", "read_only": false},
	"permission_profile": {"access_kinds": ["external_send"], "write_effects": ["remote_mutation"]},
	"facts": {"paths": [], "provenance": {pointer: object.union(f.value_fact, {
		"untrusted": untrusted,
		"trust": trust[untrusted],
		"role": role(pointer),
	})}},
})

test_nothing_known_is_clear if {
	no_findings with input as f.base
	asked == set() with input as f.base
}

test_trusted_values_are_clear if no_findings with input as sending("/to", false)

test_untrusted_targets_are_asked[pointer] if {
	some pointer in [
		"/to",
		"/to/0",
		"/Recipient",
		"/reply_email",
		"/bank/iban",
		"/billing_address",
		"/webhook",
		"/file_path",
		"/shell_command",
		"/amount",
	]
	not no_findings with input as sending(pointer, true)
	asked == {name("untrusted_target")} with input as sending(pointer, true)
}

# METADATA
# title: A command whose words stand only in what an earlier command gave
steered(line) := object.union(sending("/command", true), {
	"tool": {"kind": "shell_command"},
	"permission_profile": {"access_kinds": ["code_execution"]},
	"facts": {"shell": [object.union(f.shell_fact, object.union({"argument": "/command", "network": false, "executes": false}, line))]},
})

test_a_command_that_is_proven_to_only_read_may_be_anybodys if {
	no_findings with input as steered({"read_only": true})
	asked == set() with input as steered({"read_only": true})
}

test_any_other_command_is_asked_about[label] if {
	some label, line in {
		"writes": {"read_only": false},
		"network": {"read_only": true, "network": true},
		"runs a program": {"read_only": true, "executes": true},
		"another argument": {"read_only": true, "argument": "/other"},
		"not known": {"read_only": null},
	}
	asked == {"agenttool.rules.dataflow.untrusted_target"} with input as steered(line)
}

test_one_of_two_lines_that_writes_is_asked_about if {
	first := steered({"read_only": true})
	both := array.concat(first.facts.shell, steered({"read_only": false}).facts.shell)
	asked == {name("untrusted_target")} with input as object.union(first, {"facts": {"shell": both}})
}

test_a_tool_that_is_no_shell_proves_nothing_by_a_command if {
	document := object.union(steered({"read_only": true}), {"tool": {"kind": "function"}})
	asked == {name("untrusted_target")} with input as document
}

test_a_value_of_unknown_source_is_asked_where_it_steers if {
	forgotten := {"sources": ["unknown"], "untrusted": false, "certain": false, "trust": "unknown"}
	document := object.union(sending("/to", false), {"facts": {"provenance": {"/to": forgotten}}})
	not no_findings with input as document
	asked == {name("unknown_source")} with input as document
	no_findings with input as object.union(sending("/body", false), {"facts": {"provenance": {"/body": forgotten}}})
}

test_untrusted_content_is_only_carried[pointer] if {
	some pointer in ["/body", "/subject", "/notes/0/text"]
	no_findings with input as sending(pointer, true)
	asked == set() with input as sending(pointer, true)
}

test_what_facts_name_steers_the_call[kind] if {
	some kind, fact in {
		"paths": object.union(f.path_fact, {"argument": "/thing"}),
		"urls": object.union(f.url_fact, {"argument": "/thing"}),
		"shell": object.union(f.shell_fact, {"argument": "/thing"}),
		"sql": object.union(f.sql_fact, {"argument": "/thing"}),
	}
	document := object.union(sending("/thing", true), {"facts": {kind: [fact]}})
	asked == {name("untrusted_target")} with input as document
}

test_a_tool_that_only_reads_may_be_steered if {
	no_findings
		with input as f.changed({"facts": {"provenance": {"/path": f.value_fact}}})
}

test_a_reader_that_sends_is_asked if {
	document := f.changed({
		"permission_profile": {"access_kinds": ["external_send"]},
		"facts": {"provenance": {"/to": f.value_fact}},
	})
	asked == {name("untrusted_target")} with input as document
}

test_facts_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, []]
	document := json.patch(f.base, [{"op": "replace", "path": "/facts/provenance", "value": value}])
	not no_findings with input as document
	asked == {name("unproven")} with input as document
}

members := ["/facts/provenance/~1body/untrusted", "/facts/provenance/~1body", "/facts/provenance"]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(sending("/body", true), [
			"/facts/provenance/~1body/untrusted",
			"/facts/provenance",
			"/facts",
		])
		no_findings with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(sending("/body", true), members, [7, [7], {"x": 1}, "nonsense", null])
		no_findings with input as document
	} == set()
}

test_other_facts_of_the_wrong_type_carry_nothing[kind] if {
	some kind in ["paths", "urls", "shell", "sql"]
	document := json.patch(sending("/body", true), [{
		"op": "replace",
		"path": concat("", ["/facts/", kind]),
		"value": "x",
	}])
	not no_findings with input as document
}

test_extra_members_change_nothing if no_findings with input as f.extended

reading(fact) := f.changed({
	"permission_profile": {"access_kinds": ["network"]},
	"facts": {"paths": [], "provenance": {"/url": fact}},
})

test_a_reader_may_follow_an_untrusted_link_as_it_is if {
	no_findings with input as reading(f.value_fact)
	asked == set() with input as reading(f.value_fact)
}

test_a_link_with_a_query_of_its_own_is_asked if {
	document := reading(object.union(f.value_fact, {"extended": true}))
	not no_findings with input as document
	asked == {name("outward")} with input as document
}

test_a_link_in_what_stays_here_is_carried if {
	document := object.union(sending("/body", true), {
		"permission_profile": {"access_kinds": []},
		"facts": {"provenance": {"/body": {"link": true}}},
	})
	no_findings with input as document
}

test_names_that_the_configuration_lists_are_targets[pointer] if {
	some pointer in ["/query", "/Code", "/payload_ref"]
	document := object.union(sending(pointer, true), {"facts": {"provenance": {pointer: {"role": "content"}}}})
	asked == {name("untrusted_target")} with input as document
		with data.agenttool.settings as {"dataflow": {"target_suffixes": ["_ref"]}}
}

test_an_inferred_record_counts_where_the_configuration_says_so if {
	document := object.union(sending("/to", false), {"facts": {"provenance": {"/to": {"trust": "inferred"}}}})
	not no_findings with input as document
	no_findings with input as document with data.agenttool.settings as {"dataflow": {"trust_inferred": true}}
}

test_vouching_leaves_alone_what_only_reads_or_is_vouched_for if {
	vouch := {"preset": "assistant"}
	no_findings with input as f.changed({"facts": {"provenance": {"/path": f.value_fact}}})
		with data.agenttool.settings as vouch
	intent := {"called_for": true, "matched": ["send"], "named": [], "delegated": false}
	vouched := object.union(sending("/to", false), {"facts": {"intent": intent}})
	no_findings with input as vouched with data.agenttool.settings as vouch
}

test_an_inferred_record_in_content_is_carried if {
	fact := {"trust": "inferred", "untrusted": false, "role": "content"}
	document := object.union(sending("/body", false), {"facts": {"provenance": {"/body": fact}}})
	no_findings with input as document
}

test_content_that_a_fact_names_steers_the_call if {
	fact := object.union(f.path_fact, {"argument": "/body"})
	document := object.union(sending("/body", true), {"facts": {"paths": [fact]}})
	asked == {name("untrusted_target")} with input as document
}

test_confidential_content_for_a_stranger_is_asked if {
	fact := {"trust": "trusted", "untrusted": false, "private": ["tool:bank.read"], "role": "content"}
	document := sending("/to", false)
	both := object.union(document, {"facts": {"provenance": {
		"/to": {"trust": "trusted", "sources": ["tool:book.list"]},
		"/body": object.union(f.value_fact, fact),
	}}})
	asked == {name("outward")} with input as both
}

test_confidential_content_for_nobody_in_particular_is_asked if {
	fact := {"trust": "trusted", "untrusted": false, "private": ["tool:bank.read"], "role": "content"}
	document := object.union(sending("/body", false), {"facts": {"provenance": {"/body": fact}}})
	asked == {name("outward")} with input as document
}

test_access_that_nobody_stated_keeps_nothing_here if {
	document := object.union(sending("/body", true), {
		"tool": {"inferred": ["access_kinds"]},
		"permission_profile": {"access_kinds": []},
		"facts": {"provenance": {"/body": {"link": true}}},
	})
	asked == {name("outward")} with input as document
}

test_a_reader_of_unknown_access_is_asked_about_untrusted_values if {
	document := object.union(reading(f.value_fact), {
		"tool": {"inferred": ["access_kinds"]},
		"permission_profile": {"access_kinds": []},
	})
	asked == {name("untrusted_target")} with input as document
}

test_a_line_break_where_one_line_is_meant_is_asked[pointer] if {
	some pointer in ["/to", "/subject", "/amount"]
	document := object.union(sending(pointer, false), {"facts": {"provenance": {pointer: {"broken": true}}}})
	name("broken_line") in asked with input as document
	not no_findings with input as document
}

stated(changes) := object.union(
	sending("/to", true),
	{"facts": {"provenance": {"/to": object.union({"allowed": ["user", "contacts.*"]}, changes)}}},
)

test_a_value_of_a_stated_source_may_stand_in_untrusted_output_too if {
	no_findings with input as stated({"sourced": "listed"})
	no_findings with input as stated({"sourced": "listed", "link": true})
	asked == set() with input as stated({"sourced": "listed"})
}

test_any_other_value_is_asked_about_whoever_gave_it[level] if {
	some level in ["user", "trusted", "record", "inferred", "unknown"]
	document := stated({"sourced": "other", "untrusted": false, "trust": level})
	not no_findings with input as document
	name("other_source") in asked with input as document
}

test_the_question_names_argument_and_sources if {
	some finding in data.agenttool.rules.dataflow.ask with input as stated({"sourced": "other"})
	startswith(finding.message, "/to may come from user, contacts.* alone")
}

test_a_tool_that_only_reads_is_asked_where_its_sources_are_stated if {
	document := f.changed({"facts": {"provenance": {"/path": object.union(f.value_fact, {"sourced": "other"})}}})
	asked == {name("other_source")} with input as document
}

test_a_fact_without_the_comparison_is_no_proof[value] if {
	some value in [null, true, "", "Listed", ["listed"]]
	not no_findings with input as stated({"sourced": value})
	name("other_source") in asked with input as stated({"sourced": value})
}

test_a_listed_value_is_asked_about_where_something_is_added[member] if {
	some member in ["broken", "extended"]
	not no_findings with input as stated({"sourced": "listed", member: true, "link": true})
}

test_a_counterparty_may_be_a_stated_source if {
	document := object.union(
		stated({"sourced": "other", "allowed": ["user", "counterparties"]}),
		{"input": {"to": "ann@example.org"}},
	)
	listing := {"counterparties": {"known": ["ann@example.org"]}}
	no_findings with input as document with data.agenttool.settings as listing
	not no_findings with input as document
	not no_findings with input as object.union(document, {"facts": {"provenance": {"/to": {"allowed": ["user"]}}}})
		with data.agenttool.settings as listing
}
