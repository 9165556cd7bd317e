"""Commands about the Model Context Protocol."""
