# METADATA
# title: Where a call connects to
# description: |
#   Public hosts over http and https need no question. Loopback and private addresses are denied unless the
#   configuration or the session lists the host; link-local, metadata and other special addresses are always
#   denied, and so is a URL that different programs would read differently.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.network

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	input.facts.urls == []
	nothing_undeclared
} else if {
	is_array(input.facts.urls)
	input.facts.urls != []
	every fact in input.facts.urls {
		usable(fact)
		genuine(fact)
		direct(c, fact)
		scheme_open(c, fact)
		credentials_agreed(c, fact)
		reachable(c, fact)
		port_agreed(c, fact)
		listed_enough(c, fact)
		not_blocked(c, fact)
	}
}

# METADATA
# title: No text of the call looks like a URL that nobody took for one
# description: Only for tools whose access kinds say that they connect to hosts.
nothing_undeclared if disconnected

nothing_undeclared if {
	may_connect
	is_object(input.input)
	count(undeclared) == 0
}

# METADATA
# title: The tool's access kinds do not rule out that it connects, and no URL is known
# description: The first statement of whatever reads the texts, so that all other decisions do not depend on them.
may_connect if {
	not disconnected
	input.facts.urls == []
}

disconnected if {
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		offline(kind)
	}
}

offline(kind) if {
	is_string(kind)
	kind != "network"
	kind != "browser"
}

undeclared contains value if {
	some value in data.agenttool.lib.texts
	names_a_host(value)
}

# METADATA
# title: The text begins as a URL without a scheme does, or is one word that holds a scheme
# description: Without a pattern, so that a decision depends on no more of the text than this.
names_a_host(text) if {
	startswith(text, "//")
} else if {
	contains(text, "://")
	contains(text, " ") == false
	contains(text, "\n") == false
}

# METADATA
# title: The URL means one thing
usable(fact) if {
	fact.valid == true
	fact.rejected == null
	fact.certain == true
	is_string(fact.host)
	fact.host != ""
	is_array(fact.resolved)
}

genuine(fact) if {
	fact.disagreement == false
	fact.lookalike == null
}

# METADATA
# title: The host answers for itself
# description: Shorteners and open redirects lead to other hosts; tunnels and collectors of requests are somebody's.
direct(_, fact) if fact.relay == false

direct(c, fact) if {
	is_boolean(fact.relay)
	listed(c, fact)
}

credentials_agreed(_, fact) if {
	fact.credentials == false
	fact.sensitive_query == false
}

credentials_agreed(c, fact) if {
	c.network.credentials_in_url == "redact"
	is_boolean(fact.credentials)
	is_boolean(fact.sensitive_query)
}

credentials_agreed(c, fact) if {
	c.network.credentials_in_url == "ask"
	fact.credentials == false
	is_boolean(fact.sensitive_query)
}

# METADATA
# title: The address may be reached
reachable(c, fact) if {
	open_class(c, fact.address_class)
	every answer in fact.resolved {
		open_class(c, answer.address_class)
	}
}

reachable(c, fact) if {
	listable(c, fact.address_class)
	every answer in fact.resolved {
		listable(c, answer.address_class)
	}
	listed(c, fact)
}

open_class(c, class) if c.network.address_classes[class] == "allow"

listable(c, class) if c.network.address_classes[class] in {"allow", "listed"}

# METADATA
# title: The host is on a list
# description: |
#   Entries are hosts, hosts with a port, or globs of hosts (a star stands for one or more whole labels). The
#   session's label "allowed_hosts" adds entries, separated by commas; the application sets labels, no model can.
listed(c, fact) if {
	some entry in c.network.allowed_hosts
	names(entry, fact)
}

listed(_, fact) if {
	is_string(input.session.labels.allowed_hosts)
	some entry in split(input.session.labels.allowed_hosts, ",")
	names(trim_space(entry), fact)
}

names(entry, fact) if entry == fact.host

names(entry, fact) if {
	is_number(fact.port)
	entry == sprintf("%s:%d", [fact.host, fact.port])
}

names(entry, fact) if {
	startswith(entry, "*.")
	endswith(fact.host, substring(entry, 1, -1))
}

port_agreed(c, _) if c.network.ports == null

port_agreed(c, fact) if {
	is_number(fact.port)
	c.network.ports[sprintf("%d", [fact.port])] == true
}

port_agreed(c, fact) if listed(c, fact)

listed_enough(c, _) if c.network.listed_only == false

listed_enough(c, fact) if listed(c, fact)

not_blocked(c, fact) if {
	c.network.blocked_hosts == []
	is_string(fact.host)
} else if {
	is_array(c.network.blocked_hosts)
	every entry in c.network.blocked_hosts {
		is_string(entry)
		is_string(fact.host)
		names_not(entry, fact)
	}
}

names_not(entry, fact) if not names(entry, fact)

# METADATA
# title: The facts about URLs
facts := input.facts.urls if is_array(input.facts.urls)

# METADATA
# title: Not a usable URL
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.network.invalid",
	"message": "an argument is not a usable URL",
} if {
	some fact in facts
	not valid(fact)
}

valid(fact) if {
	fact.valid == true
	fact.rejected == null
}

# METADATA
# title: A URL that programs read differently
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.network.disagreement",
	"message": "the URL leads different programs to different hosts",
	"type": "safety_check",
} if {
	some fact in facts
	fact.disagreement != false
}

# METADATA
# title: A scheme that is not used
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.network.scheme",
	"message": "the URL's scheme is not one that may be used",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not scheme_used(c, fact)
}

scheme_open(c, fact) if c.network.schemes[fact.scheme] == "allow"

scheme_used(c, fact) if c.network.schemes[fact.scheme] in {"allow", "ask"}

# METADATA
# title: An address that may not be reached
# custom:
#   severity: critical
deny contains {
	"rule": "agenttool.rules.network.address",
	"message": "the URL leads to an address that may not be reached",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not reachable(c, fact)
}

# METADATA
# title: A blocked host
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.network.blocked_host",
	"message": "the configuration blocks the host",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not not_blocked(c, fact)
}

# METADATA
# title: Credentials in a URL
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.network.credentials",
	"message": "the URL carries credentials",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not credentials_agreed(c, fact)
	not c.network.credentials_in_url == "ask"
}

# METADATA
# title: Credentials in a URL that a person may agree to
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.network.carries_credentials",
	"message": "the URL carries credentials to its host",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not credentials_agreed(c, fact)
}

# METADATA
# title: A scheme that is asked about
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.network.unusual_scheme",
	"message": "the URL's scheme is asked about",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	c.network.schemes[fact.scheme] == "ask"
}

# METADATA
# title: A host that looks like another
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.network.lookalike",
	"message": "the URL's host looks like another one",
	"type": "safety_check",
} if {
	some fact in facts
	not genuine(fact)
}

# METADATA
# title: A host that passes on
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.network.relay",
	"message": "the URL's host leads on to others or keeps what it is asked; network.allowed_hosts may list it",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not direct(c, fact)
}

# METADATA
# title: A URL whose meaning is not certain
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.network.uncertain",
	"message": "it is not certain where the URL leads",
	"type": "safety_check",
} if {
	some fact in facts
	not usable(fact)
}

# METADATA
# title: An unusual port
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.network.port",
	"message": "the URL's port is asked about",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not port_agreed(c, fact)
}

# METADATA
# title: A host that no list has
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.network.unlisted",
	"message": "the host is not on the list of allowed hosts",
} if {
	c := data.agenttool.config.effective
	some fact in facts
	not listed_enough(c, fact)
}

# METADATA
# title: A tool that connects without a known URL
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.network.undeclared",
	"message": "the tool's URL is in an argument that is not known to be one; declare it in url_args",
} if {
	input.facts.urls == []
	not nothing_undeclared
}

# METADATA
# title: Facts of the wrong type
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.network.unproven",
	"message": "the URLs of the call could not be established",
} if {
	not facts
}

# METADATA
# title: URLs that may be fetched
allow contains allowed if {
	input.facts.urls != []
	no_findings(data.agenttool.config.effective)
}

# METADATA
# title: The answer for URLs that may be fetched
allowed := {"rule": "agenttool.rules.network.reachable", "message": "the hosts may be reached"}
