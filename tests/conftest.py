"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("kernelrl", deadline=None)  # a loaded machine is no error
settings.load_profile("kernelrl")
