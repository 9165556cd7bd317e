"""The channel between a program's process and the host: frames as bytes and as values, checked as hostile input."""
