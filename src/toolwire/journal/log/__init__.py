"""The log of calls, in memory and in a store: events, their chain, redaction and search."""
