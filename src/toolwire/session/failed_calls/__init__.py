"""The right forms of calls that failed, for the model to read below the errors."""
