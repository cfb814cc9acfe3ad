# METADATA
# title: Where a call reads and writes
# description: |
#   Reading inside the session's roots is allowed; outside of them it is asked about, writing there is denied, and
#   a sensitive place (keys, credentials, system files, the package's own policy) is denied wherever it lies. A
#   path whose meaning is not certain is never allowed. The places of shell commands are judged like path arguments.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.rules.paths

# METADATA
# title: The package has proven that it has nothing to say
# description: The decision looks at the findings of every package of agenttool.rules where this is not true.
default clear := false

clear if no_findings(data.agenttool.config.effective)

# METADATA
# title: Nothing here to ask or deny
no_findings(c) if {
	facts == []
	nothing_undeclared
} else if {
	facts != []
	every fact in facts {
		usable(fact)
		inside_roots(fact)
		harmless(c, fact)
		reads(fact)
	}
}

# METADATA
# title: No text of the call looks like a path that nobody took for one
# description: |
#   Only for tools of kind file_operation. The call's facts name what is known to be a path; a file tool that
#   is given one in another argument has to declare it (path_args).
nothing_undeclared if no_file_tool

nothing_undeclared if {
	may_be_file_tool
	is_object(input.input)
	undeclared == set()
}

# METADATA
# title: The tool's kind does not rule out that it works on files, and none is known
# description: The first statement of whatever reads the texts, so that all other decisions do not depend on them.
may_be_file_tool if {
	not no_file_tool
	facts == []
}

no_file_tool if {
	is_string(input.tool.kind)
	input.tool.kind != "file_operation"
}

undeclared contains value if {
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
inside_roots(fact) if {
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
# title: Some place lies outside of the roots, or is written outside of any
# description: |
#   Each is the first statement of what looks at the names of such places, so that decisions about all others do not
#   depend on them.
some_outside if {
	some fact in facts
	not inside_roots(fact)
}

some_unrooted_write if {
	some fact in facts
	not reads(fact)
	not inside(fact)
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
# description: Those of the path arguments, and those of every place that a shell command touches.
facts := array.concat(input.facts.paths, shell_places) if is_array(input.facts.paths)

shell_places := [path_of(place) |
	some fact in data.agenttool.rules.shell.facts
	some command in data.agenttool.rules.shell.commands_of(fact)
	some place in data.agenttool.rules.shell.places_of(command)
]

# METADATA
# title: Where a place lies
# description: |
#   What has no usable path can't be proven to lie anywhere. That a file is there, and how large it is, is no secret
#   inside the roots: only what it holds may be one.
path_of(place) := object.union(place.path, {"sensitive": null}) if {
	place.operation in {"list", "enter"}
	place.path.inside == true
} else := place.path if {
	is_object(place.path)
} else := {}

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
	some_outside
	some fact in facts
	input.session.roots != []
	not inside_roots(fact)
	not reads(fact)
	not temporary(data.agenttool.config.effective, fact)
	finding := blocked("write_outside", "the path to write lies outside of the session's roots", fact)
}

# METADATA
# title: Writing to the temporary directory
# custom:
#   severity: medium
ask contains finding if {
	some_outside
	some fact in facts
	input.session.roots != []
	not inside_roots(fact)
	not reads(fact)
	temporary(data.agenttool.config.effective, fact)
	finding := blocked("write_temporary", "the call writes to the temporary directory", fact)
}

# METADATA
# title: The path lies in a directory for temporary files, by its text and in the file system
temporary(c, fact) if {
	fact.escapes == false
	below_temporary(c, fact.lexical)
	below_temporary(c, fact.resolved)
}

below_temporary(c, path) if {
	some directory, chosen in c.paths.temporary
	chosen == true
	is_string(path)
	startswith(path, concat("", [directory, "/"]))
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
	some_outside
	some fact in facts
	not inside_roots(fact)
	reads(fact)
	not temporary(data.agenttool.config.effective, fact)
	finding := blocked("read_outside", "the path to read lies outside of the session's roots", fact)
}

# METADATA
# title: Reading in the temporary directory
# custom:
#   severity: medium
ask contains finding if {
	some_outside
	some fact in facts
	not inside_roots(fact)
	reads(fact)
	temporary(data.agenttool.config.effective, fact)
	finding := blocked("read_temporary", "the path to read lies in the temporary directory", fact)
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
	some_unrooted_write
	some fact in facts
	not reads(fact)
	not inside(fact)
	not temporary(data.agenttool.config.effective, fact)
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
	facts == []
	not nothing_undeclared
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
	facts != []
	no_findings(data.agenttool.config.effective)
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
