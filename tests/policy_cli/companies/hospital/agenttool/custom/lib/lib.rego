# METADATA
# title: What our rules share
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom.lib


has_role(actor, role) if {
	some mine in actor.roles
	mine == role
}

# How serious a tool is, as a number; what is not known is as serious as it can be.
default severity(_) := 3

severity(profile) := data.agenttool.custom.severities[profile.risk_level]

basename(path) := parts[count(parts) - 1] if parts := split(path, "/")

normal(value) := lower(value) if is_string(value)

normal(value) := normal_list(value) if is_array(value)

normal_list(values) := concat(",", sort([lower(value) | some value in values; is_string(value)]))
