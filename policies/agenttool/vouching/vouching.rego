# METADATA
# title: Calls that the user's words account for
# description: |
#   Where the configuration says so (dataflow.vouch, the preset assistant), a call that writes or sends runs without a
#   question when the user's words call for it and everything that decides whom or what it reaches is vouched for: by
#   the user, by a trusted source, by a record, or as a known counterparty. What can't be undone, and credentials, need
#   a target that the user named.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.vouching

# METADATA
# title: The call needs no question about its writing or sending
vouches(c) if {
	clean(c)
	mild(c)
} else if {
	clean(c)
	named(c)
	input.facts.intent.called_for == true
}

# METADATA
# title: Questions that this answers
waived contains rule if {
	c := data.agenttool.config.effective
	vouches(c)
	some rule, yes in c.dataflow.vouched_rules
	yes == true
}

# METADATA
# title: All values are vouched for, and the user asked for something like it
# description: |
#   Only where all values were looked up and there is a target: a rule about every value holds of none, too.
clean(c) if {
	c.dataflow.vouch == true
	data.agenttool.provenance.traced
	data.agenttool.provenance.aimed
	is_object(input.facts.provenance)
	every pointer, fact in input.facts.provenance {
		vouched(c, pointer, fact)
	}
	wanted(c)
}

# METADATA
# title: The value is vouched for
vouched(c, pointer, fact) if {
	stated(c, fact)
	data.agenttool.provenance.kept(c, fact)
} else if {
	data.agenttool.provenance.carried(c, pointer, fact)
	data.agenttool.provenance.kept(c, fact)
} else if {
	data.agenttool.counterparties.known(c, pointer, fact)
} else if {
	fact.role == "bounded"
	bounded(c, fact)
} else if {
	# an id that stands nowhere was not told by anybody; it can name no stranger
	fact.made_up_id == true
	fact.certain == true
	input.facts.intent.called_for == true
}

# METADATA
# title: How much or how many is as harmless as the target
# description: A number that stands nowhere is the model's own; one from untrusted output needs a target that is known.
bounded(c, fact) if {
	fact.untrusted == false
	fact.certain == true
	fact.broken == false
} else if {
	some target in data.agenttool.provenance.targets
	stated(c, target)
}

stated(c, fact) if {
	data.agenttool.provenance.trusted(c, fact)
	fact.trust in {"user", "trusted", "record", "inferred"}
} else if {
	data.agenttool.provenance.listed(fact)
}

# METADATA
# title: The user asked for something like it
# description: By words for what the tool does, by naming all that it reaches, or by handing over to what a source says.
wanted(_) if input.facts.intent.called_for == true

wanted(_) if input.facts.intent.delegated == true

wanted(c) if {
	input.facts.intent.called_for == false
	named(c)
}

# METADATA
# title: A classifier is sure that the user's words want the call
# description: |
#   It counts for what can be undone alone, and for no payment or credential: the value of every argument is vouched
#   for without it.
wanted(c) if {
	input.facts.intent.classified == true
	input.facts.intent.called_for == false
	mild(c)
	every kind in input.permission_profile.access_kinds {
		object.get(c.dataflow.never_classified, kind, false) == false
	}
}

# METADATA
# title: The user named whom or what the call reaches
named(c) if {
	count(data.agenttool.provenance.targets) > 0
	every pointer, fact in input.facts.provenance {
		named_or_carried(c, pointer, fact)
	}
}

named_or_carried(c, pointer, fact) if {
	fact.trust == "user"
	fact.certain == true
	fact.broken == false
} else if {
	fact.role != "target"
	vouched(c, pointer, fact)
} else if {
	fact.broken == false
	data.agenttool.counterparties.approved(c, pointer)
}

# METADATA
# title: What the call does can be undone
# description: As somebody stated; of a writing tool that states no effects nobody knows.
mild(c) if {
	input.tool.destructive == false
	data.agenttool.lib.states("access_kinds")
	data.agenttool.lib.states("write_effects")
	is_array(input.permission_profile.write_effects)
	count(input.permission_profile.write_effects) > 0
	every effect in input.permission_profile.write_effects {
		data.agenttool.lib.holds(c.dataflow.mild, effect, true)
	}
	is_array(input.permission_profile.access_kinds)
	every kind in input.permission_profile.access_kinds {
		data.agenttool.lib.holds(c.dataflow.mild, kind, true)
	}
}
