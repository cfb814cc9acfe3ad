# METADATA
# title: Where a call reads and writes
# description: |
#   Reading inside the session's roots is allowed; outside of them it is asked about, writing there is denied, and
#   a sensitive place (keys, credentials, system files, the package's own policy) is denied wherever it lies. A
#   path whose meaning is not certain is never allowed.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.paths

# METADATA
# title: Nothing here to ask or deny
clear(c) if {
	input.facts.paths == []
	told
} else if {
	is_array(input.facts.paths)
	input.facts.paths != []
	every fact in input.facts.paths {
		usable(fact)
		placed(fact)
		harmless(c, fact)
		reads(fact)
	}
}

# METADATA
# title: No text of the call looks like a path that nobody took for one
# description: |
#   Only for tools of kind file_operation. The call's facts name what is known to be a path; a file tool that
#   is given one in another argument has to declare it (path_args).
told if {
	is_string(input.tool.kind)
	input.tool.kind != "file_operation"
}

told if {
	is_object(input.input)
	untold == set()
}

untold contains value if {
	some value in data.agenttool.lib.texts
	names_a_place(value)
}

names_a_place(text) if regex.match(`^[/~.]|^[^ \n]*[/\\]`, text)

# METADATA
# title: The path means one thing
usable(fact) if {
	fact.rejected == null
	fact.certain == true
	is_string(fact.lexical)
	is_string(fact.resolved)
	fact.encoded == false
	fact.confusable == false
	fact.variables == false
	fact.windows == []
}

# METADATA
# title: The path lies where the session works
placed(fact) if {
	inside(fact)
} else if {
	input.session.roots == []
	fact.escapes == false
}

inside(fact) if {
	fact.inside == true
	fact.escapes == false
	is_array(input.session.roots)
	input.session.roots != []
}

# METADATA
# title: The path is no sensitive place
harmless(c, fact) if {
	fact.sensitive == null
} else if {
	reads(fact)
	c.paths.sensitive[fact.sensitive].read == "allow"
} else if {
	not reads(fact)
	c.paths.sensitive[fact.sensitive].write == "allow"
}

# METADATA
# title: The path is only read
reads(fact) if {
	fact.access == "read"
} else if {
	fact.access == "unknown"
	input.tool.read_only == true
}

# METADATA
# title: The facts about paths
facts := input.facts.paths if is_array(input.facts.paths)

# METADATA
# title: Not a path at all
# custom:
#   severity: high
deny contains {
	"rule": "agenttool.rules.paths.rejected",
	"message": "an argument is not a usable path",
} if {
	some fact in facts
	is_string(fact.rejected)
}

# METADATA
# title: A link leads out of the roots
# custom:
#   severity: high
deny contains finding if {
	some fact in facts
	fact.escapes == true
	finding := blocked("escapes", "the path leaves the session's roots through a link", fact)
}

# METADATA
# title: A sensitive place
# custom:
#   severity: critical
deny contains finding if {
	some fact in facts
	forbidden(data.agenttool.config.effective, fact)
	finding := blocked("sensitive", "the path is a sensitive place", fact)
}

# METADATA
# title: Writing outside of the roots
# custom:
#   severity: high
deny contains finding if {
	some fact in facts
	input.session.roots != []
	not placed(fact)
	not reads(fact)
	finding := blocked("write_outside", "the path to write lies outside of the session's roots", fact)
}

# METADATA
# title: A sensitive place that needs a person's agreement
# custom:
#   severity: high
ask contains finding if {
	c := data.agenttool.config.effective
	some fact in facts
	not harmless(c, fact)
	not forbidden(c, fact)
	finding := blocked("sensitive_place", "the path is a place that is asked about", fact)
}

# METADATA
# title: A path whose meaning is not certain
# custom:
#   severity: high
ask contains finding if {
	some fact in facts
	not usable(fact)
	finding := blocked("uncertain", "it is not certain where the path leads", fact)
}

# METADATA
# title: Reading outside of the roots
# custom:
#   severity: medium
ask contains finding if {
	some fact in facts
	not placed(fact)
	reads(fact)
	finding := blocked("read_outside", "the path to read lies outside of the session's roots", fact)
}

# METADATA
# title: Writing inside the roots
# custom:
#   severity: medium
ask contains finding if {
	some fact in facts
	not reads(fact)
	inside(fact)
	finding := blocked("write_inside", "the call writes inside the session's roots", fact)
}

# METADATA
# title: Writing in a session that has no roots
# custom:
#   severity: high
ask contains finding if {
	some fact in facts
	not reads(fact)
	not inside(fact)
	finding := blocked("write_unrooted", "the call writes outside of any root", fact)
}

# METADATA
# title: Writing to a file with a second name
# description: A hard link lets a write inside the roots change a file outside of them.
# custom:
#   severity: high
ask contains finding if {
	some fact in facts
	not reads(fact)
	not one_name(fact)
	finding := blocked("hard_link", "the file to write has other names", fact)
}

# METADATA
# title: A file tool without a known path
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.paths.undeclared",
	"message": "the file tool's path is in an argument that is not known to be one; declare it in path_args",
} if {
	input.facts.paths == []
	not told
}

# METADATA
# title: Facts of the wrong type
# custom:
#   severity: high
ask contains {
	"rule": "agenttool.rules.paths.unproven",
	"message": "the paths of the call could not be established",
} if {
	not facts
}

# METADATA
# title: Paths that may be read
allow contains allowed if {
	input.facts.paths != []
	clear(data.agenttool.config.effective)
}

# METADATA
# title: The answer for paths that may be read
allowed := {
	"rule": "agenttool.rules.paths.read_inside",
	"message": "the paths may be read",
	"type": "working_dir",
}

# METADATA
# title: The configuration denies the place
forbidden(c, fact) if {
	reads(fact)
	c.paths.sensitive[fact.sensitive].read == "deny"
} else if {
	not reads(fact)
	c.paths.sensitive[fact.sensitive].write == "deny"
}

one_name(fact) if fact.hard_links == null

one_name(fact) if {
	is_number(fact.hard_links)
	fact.hard_links <= 1
}

# METADATA
# title: A finding about one path
blocked(name, message, fact) := {
	"rule": concat(".", ["agenttool.rules.paths", name]),
	"message": message,
	"type": "working_dir",
	"blocked_path": lexical(fact),
}

lexical(fact) := fact.lexical if {
	is_string(fact.lexical)
} else := null
