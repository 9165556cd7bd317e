"""Middleware around the execution of a call: an onion of functions, and the ones that toolwire provides."""
