# METADATA
# title: How much a session may use
# description: |
#   Limits of a session (calls, calls of one tool, denials, bytes of results) and of single tools by glob. A limit
#   or a counter that is no number counts as used up. No limit is set where the configuration states none.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.budgets

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	c.budgets.session == {}
	c.budgets.tools == {}
} else if {
	session_left(c)
	tool_left(c)
}

# METADATA
# title: No limit of the session is reached
session_left(c) if {
	is_object(c.budgets.session)
	every name, limit in c.budgets.session {
		counter_left(name, limit)
	}
}

# METADATA
# title: No limit of the tool is reached
tool_left(c) if {
	is_object(c.budgets.tools)
	every pattern, limit in c.budgets.tools {
		within(pattern, limit)
	}
}

within(pattern, _) if data.agenttool.lib.is_not_called(pattern)

within(_, limit) if tool_calls_left(limit)

# METADATA
# title: The tool's own counter is below the limit
tool_calls_left(limit) if {
	configured
	left(limit, input.session.counters.tool_calls)
}

counter_left(name, limit) if {
	configured
	left(limit, input.session.counters[name])
}

left(limit, used) if {
	is_number(limit)
	is_number(used)
	used >= 0
	used < limit
}

# METADATA
# title: Some budget is configured
# description: |
#   Reads the bundle's data and the session's mode alone, and is the first statement of whatever reads the session's
#   counters: without any budget a decision does not depend on them, and can be cached.
configured if not nothing_configured

# METADATA
# title: No budget in the configuration in force
nothing_configured if data.agenttool.config.effective.budgets == {"asks": null, "session": {}, "tools": {}}

# METADATA
# title: The session has used up what it may use
# custom:
#   severity: medium
deny contains {
	"rule": "agenttool.rules.budgets.session",
	"message": "a budget of the session is used up",
} if {
	not session_left(data.agenttool.config.effective)
}

# METADATA
# title: The tool has been called as often as it may be
# custom:
#   severity: medium
deny contains {
	"rule": "agenttool.rules.budgets.tool",
	"message": "the tool's budget in this session is used up",
} if {
	not tool_left(data.agenttool.config.effective)
}

# METADATA
# title: People may still be asked
# description: Beyond this many questions in a session, a question is a denial, so that nobody learns to click yes.
may_ask(c) if c.budgets.asks == null

may_ask(c) if {
	configured
	left(c.budgets.asks, input.session.counters.asks)
}
