"""Agents: a model, tools and a conversation."""
