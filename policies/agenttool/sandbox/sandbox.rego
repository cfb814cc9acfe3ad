# METADATA
# title: Questions that enforcement answers
# description: |
#   A question about what a program may do needs nobody where the kernel holds the program. The table sandbox.answers
#   has the weakest profile for each such question. A call is held only where it answers every open question; what
#   must not happen at all stays denied. After a rehearsal its effects are judged, and the questions about what the
#   words might do are not asked again (sandbox.rehearsed).
# scope: package
# schemas:
#   - input: schema.input
package agenttool.sandbox

# METADATA
# title: The tool runs commands
# description: |
#   A function that states that it writes is no command, and would only fail where it is held. Each rule that looks at
#   what this host has proven begins with this line: so the runtime proves nothing for the calls of all other tools.
for_commands if input.tool.kind == "shell_command"

# METADATA
# title: The call may be one that is held
# description: |
#   Not after a rehearsal. Looked at first, so that no other call walks through its questions: the machine of the
#   embedded engine runs 25,000 instructions.
can_be_held if {
	for_commands
	is_array(input.execution.sandboxes)
	input.execution.sandboxes != []
	is_array(input.facts.shell)
	input.facts.shell != []
	roots_stated
	not data.agenttool.rules.effects.present
}

# METADATA
# title: Questions that a profile answers here
# description: |
#   Empty where this host has not proven the profile, and after a rehearsal. Sets, made once: a decision has several
#   questions, and several rules look at each.
held_questions := read_questions | rehearse_questions

read_questions contains rule if {
	can_be_held
	proven("read")
	is_object(data.agenttool.config.effective.sandbox.answers)
	some rule, "read" in data.agenttool.config.effective.sandbox.answers
}

rehearse_questions contains rule if {
	can_be_held
	proven("rehearse")
	is_object(data.agenttool.config.effective.sandbox.answers)
	some rule, "rehearse" in data.agenttool.config.effective.sandbox.answers
}

# METADATA
# title: Keys and credentials beside the code are masked
# description: They are looked for below the session's roots; where none is stated, a checkout's .env could be read.
roots_stated if {
	is_array(input.session.roots)
	input.session.roots != []
}

# METADATA
# title: This host has proven the profile for this very body
proven(profile) if {
	for_commands
	is_array(input.execution.sandboxes)
	profile in input.execution.sandboxes
}

# METADATA
# title: The command was rehearsed, and all of its effects are known
# description: |
#   The runtime alone writes facts and execution; a caller states neither. Both have to be there, so that an input with
#   effects of a body that can't be rehearsed answers nothing.
rehearsed if {
	for_commands
	proven("rehearse")
	is_object(input.facts.effects)
	input.facts.effects.complete == true
	input.facts.shell == []
	input.invocation.preflight == false
}

# METADATA
# title: Questions that a rehearsal has answered
waived contains rule if {
	rehearsed
	is_object(data.agenttool.config.effective.sandbox.rehearsed)
	some rule, yes in data.agenttool.config.effective.sandbox.rehearsed
	yes == true
}

# METADATA
# title: Questions about whose wish it was, where the command has changed nothing and tried to reach nothing
waived contains rule if {
	rehearsed
	changed_nothing
	is_object(data.agenttool.config.effective.sandbox.unchanged)
	some rule, yes in data.agenttool.config.effective.sandbox.unchanged
	yes == true
}

changed_nothing if {
	is_array(input.facts.effects.paths)
	every path in input.facts.effects.paths {
		path.noise == true
	}
	input.facts.effects.connections == []
	input.facts.effects.counts.connections == 0
	input.facts.effects.counts.owner == 0
}

# METADATA
# title: What a held call is allowed by
# description: One for each profile that answers a question; the strictest of them holds.
findings := {
	"read": {
		"rule": "agenttool.sandbox.read",
		"message": "the call is held so that it changes nothing and reaches no network",
		"obligations": {"sandbox": {"profile": "read", "network": "none"}},
	},
	"rehearse": {
		"rule": "agenttool.sandbox.rehearse",
		"message": "the command is rehearsed, and its effects are decided before they are kept",
		"obligations": {"sandbox": {"profile": "rehearse", "network": "none"}},
	},
}
