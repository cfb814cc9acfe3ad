# METADATA
# title: The user's own rules
# description: |
#   Whatever the package agenttool.custom, or any package below it, says in its sets deny, ask and allow. A custom
#   deny denies, a custom ask asks, and a custom allow may answer the questions that it names in "waives"; nothing
#   custom lifts a denial. A finding without a usable rule and message still counts, under a name of ours.
# scope: package
package agenttool.extension

# METADATA
# title: There are no custom rules, or they say nothing
no_findings if {
	not data.agenttool.custom
} else if {
	count(deny) == 0
	count(ask) == 0
	count(allow) == 0
}

# METADATA
# title: Custom denials
deny contains named(finding, "agenttool.custom.deny", "a custom rule denies the call") if {
	some source in sources
	some finding in items(source.deny)
}

deny contains {
	"rule": "agenttool.custom.deny",
	"message": "a custom rule denies the call, or its denials can't be read",
} if {
	some source in sources
	unreadable(source.deny)
}

# METADATA
# title: Custom questions
ask contains named(finding, "agenttool.custom.ask", "a custom rule asks about the call") if {
	some source in sources
	some finding in items(source.ask)
}

ask contains {
	"rule": "agenttool.custom.ask",
	"message": "a custom rule asks about the call, or its questions can't be read",
} if {
	some source in sources
	unreadable(source.ask)
}

# METADATA
# title: Custom permissions
allow contains finding if {
	some source in sources
	some finding in items(source.allow)
	is_object(finding)
	is_string(finding.rule)
	is_string(finding.message)
}

# METADATA
# title: Questions that custom rules answer
waived contains rule if {
	some finding in allow
	is_array(finding.waives)
	some rule in finding.waives
}

# METADATA
# title: The packages that may hold custom rules
sources contains data.agenttool.custom if is_object(data.agenttool.custom)

sources contains source if {
	is_object(data.agenttool.custom)
	some name, source in data.agenttool.custom
	not name in {"deny", "ask", "allow"}
	is_object(source)
}

items(findings) := findings if is_set(findings)

items(findings) := findings if is_array(findings)

# METADATA
# title: A rule that is no set of findings
# description: A plain true, for example, denies or asks as its author meant; a plain false says nothing.
unreadable(findings) if {
	not is_set(findings)
	not is_array(findings)
	findings != false
}

named(finding, rule, message) := finding if {
	is_string(finding.rule)
	is_string(finding.message)
} else := {"rule": rule, "message": message}
