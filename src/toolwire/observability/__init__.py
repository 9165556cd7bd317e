"""OpenTelemetry spans and metrics of calls by the GenAI conventions.

They are an export; the ledger and the log are the record.
"""
