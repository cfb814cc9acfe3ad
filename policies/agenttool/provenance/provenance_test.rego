package agenttool.provenance.provenance_test

import data.agenttool.provenance

kinds := ["paths", "urls", "shell", "sql"]

nothing := {kind: [] | some kind in kinds}

content := {"role": "content"}

test_content_is_only_carried if {
	provenance.carried(data.agenttool.config.effective, "/body", content) with input.facts as nothing
}

test_content_that_is_another_fact_too_steers_the_call[kind] if {
	some kind in kinds
	facts := object.union(nothing, {kind: [{"argument": "/body"}]})
	not provenance.carried(data.agenttool.config.effective, "/body", content) with input.facts as facts
}
