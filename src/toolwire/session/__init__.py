"""Sessions: a toolkit, a protocol and rules, combined for talking to a model."""
