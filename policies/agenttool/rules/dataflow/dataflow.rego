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
	trusted(fact)
} else if {
	is_boolean(fact.untrusted)
	inward(c)
} else if {
	is_boolean(fact.untrusted)
	carried(c, pointer)
} else if {
	data.agenttool.counterparties.known(c, pointer, fact)
}

# METADATA
# title: It is certain that the value was not seen only in untrusted output
trusted(fact) if {
	fact.untrusted == false
	fact.certain == true
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
carried(c, pointer) if {
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
	"message": "a value from untrusted output decides whom or what the call reaches",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	not harmless(c, pointer, fact)
	not unsure(fact)
}

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
}

unsure(fact) if fact.untrusted == false

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
