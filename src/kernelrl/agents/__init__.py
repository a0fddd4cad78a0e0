"""The Python side of agents: hyper-parameters, checks, fitting, files, read-outs."""
