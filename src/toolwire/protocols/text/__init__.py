"""What the text formats share: the class of their protocols, and the texts of their prompts."""
