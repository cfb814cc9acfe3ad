# METADATA
# title: Which tools a model sees
# description: |
#   A tool that would be denied whatever its arguments is not shown. What is shown may still be asked about or
#   denied; hiding is a courtesy, the decision is the boundary.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.surface

# METADATA
# title: The tool is shown
# description: True or false, never undefined.
# entrypoint: true
default visible := false

visible if shown(data.agenttool.config.effective)

shown(c) if {
	c.surface.lifecycles[input.tool.lifecycle] == true
	data.agenttool.lib.none_called(c.surface.hidden_tools)
	data.agenttool.lib.none_called(c.destructive.forbidden_tools)
	data.agenttool.rules.tenancy.own_scope(c)
	data.agenttool.rules.tenancy.own_tool(c)
	data.agenttool.rules.roles.no_findings(c)
}

ready if data.agenttool.config.effective.surface.lifecycles[input.tool.lifecycle] == true

# METADATA
# title: Why the tool is not shown
# description: One of the standard's block reasons, or null for a tool that is shown.
# entrypoint: true
reason := null if {
	visible
} else := "policy_blocked" if {
	not data.agenttool.config.effective
} else := data.agenttool.config.effective.surface.reasons[input.tool.lifecycle] if {
	not ready
} else := "role_not_allowed" if {
	not data.agenttool.rules.roles.no_findings(data.agenttool.config.effective)
} else := "policy_blocked"
