"""Permission: rules that run, deny or confirm calls, and requests to a person."""
