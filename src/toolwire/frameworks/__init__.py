"""toolwire's tools inside the agents of other frameworks, with an adapter each."""
