"""The process below the values: system calls, gates, and the clock of a tool's work."""
