# METADATA
# title: A package of rules that has no rule "clear", for tests of how such a one is asked
package agenttool.rules.unproven

deny contains "a finding" if data.agenttool.fixture == "deny"

ask contains "a finding" if data.agenttool.fixture == "ask"
