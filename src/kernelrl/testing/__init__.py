"""Checks for users' own environments and agents. This package's own tests use them, too.

    krl.testing.check_environment(env)        # any Gymnasium environment, compiled or not
    krl.testing.check_agent(make_agent)       # `make_agent()` makes a new agent, with the same settings each time

Both return None, or raise an error that says what is wrong and how to fix it. `AGENT_CHECKS` has the single checks of
`check_agent` by name, for `pytest.mark.parametrize`.
"""

from kernelrl.testing.agents import AGENT_CHECKS, check_agent
from kernelrl.testing.environments import check_environment

__all__ = ["AGENT_CHECKS", "check_agent", "check_environment"]
