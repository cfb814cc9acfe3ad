# METADATA
# title: Tools that wait for an evaluator
# description: |
#   A tool that the configuration lists, or that names the gate among its capabilities, runs only with the verdict
#   of a user-given evaluator. No verdict, or one that does not pass, is a denial that names the next step.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.evaluation

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	ungated(c)
} else if {
	passing(c)
}

# METADATA
# title: The tool waits for no evaluator
ungated(c) if {
	is_array(input.tool.capability_refs)
	not c.evaluation.capability in input.tool.capability_refs
	data.agenttool.lib.none_called(c.evaluation.gates)
}

# METADATA
# title: The evaluator's verdict lets the tool run
passing(c) if {
	c.evaluation.statuses[input.evaluation.status] == true
	c.evaluation.trends[input.evaluation.trend] == true
}

# METADATA
# title: There is a verdict
judged if is_string(input.evaluation.status)

# METADATA
# title: No verdict
# custom:
#   severity: high
deny contains object.union(
	{
		"rule": "agenttool.rules.evaluation.absent",
		"message": "the tool waits for an evaluator, and there is no verdict",
	},
	guidance,
) if {
	not ungated(data.agenttool.config.effective)
	not judged
}

# METADATA
# title: A verdict that does not pass
# custom:
#   severity: high
deny contains object.union(
	{
		"rule": "agenttool.rules.evaluation.not_passing",
		"message": "the evaluator's verdict does not let the tool run",
	},
	guidance,
) if {
	c := data.agenttool.config.effective
	not ungated(c)
	judged
	not passing(c)
}

# METADATA
# title: What to do next
# description: |
#   The evaluator's own next step where it is a plain name, else the tool that the configuration names for the
#   trend, else the one that it names for all.
guidance := {"alternatives": [{
	"tool": name,
	"arguments": {},
	"reason": "the next step towards a passing verdict",
}]} if {
	name := next_step
	is_string(name)
} else := {}

# METADATA
# title: Name of the next step
next_step := input.evaluation.next_step if {
	is_string(input.evaluation.next_step)
	regex.match(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`, input.evaluation.next_step)
} else := name if {
	name := data.agenttool.config.effective.evaluation.next_steps[input.evaluation.trend]
} else := data.agenttool.config.effective.evaluation.next_step
