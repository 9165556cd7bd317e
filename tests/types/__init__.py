"""User code passes the type checkers in strict mode."""
