"""The types that all layers share: calls, results, content, errors, values. Uses the standard library only."""
