package agenttool.rules.tenancy_test

import data.agenttool.lib.fixtures_test as f

no_findings if data.agenttool.rules.tenancy.no_findings(data.agenttool.config.effective)

denied := f.rules(data.agenttool.rules.tenancy.deny)

name(rule) := concat(".", ["agenttool.rules.tenancy", rule])

scoped(scope, tenant) := json.patch(f.base, [
	{"op": "replace", "path": "/permission_profile/tenant_scope", "value": scope},
	{"op": "replace", "path": "/actor/tenant", "value": tenant},
])

test_a_tool_without_a_tenant_is_clear[index] if {
	some index, scope in [null, "none", "any"]
	no_findings with input as scoped(scope, null)
	denied == set() with input as scoped(scope, null)
}

test_a_tool_for_one_tenant_needs_a_tenant if {
	no_findings with input as scoped("single", "acme")
	not no_findings with input as scoped("single", null)
	denied == {name("scope")} with input as scoped("single", null)
	denied == {name("scope")} with input as scoped("single", "")
}

test_a_tenants_own_tool_is_clear if no_findings with input as scoped("acme", "acme")

test_another_tenants_tool_is_denied if {
	not no_findings with input as scoped("umbrella", "acme")
	denied == {name("scope")} with input as scoped("umbrella", "acme")
}

test_a_tenant_can_not_be_called_like_a_scope if {
	denied == {name("scope")} with input as scoped("cross", "cross")
}

test_tools_across_tenants_need_a_role if {
	settings := {"tenancy": {"cross_tenant_roles": {"reader": true}}}
	denied == {name("scope")} with input as scoped("cross", "acme")
	no_findings with input as scoped("cross", "acme") with data.agenttool.settings as settings
}

named(member, value) := f.changed({"input": {member: value}})

test_an_argument_that_names_another_tenant_is_denied[member] if {
	some member in ["tenant", "tenant_id"]
	not no_findings with input as named(member, "umbrella")
	denied == {name("argument")} with input as named(member, "umbrella")
	no_findings with input as named(member, "acme")
}

test_an_argument_names_a_tenant_and_the_actor_has_none if {
	document := object.union(scoped(null, null), {"input": {"tenant": "acme"}})
	denied == {name("argument")} with input as document
}

test_a_role_may_name_other_tenants if {
	settings := {"tenancy": {"cross_tenant_roles": {"reader": true}}}
	no_findings with input as named("tenant", "umbrella") with data.agenttool.settings as settings
}

test_a_tenant_may_be_held_to_tools if {
	settings := {"tenancy": {"tools": {"acme": ["web.*"]}}}
	not no_findings with input as f.base with data.agenttool.settings as settings
	denied == {name("tool")} with input as f.base with data.agenttool.settings as settings
	no_findings with input as f.with_url({}) with data.agenttool.settings as settings
	no_findings with input as scoped(null, "umbrella") with data.agenttool.settings as settings
}

members := ["/permission_profile/tenant_scope", "/actor/tenant", "/input", "/actor", "/permission_profile"]

test_a_missing_member_is_never_clear if {
	{document |
		some document in f.missing(f.base, members)
		no_findings with input as document
	} == set()
}

test_a_missing_member_is_always_found if {
	{document |
		some document in f.missing(f.base, members)
		count(denied) == 0 with input as document
	} == set()
}

test_a_mistyped_member_is_never_clear if {
	{document |
		some document in f.mistyped(scoped("single", "acme"), members, [7, [7], "nonsense"])
		not document.actor.tenant == "nonsense"
		no_findings with input as document
	} == set()
}

test_extra_members_change_nothing if no_findings with input as f.extended
