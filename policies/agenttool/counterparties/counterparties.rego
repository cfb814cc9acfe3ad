# METADATA
# title: Whom a call may reach without a question
# description: |
#   Contacts and accounts that the configuration lists, that a declared tool told (an address book), or that a person
#   approved in this session. An entry is one address, account or name, compared without case and spaces; "@example.org"
#   stands for every address of that domain.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.counterparties

# METADATA
# title: The value at a pointer, with its provenance, is a known counterparty
known(c, pointer, fact) if {
	unbroken(fact)
	may_be_one(fact)
	approved(c, pointer)
}

known(c, pointer, fact) if {
	unbroken(fact)
	may_be_one(fact)
	listed(c, pointer)
}

known(c, _, fact) if {
	unbroken(fact)
	may_be_one(fact)
	told(c, fact)
}

# METADATA
# title: The tool's author lets the value be a counterparty
# description: Where sources are stated of the argument, these have to say so.
may_be_one(fact) if {
	fact.sourced == "unstated"
} else if {
	"counterparties" in fact.allowed
}

# METADATA
# title: The value is one line where one is meant
unbroken(fact) if {
	is_object(fact)
	object.get(fact, "broken", false) == false
}

# METADATA
# title: A person approved a call that reached it, in this session
approved(c, pointer) if {
	c.counterparties.approved == true
	pointer in input.facts.approved
}

# METADATA
# title: The configuration lists it
listed(c, pointer) if {
	any_listed
	some entry in array.concat(c.counterparties.known, c.counterparties.own)
	same(entry, value_at(pointer))
}

# METADATA
# title: It is the user's own
own(c, pointer) if {
	any_listed
	some entry in c.counterparties.own
	same(entry, value_at(pointer))
}

# METADATA
# title: Some counterparty is listed
# description: |
#   Reads the bundle's data and the session's mode alone, and is the first statement of whatever reads the arguments:
#   without any list a decision does not depend on them.
any_listed if not none_listed

none_listed if {
	data.agenttool.config.effective.counterparties.known == []
	data.agenttool.config.effective.counterparties.own == []
}

# METADATA
# title: All of it stands in what the declared tools told
# description: A value that only other tools' output holds in part is not.
told(c, fact) if {
	fact.certain == true
	fact.untrusted == false
	not "unknown" in fact.sources
	some source in fact.sources
	declared_source(c, source)
} else if {
	count(fact.sources) > 0
	every source in fact.sources {
		declared_source(c, source)
	}
}

declared_source(c, source) if {
	startswith(source, "tool:")
	some pattern in c.counterparties.source_tools
	glob.match(pattern, null, substring(source, 5, -1))
}

# METADATA
# title: An entry of a list is this value
# description: Only a text is; at a pointer to a key there is none.
same(entry, value) if {
	is_string(value)
	not startswith(entry, "@")
	plain(entry) == plain(value)
} else if {
	is_string(value)
	startswith(entry, "@")
	regex.match(`^[^\s,;<>"@]+@[^\s,;<>"@]+$`, value)
	endswith(lower(value), lower(entry))
}

plain(value) := concat("", split(lower(value), " "))

value_at(pointer) := object.get(input.input, path, null) if {
	path := [step(segment) | some index, segment in split(pointer, "/"); index > 0]
}

step(segment) := to_number(segment) if {
	regex.match(`^(0|[1-9][0-9]{0,5})$`, segment)
} else := concat("~", split(concat("/", split(segment, "~1")), "~0"))
