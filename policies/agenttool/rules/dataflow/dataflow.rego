# METADATA
# title: Where a value came from
# description: |
#   A value that was seen only in the output of an open-world tool may be somebody else's wish. Before it becomes a
#   recipient, an address, an account, a path, a URL or a command of a tool that writes or sends, a person is asked.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.dataflow

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	harmless_values(c)
	c.dataflow.vouch == false
} else if {
	harmless_values(c)
	inward(c)
} else if {
	harmless_values(c)
	data.agenttool.vouching.vouches(c)
}

harmless_values(c) if {
	input.facts.provenance == {}
} else if {
	is_object(input.facts.provenance)
	every pointer, fact in input.facts.provenance {
		harmless(c, pointer, fact)
	}
}

# METADATA
# title: The value may be used here
harmless(c, pointer, fact) if {
	trusted(c, fact)
	kept(c, fact)
} else if {
	is_boolean(fact.untrusted)
	fact.extended == false
	inward(c)
} else if {
	is_boolean(fact.untrusted)
	carried(c, pointer, fact)
	kept(c, fact)
} else if {
	data.agenttool.counterparties.known(c, pointer, fact)
}

# METADATA
# title: It is certain that the value was not seen only in untrusted output
trusted(c, fact) if {
	fact.untrusted == false
	fact.certain == true
	not_guessed(c, fact)
}

not_guessed(_, fact) if {
	fact.trust != "inferred"
} else if {
	fact.role == "content"
}

not_guessed(c, _) if c.dataflow.trust_inferred == true

# METADATA
# title: Nothing leaves with the value that should not
# description: |
#   A link that only untrusted output has is not sent to others; confidential data of one source goes to whom the user
#   named, or to whom the same source names.
kept(c, fact) if {
	fact.link == false
	fact.private == []
} else if {
	stays(c)
} else if {
	fact.link == false
	is_array(fact.private)
	every target in targets {
		may_have(target, fact)
	}
}

# METADATA
# title: Nobody else gets what the call carries
stays(c) if {
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		data.agenttool.lib.holds(c.dataflow.own_access_kinds, kind, true)
	}
}

targets contains fact if {
	some fact in input.facts.provenance
	fact.role == "target"
}

may_have(target, _) if target.trust == "user"

may_have(target, fact) if {
	some source in target.sources
	source in fact.private
}

# METADATA
# title: The tool neither writes nor sends
inward(c) if {
	input.tool.read_only == true
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		data.agenttool.lib.holds(c.dataflow.inward_access_kinds, kind, true)
	}
}

# METADATA
# title: The value is only carried, it does not steer the call
carried(c, pointer, fact) if {
	fact.role == "content"
	is_array(input.facts.paths)
	is_array(input.facts.urls)
	is_array(input.facts.shell)
	is_array(input.facts.sql)
	not pointer in steering_pointers
	every segment in split(lower(pointer), "/") {
		plain(c, segment)
	}
}

steering_pointers contains fact.argument if {
	some kind in ["paths", "urls", "shell", "sql"]
	is_array(input.facts[kind])
	some fact in input.facts[kind]
}

readable if is_object(input.facts.provenance)

# METADATA
# title: The name is none of a target
plain(c, segment) if {
	object.get(c.dataflow.target_names, segment, false) == false
	is_array(c.dataflow.target_suffixes)
	every suffix in c.dataflow.target_suffixes {
		ends_otherwise(segment, suffix)
	}
}

ends_otherwise(segment, suffix) if endswith(segment, suffix) == false

# METADATA
# title: An untrusted value steers a call that writes or sends
# custom:
#   severity: critical
ask contains {
	"rule": "agenttool.rules.dataflow.untrusted_target",
	"message": "a value that decides whom or what the call reaches stands only in untrusted output",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	not harmless(c, pointer, fact)
	not unsure(fact)
	not leaves(c, pointer, fact)
}

# METADATA
# title: Something leaves with a value that should not
# description: |
#   A link from untrusted output in what is sent to others, a query that such a link did not have, confidential data
#   for somebody whom neither the user nor its source named.
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.outward",
	"message": "an untrusted link, or confidential data, would go to others",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	leaves(c, pointer, fact)
}

leaves(c, pointer, fact) if {
	not harmless(c, pointer, fact)
	not kept(c, fact)
	settled(c, pointer, fact)
}

leaves(c, pointer, fact) if {
	not harmless(c, pointer, fact)
	input.tool.read_only == true
	inward(c)
	fact.extended == true
}

settled(c, _, fact) if trusted(c, fact)

settled(c, pointer, fact) if carried(c, pointer, fact)

# METADATA
# title: It is not known where a value that steers such a call came from
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.dataflow.unknown_source",
	"message": "a value that decides whom or what the call reaches may come from untrusted output",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	not harmless(c, pointer, fact)
	unsure(fact)
	not leaves(c, pointer, fact)
}

unsure(fact) if fact.untrusted == false

# METADATA
# title: Nobody vouches for a value that decides whom or what the call reaches
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.unvouched",
	"message": "a value that decides whom or what the call reaches stands in nothing that the user said or a trusted source told",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	vouching(c)
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	not data.agenttool.vouching.vouched(c, pointer, fact)
}

# METADATA
# title: The user's words do not call for it
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.dataflow.not_called_for",
	"message": "the user's words do not call for this kind of action",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	vouching(c)
	not data.agenttool.vouching.wanted(c)
}

# METADATA
# title: What can't be undone needs a target that the user named
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.not_named",
	"message": "the call can't be undone or touches credentials, and the user did not name what it reaches",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	vouching(c)
	data.agenttool.vouching.clean(c)
	not data.agenttool.vouching.vouches(c)
}

# METADATA
# title: The configuration has calls vouched for, and nothing else speaks against this one
vouching(c) if {
	c.dataflow.vouch != false
	harmless_values(c)
	not inward(c)
}

# METADATA
# title: Facts of the wrong type
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.unproven",
	"message": "the provenance of the arguments could not be established",
	"type": "safety_check",
} if {
	not readable
}
