# METADATA
# title: A child is never wider than its parent
# description: |
#   An agent that was started by another one, which input.actor.chain lists, has no role, no tenant, no mode and no
#   root that one of them has not. Without a chain nobody has delegated the call.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.delegation

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if not delegated

clear if no_findings

# METADATA
# title: Somebody has delegated the call
# description: A chain of any other type than the schema's, false and null included, is one, too, and denies.
delegated if is_array(input.actor.chain) in {true, false}

# METADATA
# title: Nothing here to deny
no_findings if {
	is_array(input.actor.chain)
	every parent in input.actor.chain {
		has_roles(parent)
		parent.tenant == input.actor.tenant
		parent.mode == input.session.mode
		has_roots(parent)
	}
}

has_roles(parent) if {
	is_array(parent.roles)
	is_array(input.actor.roles)
	every role in input.actor.roles {
		role in parent.roles
	}
}

has_roots(parent) if {
	parent.roots == []
	input.session.roots == []
}

has_roots(parent) if {
	is_array(parent.roots)
	is_array(input.session.roots)
	input.session.roots != [] # a session without roots reads everywhere
	every root in input.session.roots {
		below_some(parent, root)
	}
}

below_some(parent, root) if root in parent.roots

below_some(parent, root) if {
	some outer in parent.roots
	startswith(root, concat("", [trim_suffix(outer, "/"), "/"]))
	not ".." in split(root, "/")
}

# METADATA
# title: The child would be wider than its parent
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.delegation.wider",
	"message": "the agent has a role, a tenant, a mode or a root that the one who started it has not",
} if {
	delegated
	not no_findings
}
