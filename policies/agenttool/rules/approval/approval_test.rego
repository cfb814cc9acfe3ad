package agenttool.rules.approval_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.approval.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.approval.deny)

asked := f.rules(data.agenttool.rules.approval.ask)

name(rule) := concat(".", ["agenttool.rules.approval", rule])

approved if data.agenttool.rules.approval.approved

answered(status) := object.union(f.base, {
	"invocation": {"resumed": true},
	"approval": object.union(f.approved, {"status": status}),
})

test_a_tool_that_needs_nobody_is_clear if {
	no_findings with input as f.base
	asked == set() with input as f.base
	denied == set() with input as f.base
}

test_a_tool_that_requires_approval_is_asked if {
	document := f.changed({"permission_profile": {"approval_required": true}})
	not no_findings with input as document
	asked == {name("required")} with input as document
}

test_high_risk_is_asked[level] if {
	some level in ["high", "critical", "unheard of"]
	document := f.changed({"permission_profile": {"risk_level": level}})
	not no_findings with input as document
	asked == {name("risk")} with input as document
}

test_a_list_may_ask_about_a_tool[pattern] if {
	some pattern in ["local.files.read_file", "*", "read_*", "other"]
	document := f.changed({"tool": {"aliases": ["other"]}})
	settings := {"approval": {"always_ask": ["web.*", pattern]}}
	not no_findings with input as document with data.agenttool.settings as settings
	asked == {name("always_ask")} with input as document with data.agenttool.settings as settings
}

test_an_unusable_list_asks_about_every_tool[index] if {
	some index, list in ["x", 7, {}, null]
	asked == {name("always_ask")} with input as f.base with data.agenttool.settings as {"approval": {"always_ask": list}}
}

test_an_approval_settles_the_call if {
	approved with input as answered("approved")
	no_findings with input as answered("approved")
	asked == set() with input as answered("approved")
	data.agenttool.rules.approval.allow == {data.agenttool.rules.approval.allowed} with input as answered("approved")
}

granted if data.agenttool.rules.approval.granted

remembered(status) := object.union(answered(status), {"invocation": {"resumed": false}, "approval": {"granted": true}})

test_a_remembered_approval_is_told_from_an_answer_to_this_call if {
	granted with input as remembered("approved")
	not approved with input as remembered("approved")
	no_findings with input as remembered("approved")
	asked == set() with input as remembered("approved")
	not granted with input as answered("approved")
}

test_a_remembered_approval_does_not_answer_a_call_that_was_asked_about if {
	document := object.union(remembered("approved"), {"invocation": {"resumed": true}})
	not no_findings with input as document
	asked == {name("sticky")} with input as document
}

test_only_a_remembered_yes_counts[status] if {
	some status in ["rejected", "expired", "pending", ""]
	not granted with input as remembered(status)
	name("sticky") in asked with input as remembered(status)
}

test_a_remembered_approval_needs_the_role_that_is_needed_now if {
	document := object.union(remembered("approved"), {"permission_profile": {"risk_level": "high"}})
	granted with input as document with data.agenttool.settings as needing({"high": ["lead"]})
	not granted with input as document with data.agenttool.settings as needing({"high": ["security"]})
	asked == {name("risk"), name("sticky")} with input as document
		with data.agenttool.settings as needing({"high": ["security"]})
}

test_a_rejection_denies_the_call if {
	not approved with input as answered("rejected")
	denied == {name("rejected")} with input as answered("rejected")
}

test_other_answers_leave_the_call_open[status] if {
	some status in ["expired", "pending", "consumed", "Approved", ""]
	not approved with input as answered(status)
	not no_findings with input as answered(status)
	asked == {name("sticky")} with input as answered(status)
}

test_a_resumed_call_without_an_answer_is_asked_again if {
	document := f.changed({"invocation": {"resumed": true}})
	not no_findings with input as document
	asked == {name("sticky")} with input as document
}

test_some_risks_need_an_approver_with_a_role if {
	document := object.union(answered("approved"), {"permission_profile": {"risk_level": "high"}})
	approved with input as document with data.agenttool.settings as needing({"high": ["lead"]})
	not approved with input as document with data.agenttool.settings as needing({"high": ["security"]})
	approved with input as document with data.agenttool.settings as needing({"critical": ["security"]})
	not approved with input as document with data.agenttool.settings as needing({"high": "lead"})
}

test_the_needed_roles_are_those_of_the_risk if {
	document := f.changed({"permission_profile": {"risk_level": "high"}})
	needed == [] with input as document
	needed == ["lead"] with input as document with data.agenttool.settings as needing({"high": ["lead"]})
	needed == [] with input as document with data.agenttool.settings as needing({"critical": ["lead"]})
}

test_nobody_has_the_role_for_a_risk_that_can_not_be_read[index] if {
	some index, level in [7, null, ["high"]]
	document := json.patch(f.base, [{"op": "replace", "path": "/permission_profile/risk_level", "value": level}])
	needed == ["agenttool.unreadable_risk_level"] with input as document
}

needed := data.agenttool.rules.approval.needed_roles

needing(roles) := {"approval": {"approver_roles": roles}}

test_hooks_can_ask_and_deny if {
	hint := {"hook_id": "h", "behavior": "deny", "message": "no"}
	denied == {name("hook_denied")} with input as f.changed({"hooks": [hint]})
	asked == {name("hook_asked")} with input as f.changed({"hooks": [object.union(hint, {"behavior": "ask"})]})
	asked == {name("hook_asked")} with input as f.changed({"hooks": [object.union(hint, {"behavior": "whatever"})]})
	asked == {name("hook_asked")} with input as f.changed({"hooks": [7]})
}

test_a_hook_can_not_allow if {
	hint := {"hook_id": "h", "behavior": "allow", "message": "yes"}
	no_findings with input as f.changed({"hooks": [hint, object.union(hint, {"behavior": "passthrough"})]})
	asked == {name("risk")} with input as f.changed({"hooks": [hint], "permission_profile": {"risk_level": "high"}})
}

test_a_tool_that_needs_a_person_is_asked_where_nobody_is if {
	document := f.changed({"tool": {"requires_user_interaction": true}, "session": {"interactive": false}})
	not no_findings with input as document
	asked == {name("unattended")} with input as document
	no_findings with input as f.changed({"tool": {"requires_user_interaction": true}})
}

test_hints_of_the_wrong_type_are_asked[index] if {
	some index, value in ["x", 7, true, null, {}]
	document := json.patch(f.base, [{"op": "replace", "path": "/hooks", "value": value}])
	not no_findings with input as document
	asked == {name("unproven")} with input as document
}

test_a_lost_context_is_asked_about_and_no_other if {
	lost := f.changed({"session": {"context": "lost"}})
	not no_findings with input as lost
	asked == {name("context_lost")} with input as lost
	no_findings with input as f.changed({"session": {"context": "none"}})
	asked == set() with input as f.changed({"session": {"context": "none"}})
}

members := [
	"/session/context",
	"/permission_profile/approval_required",
	"/permission_profile/risk_level",
	"/approval",
	"/invocation/resumed",
	"/hooks",
	"/tool/requires_user_interaction",
	"/invocation",
	"/permission_profile",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(object.union(f.base, {"session": {"interactive": false}}), members)
		no_findings with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(object.union(f.base, {"session": {"interactive": false}}), members)
		count(asked) == 0 with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(
			object.union(f.base, {"session": {"interactive": false}}),
			members,
			[7, [7], {"x": 1}, "nonsense"],
		)
		no_findings with input as document
	} == set()
}

test_an_approval_of_the_wrong_type_approves_nothing if {
	{document |
		some document in f.mistyped(
			answered("approved"),
			["/approval", "/approval/status", "/approval/request_id", "/approval/granted"],
			[7, true, [7], {"x": 1}, null],
		)
		approved with input as document
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended
