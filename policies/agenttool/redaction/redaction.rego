# METADATA
# title: What must be redacted
# description: |
#   Obligations that hold whatever is decided: detectors look inside of results of tools with confidential data before
#   anyone sees them, secrets are replaced as a whole, credentials in URLs are redacted wherever the arguments are shown, and the configuration may add
#   obligations for tools by glob. Sensitivity that nobody knows, or of the wrong type, counts as confidential.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.redaction

# METADATA
# title: Obligations of the call
# description: Always defined; when the configuration is not usable, everything is redacted and nothing persisted.
# entrypoint: true
obligations := {
	"redact_input": [],
	"redact_result": ["*"],
	"max_inline_chars": null,
	"persistence": "never_persist",
} if {
	not data.agenttool.config.effective
} else := resolve(data.agenttool.config.effective)

# METADATA
# title: Obligations under a configuration
resolve(c) := c.redaction.nothing if {
	nothing(c)
} else := {
	"redact_input": sort(input_pointers(c)),
	"redact_result": sort(result_pointers(c)),
	"max_inline_chars": smallest(inline_limits(c)),
	"persistence": strictest(c, strategies(c)),
}

# METADATA
# title: There is nothing to redact
nothing(c) if {
	c.redaction.tools == {}
	c.redaction.max_inline_chars == null
	public(c)
	optional
	plain_access(c)
	plain_urls
}

public(c) if {
	input.permission_profile.data_sensitivity == null
} else if {
	c.redaction.sensitivities[input.permission_profile.data_sensitivity] == "keep"
}

plain_access(c) if {
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		plain_kind(c, kind)
	}
}

optional if input.permission_profile.redaction_required == false

plain_kind(c, kind) if object.get(c.redaction.access_kinds, kind, false) == false

plain_urls if {
	input.facts.urls == []
} else if {
	is_array(input.facts.urls)
	every fact in input.facts.urls {
		fact.credentials == false
		fact.sensitive_query == false
	}
}

input_pointers(c) := {fact.argument |
	is_array(input.facts.urls)
	some fact in input.facts.urls
	is_string(fact.argument)
	not innocent(fact)
} | {pointer |
	some rule in tool_rules(c)
	some pointer in rule.redact_input
}

innocent(fact) if {
	fact.credentials == false
	fact.sensitive_query == false
}

result_pointers(c) := ((by_sensitivity(c) | by_contract) | {"*" | not plain_access(c)}) | {pointer |
	some rule in tool_rules(c)
	some pointer in rule.redact_result
}

# METADATA
# title: What the sensitivity of a tool's results asks for
# description: |
#   Detectors look inside of a result whose word is not kept; secrets are replaced as a whole, and so is what has a
#   sensitivity of the wrong type, or none at all.
by_sensitivity(c) := set() if {
	public(c)
} else := {"*"} if {
	c.redaction.sensitivities[input.permission_profile.data_sensitivity] == "replace"
} else := {"detected"} if {
	is_string(input.permission_profile.data_sensitivity)
} else := {"*"}

by_contract := set() if {
	optional
} else := {"detected"} if {
	input.permission_profile.redaction_required == true
} else := {"*"}

inline_limits(c) := {limit |
	some rule in tool_rules(c)
	limit := rule.max_inline_chars
	is_number(limit)
} | {limit |
	limit := c.redaction.max_inline_chars
	is_number(limit)
}

strategies(c) := ({strategy |
	some rule in tool_rules(c)
	strategy := rule.persistence
	is_string(strategy)
} | {strategy |
	strategy := c.redaction.persistence[input.permission_profile.data_sensitivity]
	is_string(strategy)
}) | {"never_persist" |
	not plain_access(c)
}

# METADATA
# title: The configuration's entries for this tool
tool_rules(c) := [rule |
	some pattern, rule in c.redaction.tools
	data.agenttool.lib.is_called(pattern)
]

# METADATA
# title: Smallest of some limits, or null
smallest(limits) := min(limits) if {
	count(limits) > 0
} else := null

# METADATA
# title: Strictest of some persistence strategies, or null
# description: Of equally strict ones the first in alphabetical order.
strictest(c, names) := null if {
	names == set()
} else := min(found) if {
	ranks := {c.redaction.strategies[item] | some item in names}
	count(ranks) > 0
	found := {name | some name in names; c.redaction.strategies[name] == max(ranks)}
} else := "never_persist"

# METADATA
# title: Obligations of several parties as one
# description: |
#   The strictest of each member; findings add theirs to those of this package. A sandbox is obliged by findings alone,
#   and the answer has the member only where one obliges it.
combined(c, base, findings) := base if {
	not adds(findings)
} else := object.union(
	joined(c, base, findings),
	object.union(sandbox_member(sandboxes(findings)), unknown_obligations(findings)),
)

# METADATA
# title: Obligations that nobody knows
# description: The answer has a member that is no obligation, and is no decision with it, so that the call is denied.
unknown_obligations(findings) := {"unknown": true} if {
	count(unknown_names(findings)) > 0
} else := {}

unknown_names(findings) := {name |
	some finding in findings
	is_object(finding.obligations)
	some name in object.keys(finding.obligations)
	not name in {"redact_input", "redact_result", "max_inline_chars", "persistence", "sandbox"}
}

joined(c, base, findings) := {
	"redact_input": sort(own(base.redact_input) | pointers(findings, "redact_input")),
	"redact_result": sort(own(base.redact_result) | pointers(findings, "redact_result")),
	"max_inline_chars": smallest(own_limit(base) | limits(findings)),
	"persistence": strictest(c, own_strategy(base) | wanted_strategies(findings)),
}

# METADATA
# title: Strictness of the stock sandbox profiles
# description: As in the package's own list.
sandbox_strictness := {"write": 1, "rehearse": 2, "read": 3}

# METADATA
# title: Strictest of some sandboxes
# description: One that is not understood is handed on as it is, so that the call is denied for it.
sandbox_member(wanted) := {} if {
	wanted == set()
} else := {"sandbox": min(not_understood(wanted))} if {
	count(not_understood(wanted)) > 0
} else := {"sandbox": object.union(profile_member(wanted), network(wanted))}

# METADATA
# title: The strictest profile
# description: |
#   What an operator's own profile narrows is not known here. So all names are handed on where one is no stock profile's:
#   the runtime compares them, and denies the call for a name that it does not know, or that has no order.
profile_member(wanted) := {"profile": strictest_profile(wanted)} if {
	every sandbox in wanted {
		sandbox.profile in object.keys(sandbox_strictness)
	}
} else := {"profiles": sort({sandbox.profile | some sandbox in wanted})}

not_understood(wanted) := {sandbox | some sandbox in wanted; not understood(sandbox)}

understood(sandbox) if {
	is_object(sandbox)
	is_string(sandbox.profile)
	object.keys(sandbox) - {"profile", "network"} == set()
	object.get(sandbox, "network", null) in {null, "none"}
}

strictest_profile(wanted) := max({[sandbox_strictness[sandbox.profile], sandbox.profile] | some sandbox in wanted})[1]

network(wanted) := {"network": "none"} if {
	"none" in {object.get(sandbox, "network", null) | some sandbox in wanted}
} else := {}

# METADATA
# title: What findings want for a sandbox
sandboxes(findings) := {sandbox |
	some finding in findings
	sandbox := finding.obligations.sandbox
	sandbox != null
}

# METADATA
# title: Some finding has obligations
adds(findings) if {
	some finding in findings
	is_object(finding.obligations)
}

own(items) := {item | some item in items}

own_limit(base) := {base.max_inline_chars} if {
	is_number(base.max_inline_chars)
} else := set()

own_strategy(base) := {base.persistence} if {
	is_string(base.persistence)
} else := set()

pointers(findings, member) := {item |
	some finding in findings
	is_array(finding.obligations[member])
	some item in finding.obligations[member]
	is_string(item)
}

limits(findings) := {limit |
	some finding in findings
	limit := finding.obligations.max_inline_chars
	is_number(limit)
}

wanted_strategies(findings) := {strategy |
	some finding in findings
	strategy := finding.obligations.persistence
	is_string(strategy)
}
