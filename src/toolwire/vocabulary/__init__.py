"""The words every layer shares: calls, results, content, errors, values. Standard library only."""
