"""What may stand around the execution of a call: an onion of functions, and those that come with toolwire."""
