package agenttool.permission.permission_test

import data.agenttool.lib.fixtures_test as f

decision := data.agenttool.permission.decision

behavior := decision.behavior

rule := decision.reason.rule_ref

nothing := {"redact_input": [], "redact_result": [], "max_inline_chars": null, "persistence": null}

test_a_clear_call_is_allowed_with_a_whole_document if {
	decision == {
		"behavior": "allow",
		"reason": {
			"type": "working_dir",
			"rule_ref": "agenttool.rules.paths.read_inside",
			"message": "the paths may be read",
		},
		"rule_refs": ["agenttool.rules.paths.read_inside"],
		"updated_input": null,
		"suggested_updates": [],
		"blocked_path": null,
		"alternatives": [],
		"obligations": nothing,
		"approver_roles": [],
		"expires_at": null,
	} with input as f.base
}

test_the_reason_is_the_most_specific_one if {
	rule == "agenttool.rules.declared.read_only" with input as f.changed({"facts": {"paths": []}})
	rule == "agenttool.rules.network.reachable" with input as f.with_url({})
	rule == "agenttool.rules.shell.read_only" with input as f.with_shell({})
	rule == "agenttool.rules.sql.read_only" with input as f.with_sql({})
	agreed := f.with_shell({"read_only": false, "commands": [{
		"name": "npm",
		"argv": ["npm", "test"],
		"spellings": [["npm", "test"]],
		"plain": ["npm", "test"],
		"repository": null,
		"carries": false,
		"assignments": [],
		"redirects": [],
		"category": "tester",
		"directory": "/proj",
		"places": [],
		"complete": true,
		"unreviewed": [],
		"read_only": false,
		"reason": "",
	}]})
	rule == "agenttool.rules.shell.agreed" with input as agreed
		with data.agenttool.settings as {"shell": {"commands": {"allow": [["npm", "test"]]}}}
}

test_the_ready_answers_are_those_that_would_be_built[concern] if {
	some concern in ["declared", "paths", "network", "shell", "sql"]
	allowed := data.agenttool.rules[concern].allowed with input as f.with_shell({})
	built := data.agenttool.permission.plain_answer("allow", allowed) with input as f.base
	built == data.agenttool.defaults.permission.answers_without_findings[concern]
}

test_a_specific_rule_is_told_before_a_general_one[index] if {
	some index, pair in [
		[{"agenttool.rules.declared.unstated", "agenttool.rules.shell.destructive"}, "agenttool.rules.shell.destructive"],
		[{"agenttool.rules.declared.access_network", "agenttool.rules.shell.network"}, "agenttool.rules.shell.network"],
		[{"agenttool.rules.declared.writes", "company.rules.freeze"}, "company.rules.freeze"],
		[{"agenttool.rules.shell.destructive", "agenttool.rules.paths.write_inside"}, "agenttool.rules.shell.destructive"],
		[{"agenttool.rules.paths.sensitive", "agenttool.rules.dataflow.untrusted_target"}, "agenttool.rules.dataflow.untrusted_target"],
	]
	findings := {{"rule": name, "message": "m"} | some name in pair[0]}
	told := data.agenttool.permission.answer("ask", findings) with input as f.base
	told.reason.rule_ref == pair[1]
	told.rule_refs[0] == pair[1]
	{name | some name in told.rule_refs} == pair[0]
}

test_a_clear_call_with_obligations_carries_them[index] if {
	some index, pair in [
		[f.changed({"facts": {"paths": []}}), "agenttool.rules.declared.read_only"],
		[f.base, "agenttool.rules.paths.read_inside"],
		[f.with_url({}), "agenttool.rules.network.reachable"],
		[f.with_shell({}), "agenttool.rules.shell.read_only"],
		[f.with_sql({}), "agenttool.rules.sql.read_only"],
	]
	document := object.union(pair[0], {"permission_profile": {"redaction_required": true}})
	answer := decision with input as document
	answer.behavior == "allow"
	answer.reason.rule_ref == pair[1]
	answer.obligations.redact_result == ["detected"]
}

test_a_question_says_who_may_answer if {
	document := f.changed({"permission_profile": {"risk_level": "high"}})
	roles := {"approval": {"approver_roles": {"high": ["lead"]}}}
	decision.behavior == "ask" with input as document with data.agenttool.settings as roles
	decision.approver_roles == ["lead"] with input as document with data.agenttool.settings as roles
	decision.approver_roles == [] with input as document
}

test_a_yes_without_the_role_leaves_the_question_and_the_role if {
	answered := {"request_id": "r", "status": "approved", "answered_by": "p", "roles": ["intern"], "granted": false}
	document := object.union(f.base, {"permission_profile": {"risk_level": "high"}, "approval": answered})
	roles := {"approval": {"approver_roles": {"high": ["lead"]}}}
	decision.behavior == "ask" with input as document with data.agenttool.settings as roles
	decision.approver_roles == ["lead"] with input as document with data.agenttool.settings as roles
}

test_a_sensitive_place_is_denied_with_its_path if {
	document := f.with_path({"sensitive": "credential", "inside": false, "lexical": "/etc/shadow"})
	decision == {
		"behavior": "deny",
		"reason": {
			"type": "working_dir",
			"rule_ref": "agenttool.rules.paths.sensitive",
			"message": "the path is a sensitive place",
		},
		"rule_refs": ["agenttool.rules.paths.sensitive", "agenttool.rules.paths.read_outside"],
		"updated_input": null,
		"suggested_updates": [],
		"blocked_path": "/etc/shadow",
		"alternatives": [],
		"obligations": nothing,
		"approver_roles": [],
		"source": "",
		"expires_at": null,
	} with input as document
}

test_a_rule_says_where_it_comes_from if {
	found := {"rule": "custom.r", "message": "m", "source": "project_settings"}
	answer := decision with input as f.writing with data.agenttool.custom as {"deny": {found}}
	answer.source == "project_settings"
}

test_a_question_carries_what_an_approver_may_grant if {
	answer := decision with input as f.writing
	answer.behavior == "ask"
	answer.suggested_updates == [session_grant, fact_grant("session"), fact_grant("root")]
	answer.blocked_path == "/proj/notes.txt"
}

untrusted_call(changes) := f.changed(object.union(
	{
		"tool": {"id": "mail.send", "namespace": "mail", "name": "send", "read_only": false, "destructive": false},
		"permission_profile": {"access_kinds": ["external_send"], "write_effects": ["remote_mutation"]},
		"facts": {"paths": [], "provenance": {"/to": object.union(f.value_fact, {"role": "target", "untrusted": true})}},
	},
	changes,
))

test_whom_a_call_reaches_may_be_remembered if {
	offers_by("target", untrusted_call({})) == {"session", "actor"}
	offers_by("target", untrusted_call({"facts": {"provenance": {"/to": {"role": "content"}}}})) == set()
	offers_by("target", untrusted_call({"facts": {"traced": false}})) == set()
}

test_a_link_that_leaves_is_no_matter_of_whom_it_reaches if {
	link := {"/body": object.union(f.value_fact, {"role": "content", "untrusted": true, "link": true})}
	offers_by("target", untrusted_call({"facts": {"provenance": link}})) == set()
}

session_grant := {"type": "grant", "scope": "session", "args": "exact", "expires_in": 3600}

fact_grant(scope) := object.union(session_grant, {"scope": scope, "args": "facts"})

offers(document) := offers_by("exact", document)

offers_by(args, document) := {offer.scope |
	some offer in decision.suggested_updates with input as document
	offer.args == args
}

unproven := f.with_shell({
	"read_only": false,
	"commands": [object.union(f.shell_fact.commands[0], {"category": "writer", "read_only": false})],
})

test_a_grant_by_facts_is_offered_where_facts_tell_all[index] if {
	some index, document in [f.writing, unproven]
	offers_by("facts", document) == {"session", "root"}
}

test_a_grant_by_facts_is_not_offered_where_more_is_asked[index] if {
	some index, document in [
		object.union(f.writing, {"facts": {"paths": []}}),
		f.with_shell({"sensitive_read": true}),
		f.with_shell({"read_only": false, "parsed": false}),
		f.with_path({"inside": false}),
		object.union(f.writing, {"permission_profile": {"access_kinds": ["file_write", "external_send"]}}),
	]
	behavior == "ask" with input as document
	offers_by("facts", document) == set()
}

test_a_grant_for_roots_needs_roots_and_an_actor if {
	offers_by("facts", object.union(f.writing, {"actor": {"id": ""}})) == {"session"}
	unrooted := object.union(unproven, {"session": {"roots": []}})
	offers_by("facts", unrooted) == {"session"}
}

test_the_configuration_says_for_whom_and_how_long_may_be_remembered if {
	settings := {"approval": {"remember": {"scopes": ["session", "actor", "tenant", "world"], "facts": [], "expires_in": 60}}}
	answer := decision with input as f.writing with data.agenttool.settings as settings
	[offer.scope | some offer in answer.suggested_updates] == ["session", "actor", "tenant"]
	{offer.expires_in | some offer in answer.suggested_updates} == {60}
	nobody := object.union(f.writing, {"session": {"id": null}, "actor": {"id": "", "tenant": null}})
	decision.suggested_updates == [] with input as nobody with data.agenttool.settings as settings
}

test_nothing_is_offered_without_a_session if {
	some id in [null, ""]
	document := object.union(f.writing, {"session": {"id": id}})
	offers(document) == set()
	offers_by("facts", document) == {"root"}
}

test_some_calls_are_never_remembered[index] if {
	some index, changes in [
		{"permission_profile": {"risk_level": "critical"}},
		{"permission_profile": {"access_kinds": ["file_write", "payment"]}},
		{"permission_profile": {"access_kinds": ["credential"]}},
		{"permission_profile": {"write_effects": ["irreversible"]}},
		{"permission_profile": {"risk_level": 7}},
		{"permission_profile": {"access_kinds": "payment"}},
		{"tool": {"requires_user_interaction": true}, "session": {"interactive": false}},
		{"tool": {"id": 7}},
		{"permission_profile": {"approval_required": true}},
		{"hooks": [{"hook_id": "h", "behavior": "ask", "message": ""}]},
	]
	document := object.union(f.writing, changes)
	behavior == "ask" with input as document
	offers(document) == set()
	behavior == "ask" with input as remembered(document)
}

test_the_configuration_says_what_is_never_remembered[index] if {
	some index, never in [
		{"tools": ["local.files.*"]},
		{"risk_levels": {"low": true}},
		{"access_kinds": {"file_write": true}},
		{"write_effects": {"local_persistent": true}},
		{"rules": {"agenttool.rules.paths.write_inside": true}},
	]
	behavior == "ask" with input as remembered(f.writing) with data.agenttool.settings as never_remembering(never)
}

test_what_is_never_remembered_is_not_offered[index] if {
	some index, never in [
		{"tools": ["local.files.*"]},
		{"risk_levels": {"low": true}},
		{"rules": {"agenttool.rules.paths.write_inside": true}},
	]
	answer := decision with input as f.writing with data.agenttool.settings as never_remembering(never)
	answer.suggested_updates == []
}

test_an_unusable_list_means_that_nothing_is_remembered[index] if {
	some index, never in [
		{"tools": "local.files.*"},
		{"tools": null},
		{"risk_levels": null},
		{"access_kinds": {"file_write": "yes"}},
	]
	behavior == "ask" with input as remembered(f.writing) with data.agenttool.settings as never_remembering(never)
}

never_remembering(never) := {"approval": {"never_remember": never}}

remembered(document) := object.union(document, {"approval": object.union(f.approved, {"granted": true})})

test_a_remembered_approval_answers_what_may_be_remembered if {
	answer := decision with input as remembered(f.writing)
	answer.behavior == "allow"
	answer.reason == {
		"type": "permission_prompt_tool",
		"rule_ref": "agenttool.rules.approval.remembered",
		"message": "a person approved such calls for a while",
	}
	behavior == "allow" with input as remembered(f.base)
	high := object.union(f.base, {"permission_profile": {"risk_level": "high"}})
	offers(high) == {"session"}
	behavior == "allow" with input as remembered(high)
}

test_a_remembered_approval_never_lifts_a_denial if {
	document := remembered(f.with_path({"sensitive": "credential", "inside": false, "lexical": "/etc/shadow"}))
	behavior == "deny" with input as document
	settings := {"evaluation": {"gates": ["local.files.*"]}}
	behavior == "deny" with input as remembered(f.writing) with data.agenttool.settings as settings
	spent := {"budgets": {"session": {"calls": 1}}}
	behavior == "deny" with input as remembered(f.writing) with data.agenttool.settings as spent
}

test_nothing_is_offered_where_a_remembered_approval_did_not_suffice if {
	document := remembered(f.writing)
	settings := {"approval": {"approver_roles": {"low": ["security"], "medium": ["security"]}}}
	answer := decision with input as document with data.agenttool.settings as settings
	answer.behavior == "ask"
	answer.suggested_updates == []
}

test_a_custom_grant_is_offered_only_where_it_would_suffice if {
	extra := {"suggested_updates": [{"type": "grant", "scope": "actor"}]}
	document := f.changed({"session": {"id": null}})
	answer := decision with input as document with data.agenttool.custom as custom("ask", extra)
	answer.suggested_updates == [{"type": "grant", "scope": "actor"}]
}

test_a_custom_grant_of_a_call_that_is_never_remembered_is_not_offered if {
	extra := {"suggested_updates": [{"type": "grant", "scope": "actor"}]}
	document := f.changed({"permission_profile": {"risk_level": "critical"}})
	answer := decision with input as document with data.agenttool.custom as custom("ask", extra)
	answer.behavior == "ask"
	answer.suggested_updates == []
}

test_a_question_that_needs_a_person_can_not_be_granted_for_ever if {
	answer := decision with input as f.changed({"permission_profile": {"approval_required": true}})
	answer.behavior == "ask"
	answer.suggested_updates == []
}

test_a_tool_without_an_id_is_granted_nothing if {
	answer := decision with input as json.patch(f.writing, [{"op": "replace", "path": "/tool/id", "value": 7}])
	answer.behavior == "ask"
	answer.suggested_updates == []
}

approved(document) := object.union(document, {"invocation": {"resumed": true}, "approval": f.approved})

test_an_approval_allows_what_was_asked if {
	answer := decision with input as approved(f.writing)
	answer.behavior == "allow"
	answer.reason.rule_ref == "agenttool.rules.approval.approved"
	answer.rule_refs == ["agenttool.rules.approval.approved", "agenttool.rules.paths.write_inside"]
}

test_an_approval_never_lifts_a_denial if {
	behavior == "deny" with input as approved(f.with_path({"sensitive": "key"}))
}

test_an_approval_of_a_call_that_nobody_asks_about_changes_nothing if {
	rule == "agenttool.rules.paths.read_inside" with input as approved(f.base)
}

test_a_resumed_call_without_an_answer_is_asked_again if {
	document := f.changed({"invocation": {"resumed": true}})
	behavior == "ask" with input as document
	rule == "agenttool.rules.approval.sticky" with input as document
	always := {"approval": {"always_allow": ["*"]}}
	behavior == "ask" with input as document with data.agenttool.settings as always
}

test_always_allow_answers_questions_of_its_tools[index] if {
	some index, entry in [
		"local.files.write_file",
		"local.files.*",
		{"tools": ["local.*"], "rules": ["agenttool.rules.paths.*"]},
	]
	settings := {"approval": {"always_allow": ["web.*", entry]}}
	behavior == "allow" with input as f.writing with data.agenttool.settings as settings
	rule == "agenttool.permission.answered" with input as f.writing with data.agenttool.settings as settings
}

test_always_allow_answers_no_other_questions[index] if {
	some index, entry in [
		"write_file",
		"local.shell.*",
		{"tools": ["local.*"], "rules": ["agenttool.rules.shell.*"]},
		{"tools": ["web.*"], "rules": ["*"]},
		{"tools": ["local.*"]},
		7,
	]
	settings := {"approval": {"always_allow": [entry]}}
	behavior == "ask" with input as f.writing with data.agenttool.settings as settings
}

test_always_allow_never_lifts_a_denial if {
	settings := {"approval": {"always_allow": ["*"]}}
	behavior == "deny" with input as f.with_path({"sensitive": "key"}) with data.agenttool.settings as settings
	behavior == "deny" with input as f.with_url({"address_class": "metadata"}) with data.agenttool.settings as settings
}

test_always_allow_answers_nothing_uncertain[index] if {
	some index, document in [
		f.with_path({"certain": false}),
		f.with_url({"certain": false}),
		f.changed({"permission_profile": {"access_kinds": ["teleport"]}}),
		f.changed({"permission_profile": {"approval_required": true}}),
	]
	behavior == "ask" with input as document with data.agenttool.settings as {"approval": {"always_allow": ["*"]}}
}

test_always_ask_wins_over_always_allow if {
	settings := {"approval": {"always_allow": ["*"], "always_ask": ["read_file"]}}
	behavior == "ask" with input as f.base with data.agenttool.settings as settings
}

test_a_role_answers_questions if {
	document := object.union(f.writing, {"actor": {"roles": ["writer"]}})
	behavior == "allow" with input as document
	behavior == "deny" with input as object.union(document, {"facts": {"paths": [object.union(
		f.path_fact,
		{"access": "write", "inside": false},
	)]}})
}

test_effects_turn_questions_into_answers_or_denials if {
	behavior == "allow" with input as f.writing with data.agenttool.settings as effect("allow")
	behavior == "deny" with input as f.writing with data.agenttool.settings as effect("deny")
	behavior == "ask" with input as f.writing with data.agenttool.settings as effect("whatever")
}

effect(word) := {"effects": {"agenttool.rules.paths.write_inside": word}}

test_a_denial_by_effect_holds_against_an_approval if {
	behavior == "deny" with input as approved(f.writing) with data.agenttool.settings as effect("deny")
}

test_the_strict_preset_denies_more if {
	strict := {"session": {"mode": "strict"}}
	outside := f.with_path({"inside": false})
	behavior == "ask" with input as outside
	behavior == "deny" with input as object.union(outside, strict)
	behavior == "allow" with input as object.union(f.base, strict)
	behavior == "ask" with input as object.union(f.with_url({}), strict)
}

test_the_plan_preset_denies_what_writes if {
	plan := {"session": {"mode": "plan"}}
	behavior == "deny" with input as object.union(f.writing, plan)
	behavior == "allow" with input as object.union(f.base, plan)
}

test_the_observe_preset_asks_less_and_denies_as_much if {
	observe := {"session": {"mode": "observe"}}
	behavior == "allow" with input as object.union(f.writing, observe)
	behavior == "deny" with input as object.union(f.with_path({"sensitive": "key"}), observe)
	behavior == "ask" with input as object.union(f.with_path({"certain": false}), observe)
}

alone := {"session": {"interactive": false}}

test_a_question_stays_a_question_where_nobody_is_there if {
	behavior == "ask" with input as object.union(f.writing, alone)
}

test_a_question_may_be_a_denial_where_nobody_is_there if {
	settings := {"approval": {"non_interactive": "deny"}}
	behavior == "deny" with input as object.union(f.writing, alone) with data.agenttool.settings as settings
	rule == "agenttool.permission.nobody_to_ask" with input as object.union(f.writing, alone)
		with data.agenttool.settings as settings
	behavior == "ask" with input as f.writing with data.agenttool.settings as settings
}

test_after_too_many_questions_a_question_is_a_denial if {
	document := object.union(f.writing, {"session": {"counters": {"asks": 5}}})
	rule == "agenttool.permission.nobody_to_ask" with input as document
		with data.agenttool.settings as {"budgets": {"asks": 5}}
}

finding := {"rule": "acme.rule", "message": "a rule of ours"}

custom(effect_name, extra) := {"acme": {effect_name: [object.union(finding, extra)]}}

test_a_custom_rule_may_deny_and_ask if {
	behavior == "deny" with input as f.base with data.agenttool.custom as custom("deny", {})
	rule == "acme.rule" with input as f.base with data.agenttool.custom as custom("deny", {})
	behavior == "ask" with input as f.base with data.agenttool.custom as custom("ask", {})
}

test_a_custom_rule_may_answer_the_questions_that_it_names if {
	waives := {"waives": ["agenttool.rules.paths.write_inside"]}
	behavior == "allow" with input as f.writing with data.agenttool.custom as custom("allow", waives)
	behavior == "ask" with input as f.writing with data.agenttool.custom as custom("allow", {})
	sensitive := f.with_path({"sensitive": "key"})
	behavior == "deny" with input as sensitive
		with data.agenttool.custom as custom("allow", {"waives": ["agenttool.rules.paths.sensitive"]})
}

test_a_custom_rule_may_shape_the_answer if {
	answer := decision with input as f.base with data.agenttool.custom as custom("allow", {
		"updated_input": {"path": "other.txt"},
		"expires_at": "2026-11-21T13:00:00Z",
		"obligations": {"redact_result": ["/secret"], "max_inline_chars": 10},
	})
	answer.behavior == "allow"
	answer.rule_refs == ["agenttool.rules.paths.read_inside", "acme.rule"]
	answer.updated_input == {"path": "other.txt"}
	answer.expires_at == "2026-11-21T13:00:00Z"
	answer.obligations == object.union(nothing, {"redact_result": ["/secret"], "max_inline_chars": 10})
}

test_two_new_inputs_are_a_denial if {
	two := {
		"a": custom("allow", {"updated_input": {"path": "a"}}).acme,
		"b": custom("allow", {"updated_input": {"path": "b"}}).acme,
	}
	behavior == "deny" with input as f.base with data.agenttool.custom as two
	rule == "agenttool.permission.undecided" with input as f.base with data.agenttool.custom as two
}

test_a_new_input_belongs_to_an_allow_only if {
	both := object.union(custom("allow", {"updated_input": {"path": "a"}}), {"other": {"ask": [finding]}})
	answer := decision with input as f.base with data.agenttool.custom as both
	answer.behavior == "ask"
	answer.updated_input == null
	answer.expires_at == null
}

test_findings_may_name_alternatives_and_grants if {
	extra := {
		"alternatives": [{"tool": "read", "arguments": {}, "reason": "safer"}, 7],
		"suggested_updates": [{"type": "acme_grant"}, 7],
		"type": "hook",
		"blocked_path": "/x",
	}
	answer := decision with input as f.base with data.agenttool.custom as custom("ask", extra)
	answer.alternatives == [{"tool": "read", "arguments": {}, "reason": "safer"}]
	answer.suggested_updates == [
		session_grant,
		{"type": "acme_grant"},
	]
	answer.reason.type == "hook"
	answer.blocked_path == "/x"
}

test_an_unknown_kind_of_reason_is_a_rule[index] if {
	some index, kind in ["whatever", 7, null]
	answer := decision with input as f.base with data.agenttool.custom as custom("deny", {"type": kind})
	answer.reason.type == "rule"
}

test_the_configuration_may_name_alternatives if {
	safer := {"tool": "read", "arguments": {}, "reason": "reads only"}
	settings := {"alternatives": {"write_*": [safer, 7], "web.*": [{"tool": "x"}]}}
	answer := decision with input as f.writing with data.agenttool.settings as settings
	answer.alternatives == [safer]
	allowed := decision with input as f.base with data.agenttool.settings as settings
	allowed.alternatives == []
}

test_an_unusable_configuration_is_a_denial[index] if {
	some index, settings in [{"preset": "lax"}, "strict", ["strict"]]
	behavior == "deny" with input as f.base with data.agenttool.settings as settings
	rule == "agenttool.permission.configuration" with input as f.base with data.agenttool.settings as settings
}

test_a_concern_that_can_not_be_decided_is_a_question if {
	settings := {"approval": {"risk_levels": 7}, "evaluation": {"capability": null}, "budgets": {"asks": null}}
	behavior == "ask" with input as f.base with data.agenttool.settings as settings
}

test_a_concern_without_an_answer_is_a_question if {
	behavior == "ask" with input as f.base with data.agenttool.rules.paths.facts as []
		with data.agenttool.rules.declared.stated as false
}

test_rules_in_shadow_mode_do_not_count if {
	answer := decision with input as f.writing with data.agenttool.rules.paths.ask as set()
		with data.agenttool.rules.paths.deny as set() with data.agenttool.rules.paths.shadowed as true
	answer.behavior == "allow"
	answer.reason.rule_ref == "agenttool.permission.shadowed"
}

test_rules_that_only_lost_their_findings_are_a_question if {
	answer := decision with input as f.writing with data.agenttool.rules.paths.ask as set()
		with data.agenttool.rules.paths.deny as set()
	answer.behavior == "ask"
	answer.reason.rule_ref == "agenttool.rules.paths.unproven"
}

test_an_empty_input_is_no_allow[index] if {
	some index, document in [{}, {"tool": {}}, [], "x", 7, null]
	not behavior == "allow" with input as document
}

test_a_gated_tool_is_denied_with_the_next_step if {
	settings := {"evaluation": {"gates": ["*"], "next_step": "outcome_evaluate"}}
	answer := decision with input as f.base with data.agenttool.settings as settings
	answer.behavior == "deny"
	answer.alternatives == [{
		"tool": "outcome_evaluate",
		"arguments": {},
		"reason": "the next step towards a passing verdict",
	}]
}

test_every_concern_adds_its_denials_and_questions if {
	some_rules(
		f.changed({"session": {"counters": {"calls": 9}}}),
		{"budgets": {"session": {"calls": 1}}},
	) == {"agenttool.rules.budgets.session"}
	some_rules(f.changed({"permission_profile": {"tenant_scope": "umbrella"}}), {}) == {"agenttool.rules.tenancy.scope"}
	some_rules(f.changed({"approval": object.union(f.approved, {"status": "rejected"})}), {}) == {
		"agenttool.rules.approval.rejected",
		"agenttool.rules.approval.sticky",
	}
	some_rules(f.with_sql({"unbounded_write": true}), {}) == {
		"agenttool.rules.sql.unbounded_write",
		"agenttool.rules.sql.writes",
		"agenttool.rules.declared.writes",
		"agenttool.rules.destructive.effects",
	}
	some_rules(f.changed({"tool": {"lifecycle": "disabled"}}), {}) == {"agenttool.rules.declared.lifecycle"}
	some_rules(f.base, {"destructive": {"forbidden_tools": ["*"]}}) == {"agenttool.rules.destructive.forbidden_tool"}
	some_rules(f.with_url({"address_class": "metadata"}), {}) == {"agenttool.rules.network.address"}
	some_rules(f.with_url({"port": 22}), {}) == {"agenttool.rules.network.port"}
	some_rules(f.base, {"roles": {
		"enforce": true,
		"definitions": {"reader": {"tools": []}},
	}}) == {"agenttool.rules.roles.not_granted"}
	some_rules(
		f.with_shell({"read_only": false, "commands": [{"name": "mkfs", "argv": ["mkfs"], "spellings": [["mkfs"]], "unreviewed": [], "repository": null}]}),
		{},
	) == {
		"agenttool.rules.declared.access_code_execution",
		"agenttool.rules.declared.unstated",
		"agenttool.rules.shell.critical",
		"agenttool.rules.shell.incomplete",
		"agenttool.rules.shell.not_read_only",
	}
	some_rules(
		object.union(f.writing, {"facts": {"provenance": {"/path": {
			"sources": ["tool:x"],
			"untrusted": true,
			"certain": true,
			"sourced": "unstated",
		}}}}),
		{},
	) == {"agenttool.rules.dataflow.untrusted_target", "agenttool.rules.paths.write_inside"}
}

some_rules(document, settings) := {name |
	some name in data.agenttool.permission.decision.rule_refs with input as document
		with data.agenttool.settings as settings
}

test_a_package_without_a_proof_is_asked[found] if {
	some found in ["deny", "ask"]
	"unproven" in data.agenttool.permission.objecting with data.agenttool.fixture as found with input as f.base
	not data.agenttool.permission.no_concern_has_findings with data.agenttool.fixture as found with input as f.base
}

test_a_package_without_a_proof_and_findings_objects_to_nothing if {
	not "unproven" in data.agenttool.permission.objecting with input as f.base
	data.agenttool.permission.no_concern_has_findings with input as f.base
}

# METADATA
# title: A command of which nobody knows what it writes, on a host that can rehearse
rehearsable := object.union(
	f.with_shell({
		"read_only": false,
		"complete": false,
		"commands": [object.union(f.shell_fact.commands[0], {
			"read_only": false,
			"complete": false,
			"category": "unknown",
			"places": [],
		})],
	}),
	{"execution": {"sandboxes": ["read", "rehearse"], "scope": "thread"}},
)

test_a_command_that_can_be_rehearsed_is_not_asked_about if {
	answer := decision with input as rehearsable
	answer.behavior == "allow"
	answer.reason.rule_ref == "agenttool.sandbox.rehearse"
	answer.obligations.sandbox == {"profile": "rehearse", "network": "none"}
}

test_a_command_is_held_by_read_where_the_table_has_read if {
	questions := data.agenttool.sandbox.rehearse_questions with input as rehearsable
	settings := {"sandbox": {"answers": {question: "read" | some question in questions}}}
	answer := decision with input as rehearsable with data.agenttool.settings as settings
	answer.behavior == "allow"
	answer.reason.rule_ref == "agenttool.sandbox.read"
	answer.obligations.sandbox == {"profile": "read", "network": "none"}
}

test_a_rehearsal_answers_what_was_asked_about_words if {
	effects := {
		"counts": {"deleted": 0, "owner": 0, "connections": 0, "reported": 0},
		"paths": [],
		"connections": [],
		"changes": [],
		"complete": true,
	}
	document := object.union(rehearsable, {"facts": {"shell": [], "effects": effects}})
	answer := decision with input as document
	answer.behavior == "allow"
	answer.reason.rule_ref == "agenttool.permission.answered"
	not answer.obligations.sandbox
}

not_read_only := "agenttool.rules.shell.not_read_only"

test_a_question_is_held_instead_of_denied if {
	answer := decision with input as rehearsable with data.agenttool.settings as {"effects": {not_read_only: "held"}}
	answer.behavior == "allow"
	answer.obligations.sandbox == {"profile": "rehearse", "network": "none"}
}

test_a_call_is_held_beside_what_is_answered if {
	settings := {"effects": {not_read_only: "held", "agenttool.rules.shell.incomplete": "allow"}}
	answer := decision with input as rehearsable with data.agenttool.settings as settings
	answer.behavior == "allow"
	answer.obligations.sandbox == {"profile": "rehearse", "network": "none"}
}

test_what_can_not_be_held_is_denied[name] if {
	some name, change in {
		"nothing is proven": {"execution": {"sandboxes": []}},
		"approved": {"invocation": {"resumed": true}, "approval": f.approved},
		"granted": {"approval": object.union(f.approved, {"granted": true})},
		"no command": {"tool": {"kind": "function"}},
	}
	document := object.union(rehearsable, change)
	answer := decision with input as document with data.agenttool.settings as {"effects": {not_read_only: "held"}}
	answer.behavior == "deny"
}

test_a_question_that_no_profile_answers_denies_all if {
	settings := {"effects": {not_read_only: "held"}, "sandbox": {"answers": {"agenttool.rules.shell.incomplete": "ask"}}}
	answer := decision with input as rehearsable with data.agenttool.settings as settings
	answer.behavior == "deny"
	answer.reason.rule_ref == not_read_only
}

test_an_answer_does_not_take_the_place_of_a_profile if {
	settings := {"effects": {not_read_only: "held"}, "approval": {"always_allow": [{"tools": ["*"], "rules": ["agenttool.rules.**"]}]}}
	answer := decision with input as rehearsable with data.agenttool.settings as settings
	answer.behavior == "deny"
}

asked_of(settings) := {"approval": settings}

by(people) := object.union(f.writing, {
	"invocation": {"resumed": true},
	"approval": object.union(f.approved, {"answers": people}),
})

ann := {"answered_by": "user:ann", "roles": ["finance"], "counts_as": "finance"}

bob := {"answered_by": "user:bob", "roles": ["legal"], "counts_as": "legal"}

two := asked_of({"approvals_needed": {"medium": 2, "low": 2}})

both_roles := asked_of({"required_roles": {"low": ["finance", "legal"], "medium": ["finance", "legal"]}})

test_the_question_names_how_many_people_have_to_agree if {
	answer := decision with input as f.writing with data.agenttool.settings as two
	answer.approvals_needed == 2
	answer.suggested_updates == []
	roles := decision with input as f.writing with data.agenttool.settings as both_roles
	roles.required_roles == ["finance", "legal"]
	not decision.approvals_needed with input as f.writing
}

test_two_people_have_to_agree if {
	behavior == "ask" with input as by([ann]) with data.agenttool.settings as two
	behavior == "allow" with input as by([ann, bob]) with data.agenttool.settings as two
}

test_one_person_twice_counts_once if {
	behavior == "ask" with input as by([ann, ann]) with data.agenttool.settings as two
	again := object.union(ann, {"counts_as": "legal"})
	behavior == "ask" with input as by([ann, again]) with data.agenttool.settings as both_roles
}

test_each_role_is_that_of_a_person if {
	behavior == "allow" with input as by([ann, bob]) with data.agenttool.settings as both_roles
	without := object.union(bob, {"roles": ["finance"]})
	behavior == "ask" with input as by([ann, without]) with data.agenttool.settings as both_roles
}

test_an_approval_without_its_people_is_not_enough if {
	behavior == "ask" with input as approved(f.writing) with data.agenttool.settings as two
	behavior == "ask" with input as by("user:ann") with data.agenttool.settings as two
	behavior == "ask" with input as remembered(f.writing) with data.agenttool.settings as two
}

test_a_custom_question_wants_two_people if {
	rules := custom("ask", {"approvals_needed": 2, "required_roles": ["legal"]})
	answer := decision with input as f.base with data.agenttool.custom as rules
	answer.approvals_needed == 2
	answer.required_roles == ["legal"]
	behavior == "allow" with input as by([ann, bob]) with data.agenttool.custom as rules
	behavior == "ask" with input as by([bob]) with data.agenttool.custom as rules
}

test_configured_needs_that_can_not_be_read_are_met_by_nobody[index] if {
	some index, needs in [{"approvals_needed": {"low": 0, "medium": 0}}, {"required_roles": {"low": "a", "medium": "a"}}]
	settings := asked_of(needs)
	answer := decision with input as by([ann, bob]) with data.agenttool.settings as settings
	answer.behavior == "ask"
	"agenttool.unreadable_approvals_needed" in answer.required_roles
}

test_needs_that_can_not_be_read_are_met_by_nobody[index] if {
	some index, extra in [{"approvals_needed": "2"}, {"approvals_needed": 0}, {"required_roles": "legal"}]
	answer := decision with input as by([ann, bob]) with data.agenttool.custom as custom("ask", extra)
	answer.behavior == "ask"
	"agenttool.unreadable_approvals_needed" in answer.required_roles
}

told(document) := {"open": result.open_questions, "answered": result.answered_questions} if {
	result := decision with input as document
}

writing_question := "agenttool.rules.paths.write_inside"

by_rule(name) := [{"question": writing_question, "by": name}]

test_the_decision_names_the_open_questions if {
	told(f.writing) == {"open": [writing_question], "answered": []}
}

test_the_decision_names_what_answers_a_question[index] if {
	some index, answer in [
		["settings.effects", {"effects": {writing_question: "allow"}}],
		["settings.approval.always_allow", {"approval": {"always_allow": [f.writing.tool.id]}}],
	]
	told(f.writing) == {"open": [], "answered": by_rule(answer[0])} with data.agenttool.settings as answer[1]
}

test_the_decision_names_the_allow_that_answers if {
	rules := custom("allow", {"waives": [writing_question]})
	told(f.writing) == {"open": [], "answered": by_rule(finding.rule)} with data.agenttool.custom as rules
}

test_an_answered_question_is_none_of_the_open_ones if {
	rules := custom("allow", {"waives": [writing_question]})
	high := object.union(f.writing, {"permission_profile": {"risk_level": "high"}})
	result := decision with input as high with data.agenttool.custom as rules
	result.open_questions == ["agenttool.rules.approval.risk"]
	result.answered_questions == by_rule(finding.rule)
}

test_the_decision_names_people_as_an_answer if {
	told(approved(f.writing)).answered == by_rule("agenttool.rules.approval.approved")
	told(remembered(f.writing)).answered == by_rule("agenttool.rules.approval.remembered")
}
