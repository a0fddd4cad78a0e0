import pytest

from kernelrl.envs import optimal


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    """A cache of optimal values of a module's own."""
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("cache")
    patch.setattr(optimal, "cache_dir", lambda: folder / "code")
    patch.setattr(optimal, "SOLVED", {})
    yield
    patch.undo()
