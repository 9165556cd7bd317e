"""Values of other libraries, and formats of media. No other library is imported to read them."""
