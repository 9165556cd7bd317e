"""Tools that come with toolwire."""
