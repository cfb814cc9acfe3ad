# METADATA
# title: What is known of where a value came from, and where it goes
# description: What the rules on data flow and the calls that the user's words account for both ask of a value.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.provenance

# METADATA
# title: It was looked up where every text and number of the call came from
traced if input.facts.traced == true

# METADATA
# title: Some argument says whom or what the call reaches, or the call has none that could
aimed if input.facts.aimed == true

# METADATA
# title: The argument that a pointer leads into
# description: What lies below it may be keys that a model made up.
argument(pointer) := name if {
	parts := split(pointer, "/")
	count(parts) > 1
	name := concat("", ["/", parts[1]])
} else := "an argument"

# METADATA
# title: The stated sources of a value, as a text
allowed(fact) := concat(", ", [word | some word in fact.allowed; is_string(word)]) if {
	is_array(fact.allowed)
} else := "its stated sources"

# METADATA
# title: The tools whose output has a value
tools(fact) := concat(", ", sort(found)) if {
	is_object(fact)
	is_array(fact.sources)
	found := {tool |
		some source in fact.sources
		is_string(source)
		startswith(source, "tool:")
		tool := substring(source, 5, -1)
	}
	count(found) > 0
} else := "untrusted output"

# METADATA
# title: The value stands in a source that the tool's author stated for its argument, as it was seen there
listed(fact) if {
	fact.sourced == "listed"
	fact.extended == false
	fact.broken == false
}

# METADATA
# title: The value comes from where the tool's author lets it come from
# description: Where nothing is stated, any source may have it.
from_stated_source(c, pointer, fact) if {
	fact.sourced in {"unstated", "listed"}
} else if {
	data.agenttool.counterparties.known(c, pointer, fact)
}

# METADATA
# title: It is certain that the value was not seen only in untrusted output, or its source is a stated one
trusted(c, fact) if {
	fact.sourced == "unstated"
	fact.untrusted == false
	fact.certain == true
	fact.broken == false
	not_guessed(c, fact)
} else if {
	listed(fact)
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
	# a link of a stated source is where the call is meant to go
	listed(fact)
	fact.private == []
} else if {
	stays(c)
} else if {
	fact.link == false
	is_array(fact.private)
	count(targets) > 0
	every target in targets {
		may_have(target, fact)
	}
}

# METADATA
# title: Nobody else gets what the call carries
# description: No access kinds at all say so only where somebody stated that there are none.
stays(c) if {
	data.agenttool.lib.states("access_kinds")
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
# title: The value is only carried, it does not steer the call
carried(c, pointer, fact) if {
	fact.role == "content"
	fact.broken == false
	is_array(input.facts.paths)
	is_array(input.facts.urls)
	is_array(input.facts.shell)
	is_array(input.facts.sql)
	not pointer in steering_pointers
	every segment in split(lower(pointer), "/") {
		plain(c, segment)
	}
}

steering_pointers contains fact.argument if some fact in input.facts.paths

steering_pointers contains fact.argument if some fact in input.facts.urls

steering_pointers contains fact.argument if some fact in input.facts.shell

steering_pointers contains fact.argument if some fact in input.facts.sql

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
