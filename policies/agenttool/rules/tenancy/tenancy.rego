# METADATA
# title: One tenant's agents stay with that tenant
# description: |
#   A tool that belongs to a tenant, or an argument that names one, has to be the actor's own tenant. Tools that
#   work across tenants are denied unless the configuration names the actor's role.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.tenancy

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	own_scope(c)
	own_arguments(c)
	own_tool(c)
}

# METADATA
# title: The tool's tenant is the actor's
own_scope(c) if {
	input.permission_profile.tenant_scope == null
} else if {
	input.permission_profile.tenant_scope in {"none", "any"}
} else if {
	input.permission_profile.tenant_scope == "single"
	is_string(input.actor.tenant)
	input.actor.tenant != ""
} else if {
	is_string(input.actor.tenant)
	input.actor.tenant != ""
	not input.actor.tenant in {"single", "cross"}
	input.permission_profile.tenant_scope == input.actor.tenant
} else if {
	crosses(c)
}

# METADATA
# title: The actor may work across tenants
crosses(c) if {
	is_array(input.actor.roles)
	some role in input.actor.roles
	c.tenancy.cross_tenant_roles[role] == true
}

# METADATA
# title: No argument names another tenant
own_arguments(c) if {
	names_no_tenants
	placed
} else if {
	own_values(c)
} else if {
	crosses(c)
}

own_values(c) if {
	may_name_tenants
	is_object(input.input)
	tenant := input.actor.tenant
	every name in c.tenancy.arguments {
		names_own(name, tenant)
	}
}

# METADATA
# title: Some argument has a name that tells a tenant
# description: |
#   Reads the arguments' names alone, and is the first statement of whatever reads the arguments: the decisions of other
#   tools do not depend on them.
may_name_tenants if not names_no_tenants

placed if input.actor.tenant == null

placed if is_string(input.actor.tenant)

names_no_tenants if {
	is_object(input.input)
	names := object.keys(input.input)
	every name in data.agenttool.config.effective.tenancy.arguments {
		unnamed(name, names)
	}
}

unnamed(name, names) if not name in names

names_own(name, tenant) if object.get(input.input, name, tenant) == tenant

# METADATA
# title: The tenant may use the tool
# description: Only tenants that the configuration lists are held to a list of tools.
own_tool(c) if {
	c.tenancy.tools == {}
} else if {
	object.get(c.tenancy.tools, input.actor.tenant, null) == null
} else if {
	some pattern in c.tenancy.tools[input.actor.tenant]
	data.agenttool.lib.is_exactly(pattern)
}

# METADATA
# title: Another tenant's tool
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.tenancy.scope",
	"message": "the tool is not one of the actor's tenant",
} if {
	not own_scope(data.agenttool.config.effective)
}

# METADATA
# title: An argument names another tenant
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.tenancy.argument",
	"message": "an argument names another tenant",
} if {
	not own_arguments(data.agenttool.config.effective)
}

# METADATA
# title: The tenant may not use the tool
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.tenancy.tool",
	"message": "the actor's tenant may not use the tool",
} if {
	not own_tool(data.agenttool.config.effective)
}
