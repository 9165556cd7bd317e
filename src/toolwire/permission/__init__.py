"""What may run, unasked or asked."""
