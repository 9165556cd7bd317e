"""Values of other libraries, which toolwire does not import."""
