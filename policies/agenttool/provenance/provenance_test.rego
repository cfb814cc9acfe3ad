package agenttool.provenance.provenance_test

import data.agenttool.provenance

kinds := ["paths", "urls", "shell", "sql"]

nothing := {kind: [] | some kind in kinds}

content := {"role": "content", "broken": false}

test_content_is_only_carried if {
	provenance.carried(data.agenttool.config.effective, "/body", content) with input.facts as nothing
}

test_content_that_is_another_fact_too_steers_the_call[kind] if {
	some kind in kinds
	facts := object.union(nothing, {kind: [{"argument": "/body"}]})
	not provenance.carried(data.agenttool.config.effective, "/body", content) with input.facts as facts
}

test_a_line_break_is_not_carried if {
	broken := object.union(content, {"broken": true})
	not provenance.carried(data.agenttool.config.effective, "/subject", broken) with input.facts as nothing
}

test_a_message_names_the_argument_at_the_top if {
	provenance.argument("/to/0/address") == "/to"
	provenance.argument("") == "an argument"
}

test_a_message_names_the_tools_that_gave_a_value if {
	provenance.tools({"sources": ["tool:web", "user", "tool:mail"]}) == "mail, web"
	provenance.tools({"sources": ["user"]}) == "untrusted output"
}

test_a_message_names_the_stated_sources if {
	provenance.allowed({"allowed": ["user", "contacts.*"]}) == "user, contacts.*"
	provenance.allowed({"allowed": null}) == "its stated sources"
}
