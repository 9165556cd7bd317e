"""What operators see of calls: OpenTelemetry spans and metrics by the GenAI conventions. An export, not the truth."""
