package agenttool.redaction.redaction_test

import data.agenttool.lib.fixtures_test as f

nothing := {"redact_input": [], "redact_result": [], "max_inline_chars": null, "persistence": null}

obligations := data.agenttool.redaction.obligations

test_a_plain_tool_has_no_obligations if {
	obligations == nothing with input as f.base
	obligations == nothing with input as f.with_url({})
	obligations == nothing with input as f.extended
}

test_public_data_has_no_obligations[word] if {
	some word in ["none", "public", "low", "internal"]
	obligations == nothing with input as f.changed({"permission_profile": {"data_sensitivity": word}})
}

test_confidential_data_is_redacted[word] if {
	some word in ["confidential", "personal", "high", "anything else"]
	obligations == object.union(nothing, {"redact_result": ["detected"]})
		with input as f.changed({"permission_profile": {"data_sensitivity": word}})
}

test_secret_data_is_never_kept[word] if {
	some word, pointer in {"secret": "*", "restricted": "detected"}
	obligations == object.union(
		nothing,
		{"redact_result": [pointer], "persistence": "never_persist"},
	) with input as f.changed({"permission_profile": {"data_sensitivity": word}})
}

test_credentials_are_replaced_as_a_whole[word] if {
	some word in ["credential", "credentials"]
	obligations == object.union(nothing, {"redact_result": ["*"]})
		with input as f.changed({"permission_profile": {"data_sensitivity": word}})
}

test_a_configuration_says_what_a_sensitivity_asks_for if {
	words := {"confidential": "replace", "secret": "keep"}
	obligations.redact_result == ["*"]
		with input as f.changed({"permission_profile": {"data_sensitivity": "confidential"}})
		with data.agenttool.settings as {"redaction": {"sensitivities": words}}
	obligations.redact_result == []
		with input as f.changed({"permission_profile": {"data_sensitivity": "secret"}})
		with data.agenttool.settings as {"redaction": {"sensitivities": words}}
}

test_a_tool_may_demand_redaction if {
	obligations == object.union(nothing, {"redact_result": ["detected"]})
		with input as f.changed({"permission_profile": {"redaction_required": true}})
}

test_credentials_are_redacted_and_never_kept if {
	obligations == object.union(
		nothing,
		{"redact_result": ["*"], "persistence": "never_persist"},
	) with input as f.changed({"permission_profile": {"access_kinds": ["credential"]}})
}

test_credentials_in_a_url_are_redacted[index] if {
	some index, change in [{"credentials": true}, {"sensitive_query": true}, {"credentials": "yes"}]
	obligations == object.union(nothing, {"redact_input": ["/url"]}) with input as f.with_url(change)
}

test_the_configuration_may_add_obligations if {
	settings := {"redaction": {"max_inline_chars": 5000, "tools": {
		"local.*": {"redact_result": ["/token"], "max_inline_chars": 100, "persistence": "ref_only"},
		"read_file": {"redact_input": ["/path"], "max_inline_chars": 200, "persistence": "redact"},
		"web.*": {"persistence": "never_persist"},
	}}}
	obligations == {
		"redact_input": ["/path"],
		"redact_result": ["/token"],
		"max_inline_chars": 100,
		"persistence": "redact",
	} with input as f.base with data.agenttool.settings as settings
	obligations == object.union(nothing, {
		"max_inline_chars": 5000,
		"persistence": "never_persist",
	}) with input as f.with_url({}) with data.agenttool.settings as settings
}

test_an_unknown_strategy_keeps_nothing if {
	settings := {"redaction": {"tools": {"*": {"persistence": "somewhere"}}}}
	obligations == object.union(
		nothing,
		{"persistence": "never_persist"},
	) with input as f.base with data.agenttool.settings as settings
}

test_without_a_configuration_everything_is_redacted if {
	obligations == object.union(
		nothing,
		{"redact_result": ["*"], "persistence": "never_persist"},
	) with input as f.base with data.agenttool.settings as {"preset": "lax"}
}

members := [
	"/permission_profile/data_sensitivity",
	"/permission_profile/redaction_required",
	"/permission_profile/access_kinds",
	"/permission_profile",
]

test_a_missing_member_is_redacted if {
	{document |
		some document in f.missing(f.base, members)
		not everything with input as document
	} == set()
}

test_a_mistyped_member_is_redacted if {
	{document |
		some document in f.mistyped(f.base, members, [7, {"x": 1}, "nonsense"])
		not everything with input as document
	} == set()
}

everything if count(obligations.redact_result) > 0

test_urls_of_the_wrong_type_are_no_error if {
	obligations.redact_input == [] with input as json.patch(f.base, [{
		"op": "replace",
		"path": "/facts/urls",
		"value": "x",
	}])
}

combined(base, findings) := data.agenttool.redaction.combined(data.agenttool.config.effective, base, findings)

test_findings_add_to_obligations if {
	combined(object.union(nothing, {"redact_input": ["/a"], "max_inline_chars": 50, "persistence": "inline"}), {
		{"rule": "x", "obligations": {"redact_input": ["/b"], "max_inline_chars": 10, "persistence": "ref_only"}},
		{"rule": "y", "obligations": {"redact_result": ["*"], "redact_input": "/c", "max_inline_chars": "few"}},
		{"rule": "z"},
	}) == {
		"redact_input": ["/a", "/b"],
		"redact_result": ["*"],
		"max_inline_chars": 10,
		"persistence": "ref_only",
	} with input as f.base
}

sandbox_of(sandboxes) := combined(nothing, {{"rule": "x", "index": index, "obligations": {"sandbox": sandbox}} |
	some index, sandbox in sandboxes
}).sandbox

test_the_strictest_sandbox_holds if {
	read := {"profile": "read"}
	write := {"profile": "write", "network": "none"}
	sandbox_of([read]) == read with input as f.base
	sandbox_of([write, {"profile": "rehearse"}]) == {"profile": "rehearse", "network": "none"} with input as f.base
	sandbox_of([write, read]) == {"profile": "read", "network": "none"} with input as f.base
}

test_a_sandbox_that_is_not_understood_is_handed_on[index] if {
	some index, broken in ["read", {"network": "none"}, {"profile": "read", "net": 1}, {"profile": 7}]
	sandbox_of([{"profile": "read"}, broken]) == broken with input as f.base
}

# the runtime knows what it narrows, or refuses it
test_a_profile_of_ones_own_is_handed_on_beside_the_others if {
	sandbox_of([{"profile": "ci"}]) == {"profiles": ["ci"]} with input as f.base
	sandbox_of([{"profile": "read"}, {"profile": "ci", "network": "none"}]) == {
		"profiles": ["ci", "read"],
		"network": "none",
	} with input as f.base
}

test_an_unknown_obligation_is_no_decision if {
	misspelt := combined(nothing, {{"rule": "x", "obligations": {"sandbx": {"profile": "read"}}}}) with input as f.base
	misspelt != nothing
	object.keys(misspelt) - object.keys(nothing) == {"unknown"}
}

test_no_sandbox_is_no_member if {
	combined(nothing, {{"rule": "x", "obligations": {"sandbox": null}}}) == nothing with input as f.base
}

test_findings_without_obligations_change_nothing if {
	combined(nothing, {{"rule": "x"}}) == nothing with input as f.base
	combined(nothing, {{"rule": "x", "obligations": {}}}) == nothing with input as f.base
}
