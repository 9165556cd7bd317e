"""Texts: how they are cut, encoded and laid out."""
