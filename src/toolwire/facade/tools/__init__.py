"""Tools as users define, hold and register them."""
