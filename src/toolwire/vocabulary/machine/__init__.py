"""The process: the operating system, gates, and the clock of a tool's work."""
