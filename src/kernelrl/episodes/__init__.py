"""The episode loop: the verbs of algorithms, and the adapter for any Gymnasium environment."""
