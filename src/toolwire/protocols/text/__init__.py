"""The parts that the text formats share: the class of their protocols, the texts of prompts, and Python source."""
