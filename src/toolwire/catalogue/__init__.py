"""The catalogue: registered tools by name, groups, search, and the selection that a caller sees."""
