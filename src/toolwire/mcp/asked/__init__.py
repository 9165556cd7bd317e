"""What a server asks while it works on a call: questions to a person, its tasks, and features of the client."""
