"""Agent Tool v0.2.0 as an OpenTelemetry instrumentation and OPA policy plugin."""
