"""Questions of running tools to a person, and the context by which a tool asks them."""
