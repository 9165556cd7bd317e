"""The store: runs, approvals and the history of calls, kept in a database."""
