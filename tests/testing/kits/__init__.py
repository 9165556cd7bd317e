"""Conformance kits for the ports that only toolwire implements."""
