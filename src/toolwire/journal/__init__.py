"""What happened: the history of calls, for reading."""
