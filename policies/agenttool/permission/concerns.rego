package agenttool.permission

# METADATA
# title: No concern has findings
# description: |
#   A concern is a package of agenttool.rules, whichever there are: each proves that it is clear, or is asked. What has
#   no rule "clear" proves nothing, and is asked each time.
no_concern_has_findings if {
	count(unclear) == 0
	count(objecting) == 0
}

# METADATA
# title: Concerns that prove that they have nothing to say
clear contains name if {
	some name
	data.agenttool.rules[name].clear == true
}

# METADATA
# title: Concerns that can't prove that they have nothing to say
unclear contains name if {
	some name
	data.agenttool.rules[name].clear == false
}

# METADATA
# title: Concerns that have a rule "clear"
# description: OPA looks at what a function is given before it looks at a "not", so no rule asks "not is_boolean(...)" of it.
with_proof contains name if {
	some name
	is_boolean(data.agenttool.rules[name].clear)
}

# METADATA
# title: Concerns without such a proof that have findings
# description: What has a proof is not looked at, so that its findings are made only where it can't prove that there are none.
objecting contains name if {
	some name
	not name in with_proof
	count(data.agenttool.rules[name].deny) > 0
}

objecting contains name if {
	some name
	not name in with_proof
	count(data.agenttool.rules[name].ask) > 0
}

# METADATA
# title: Concerns in shadow mode
# description: |
#   They do not count. The engine puts a package into shadow mode by giving its rules deny and ask other names, and
#   says so in it.
shadowed contains name if {
	some name
	data.agenttool.rules[name].shadowed == true
}

# METADATA
# title: Concerns that may have findings
with_findings contains name if {
	some name in unclear
	not name in shadowed
}

# METADATA
# title: What denies the call
# description: Denials of concerns and of custom rules.
denials contains finding if some finding in concern_denials

denials contains finding if some finding in data.agenttool.extension.deny

concern_denials contains data.agenttool.extension.named(finding, rule, "a rule denies the call") if {
	some name
	not name in clear
	some finding in data.agenttool.rules[name].deny
	rule := concat("", ["agenttool.rules.", name, ".deny"])
}

# METADATA
# title: What is asked about
asks contains finding if some finding in concern_asks

concern_asks contains data.agenttool.extension.named(finding, rule, "a rule asks about the call") if {
	some name
	not name in clear
	some finding in data.agenttool.rules[name].ask
	rule := concat("", ["agenttool.rules.", name, ".ask"])
}

questions contains finding if some finding in asks

questions contains finding if some finding in data.agenttool.extension.ask

# METADATA
# title: A concern without an answer
# description: This is what an error inside a rule becomes on an engine that carries on after errors.
questions contains {
	"rule": concat("", ["agenttool.rules.", concern, ".unproven"]),
	"message": "a concern could not be decided",
	"type": "policy",
} if {
	some concern in with_findings
	not concern in explained
}

explained contains name if {
	some name
	name in with_findings
	count(data.agenttool.rules[name].deny) > 0
}

explained contains name if {
	some name
	name in with_findings
	count(data.agenttool.rules[name].ask) > 0
}
