"""A toolkit, a protocol and rules put together to talk to a model."""
