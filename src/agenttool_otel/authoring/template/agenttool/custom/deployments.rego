# METADATA
# title: Deployments
# description: |
#   When this project's tools may deploy. Which tools deploy, and on which days nothing is deployed, lies in data.json
#   beside this file. Messages are fixed words, because they go to telemetry.
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom

# METADATA
# title: Nothing is deployed on a frozen day
# description: |
#   What is negated is a proof, so a missing or broken list of days is a frozen day too. A time that can't be read is an
#   error, and an error denies the call.
# custom:
#   severity: high
deny contains {
	"rule": "custom.deployments.frozen_day",
	"message": "nothing is deployed on a frozen day",
} if {
	deploys
	not open_day
}

# METADATA
# title: The call is a deployment
deploys if {
	some pattern in data.agenttool.custom.deployments.tools
	data.agenttool.lib.is_called(pattern)
}

# METADATA
# title: The day of the decision (UTC) is known, and none of the frozen ones
open_day if {
	day := time.weekday(time.parse_rfc3339_ns(input.time))
	is_array(data.agenttool.custom.deployments.frozen_days)
	every frozen in data.agenttool.custom.deployments.frozen_days {
		day != frozen
	}
}
