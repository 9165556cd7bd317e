"""Texts: cuts, lone surrogates, normal forms and invisible characters."""
