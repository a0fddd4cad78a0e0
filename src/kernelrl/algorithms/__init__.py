"""One file an algorithm, each with the verbs of `interface`."""
