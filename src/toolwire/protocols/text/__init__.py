"""The parts that the text formats share: the class of their protocols, the texts of their prompts, and Python source."""
