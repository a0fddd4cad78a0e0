"""The episode loop: the verbs of algorithms, and any Gymnasium environment behind the verbs of ours."""
