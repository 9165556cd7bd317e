"""Who may call, and what each client sees: profiles with tokens of a file, or by scopes of an authorization server."""
