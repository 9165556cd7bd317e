"""Names to tools: what exists, and what of it can be seen."""
