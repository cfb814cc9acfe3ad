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
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	harmless_values(c)
	c.dataflow.vouch == false
} else if {
	harmless_values(c)
	reads(c)
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
		data.agenttool.provenance.from_stated_source(c, pointer, fact)
	}
}

# METADATA
# title: The value may be used here
harmless(c, pointer, fact) if {
	data.agenttool.provenance.trusted(c, fact)
	data.agenttool.provenance.kept(c, fact)
} else if {
	is_boolean(fact.untrusted)
	fact.extended == false
	inward(c)
} else if {
	is_boolean(fact.untrusted)
	fact.extended == false
	only_reads(pointer)
} else if {
	is_boolean(fact.untrusted)
	data.agenttool.provenance.carried(c, pointer, fact)
	data.agenttool.provenance.kept(c, fact)
} else if {
	data.agenttool.counterparties.known(c, pointer, fact)
}

# METADATA
# title: The tool neither writes nor sends
inward(c) if {
	data.agenttool.lib.states("access_kinds")
	reads(c)
}

# METADATA
# title: The tool states that it only reads, and no access of another kind
reads(c) if {
	input.tool.read_only == true
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		data.agenttool.lib.holds(c.dataflow.inward_access_kinds, kind, true)
	}
}

# METADATA
# title: The argument is a command that is proven to only read, and to reach no network
# description: |
#   `cat src/app.py` after `ls src`. What a tool may do with other commands says nothing of this one. Whether the place
#   may be read is judged by agenttool.rules.paths.
only_reads(pointer) if {
	input.tool.kind == "shell_command"
	is_array(input.facts.shell)
	lines := [line | some line in input.facts.shell; line.argument == pointer]
	lines != []
	every line in lines {
		line.read_only == true
		line.network == false
		line.executes == false
	}
}

readable if is_object(input.facts.provenance)

# METADATA
# title: A value from elsewhere than the tool's author states
# custom:
#   severity: critical
ask contains {
	"rule": "agenttool.rules.dataflow.other_source",
	"message": concat("", [
		data.agenttool.provenance.argument(pointer),
		" may come from ",
		data.agenttool.provenance.allowed(fact),
		" alone, as sources states, and what is known of it does not show that it does",
	]),
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	not data.agenttool.provenance.from_stated_source(c, pointer, fact)
}

# METADATA
# title: An untrusted value steers a call that writes or sends
# custom:
#   severity: critical
ask contains {
	"rule": "agenttool.rules.dataflow.untrusted_target",
	"message": concat("", [
		data.agenttool.provenance.argument(pointer),
		" decides whom or what the call reaches and stands only in what ",
		data.agenttool.provenance.tools(fact),
		" gave: if nobody else writes there, state open_world=False or result_trust for it",
	]),
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
# title: A line break or control character in a field of one line
# description: What stands behind it would be read as a field of its own, such as another recipient.
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.broken_line",
	"message": concat("", [
		data.agenttool.provenance.argument(pointer),
		" is one line, and has a line break or control character",
	]),
	"type": "safety_check",
} if {
	not inward(data.agenttool.config.effective)
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	fact.broken == true
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
	"message": concat("", [
		data.agenttool.provenance.argument(pointer),
		" holds an untrusted link, or confidential data, that would go to others",
	]),
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	is_object(input.facts.provenance)
	some pointer, fact in input.facts.provenance
	leaves(c, pointer, fact)
}

leaves(c, pointer, fact) if {
	not harmless(c, pointer, fact)
	not data.agenttool.provenance.kept(c, fact)
	settled(c, pointer, fact)
}

leaves(c, pointer, fact) if {
	not harmless(c, pointer, fact)
	input.tool.read_only == true
	inward(c)
	fact.extended == true
}

settled(c, _, fact) if data.agenttool.provenance.trusted(c, fact)

settled(c, pointer, fact) if data.agenttool.provenance.carried(c, pointer, fact)

# METADATA
# title: It is not known where a value that steers such a call came from
# custom:
#   severity: medium
ask contains {
	"rule": "agenttool.rules.dataflow.unknown_source",
	"message": concat("", [
		data.agenttool.provenance.argument(pointer),
		" decides whom or what the call reaches and may come from untrusted output",
	]),
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
	"message": concat("", [
		data.agenttool.provenance.argument(pointer),
		" decides whom or what the call reaches and stands in nothing that the user said of it or a trusted source",
		" gave: state result_trust for its source, list it in settings.counterparties, or name it in inert_args",
	]),
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
	"message": "the user's words do not call for this kind of action: verbs states further words for what the tool does",
	"type": "safety_check",
} if {
	c := data.agenttool.config.effective
	vouching(c)
	not data.agenttool.vouching.wanted(c)
}

# METADATA
# title: It was not looked up where the call's values came from
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.untraced",
	"message": "where the call's values came from was not looked up: the session needs an id and the user's words",
	"type": "safety_check",
} if {
	vouching(data.agenttool.config.effective)
	not data.agenttool.provenance.traced
}

# METADATA
# title: Nothing in the call says whom or what it reaches
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.no_target",
	"message": "no argument says whom or what the call reaches: name in inert_args those that decide nothing",
	"type": "safety_check",
} if {
	vouching(data.agenttool.config.effective)
	data.agenttool.provenance.traced
	not data.agenttool.provenance.aimed
}

# METADATA
# title: What can't be undone needs a target that the user named
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.dataflow.not_named",
	"message": "nobody stated that the call can be undone, or it touches credentials, and the user did not name what it reaches",
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
	not reads(c)
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
