# METADATA
# title: Effective configuration
# description: |
#   The stock defaults (data.agenttool.defaults), overridden member by member by the user's own
#   data.agenttool.settings, and by the preset in force on top of both. Undefined, and so never an allow,
#   when the preset or the settings are not usable.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.config

# METADATA
# title: Settings and preset applied
# description: Without settings and with the balanced preset, the defaults are the configuration; nothing is merged.
effective := data.agenttool.defaults if {
	not data.agenttool.settings
	not data.agenttool.defaults.modes[input.session.mode]
	data.agenttool.defaults.preset == "balanced"
} else := object.union(base, overlay)

# METADATA
# title: Name of the preset in force
# description: A session's mode chooses it where the configuration maps that mode, else the configuration does.
preset := name if {
	name := base.modes[input.session.mode]
	is_string(name)
} else := base.preset

# METADATA
# title: Defaults with the user's settings
base := object.union(data.agenttool.defaults, settings)

# METADATA
# title: The user's settings
# description: Settings of the wrong type leave the configuration undefined, and so never an allow.
settings := data.agenttool.settings if {
	is_object(data.agenttool.settings)
} else := {} if {
	not data.agenttool.settings
}

# METADATA
# title: What the preset changes
# description: An unknown preset leaves the configuration undefined, and so never an allow.
overlay := base.presets[preset]
