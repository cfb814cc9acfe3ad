package agenttool.rules.roles_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.roles.no_findings(data.agenttool.config.effective)

asked := f.rules(data.agenttool.rules.roles.ask)

name(rule) := concat(".", ["agenttool.rules.roles", rule])

strict := {"roles": {"enforce": true}}

test_roles_restrict_nothing_by_default if {
	no_findings with input as f.changed({"actor": {"roles": []}})
	asked == set() with input as f.base
}

test_a_role_grants_what_it_names if {
	no_findings with input as f.base with data.agenttool.settings as strict
	data.agenttool.rules.roles.allow == {{
		"rule": "agenttool.rules.roles.granted",
		"message": "a role of the actor grants this tool",
	}} with input as f.base with data.agenttool.settings as strict
}

test_an_actor_without_a_role_is_asked[index] if {
	some index, roles in [[], ["stranger"], [7], "reader", null, {"reader": true}]
	document := json.patch(f.base, [{"op": "replace", "path": "/actor/roles", "value": roles}])
	not no_findings with input as document with data.agenttool.settings as {"roles": {"enforce": true, "definitions": {}}}
	not no_findings with input as json.patch(f.base, [{
		"op": "replace",
		"path": "/actor/roles",
		"value": ["stranger"],
	}])
		with data.agenttool.settings as strict
}

test_a_role_does_not_grant_more_than_it_names[index] if {
	some index, profile in [
		{"access_kinds": ["file_write"]},
		{"write_effects": ["local_persistent"]},
		{"risk_level": "high"},
	]
	document := f.changed({"permission_profile": profile})
	not no_findings with input as document with data.agenttool.settings as strict
	asked == {name("not_granted")} with input as document with data.agenttool.settings as strict
}

test_a_role_may_name_tools_by_glob if {
	settings := {"roles": {"enforce": true, "definitions": {"reader": {"tools": ["web.*"]}}}}
	not no_findings with input as f.base with data.agenttool.settings as settings
	no_findings with input as f.with_url({}) with data.agenttool.settings as settings
}

test_an_alias_does_not_borrow_a_grant if {
	settings := {"roles": {"enforce": true, "definitions": {"reader": {"tools": ["web.fetch"]}}}}
	document := f.changed({"tool": {"aliases": ["web.fetch"]}})
	not no_findings with input as document with data.agenttool.settings as settings
}

test_enforcement_that_is_neither_on_nor_off_clears_nothing if {
	not no_findings with input as f.base with data.agenttool.settings as {"roles": {"enforce": "yes"}}
}

test_roles_answer_questions if {
	waived := data.agenttool.rules.roles.waived with input as f.changed({"actor": {"roles": ["reader", "writer"]}})
	waived == {"agenttool.rules.paths.write_inside"}
	data.agenttool.rules.roles.waived == set() with input as f.changed({"actor": {"roles": "writer"}})
}

members := [
	"/actor/roles", "/permission_profile/access_kinds",
	"/permission_profile/write_effects", "/permission_profile/risk_level", "/actor",
]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.base, members)
		no_findings with input as document with data.agenttool.settings as strict
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(f.base, members, [7, [7], {"x": 1}, "nonsense", null])
		no_findings with input as document with data.agenttool.settings as strict
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended with data.agenttool.settings as strict
