"""Settings of all tests."""

import importlib.util
import os
import sys
from pathlib import Path

# Two processes run tests at once. Threads of NumPy's linear algebra would wait for each other, which takes their time.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("kernelrl", deadline=None)  # a loaded machine is no error
settings.load_profile("kernelrl")

# Files that need machine code for the same types run in the same process: functions that one has compiled are not
# compiled again as parts of what the next compiles.
TOGETHER = {
    "tests/test_interface.py": "tests/test_edited_files.py",
    "tests/theory/test_certificates.py": "tests/test_edited_files.py",
    "tests/envs/test_compiled.py": "tests/test_edited_files.py",
    "tests/test_termination.py": "tests/test_edited_files.py",
    "tests/test_logged_data.py": "tests/test_edited_files.py",
    "tests/test_example_parts.py": "tests/algorithms/test_own_parts_against_naive.py",
}
# The files that take longest, longest first.
LONG = (
    "test_edited_files.py",
    "test_interface.py",
    "theory/test_certificates.py",
    "experiments/test_run.py",
    "test_cache.py",
    "test_soak.py",
    "experiments/test_ray.py",
    "algorithms/test_own_parts_against_naive.py",
    "test_example_parts.py",
    "algorithms/test_exact_against_naive.py",
    "reporting/test_browser.py",
    "algorithms/test_representatives_against_naive.py",
    "experiments/test_learning.py",
    "envs/test_optimal.py",
    "test_recovery.py",
    "reporting/test_report.py",
)


def pytest_collection_modifyitems(config, items):
    """Order the whole suite so that no process begins a long file at the end; files that are named keep their order."""
    if len(config.args) == 1:
        places = {(Path(__file__).parent / name).resolve(strict=True): place for place, name in enumerate(LONG)}
        items.sort(key=lambda item: places.get(item.path, len(LONG)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Hand out whole files, and those of TOGETHER as one."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return TOGETHER.get(file, file)

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="module")
def tank():
    """The module examples/tank.py."""
    file = Path(__file__).resolve().parent.parent / "examples" / "tank.py"
    spec = importlib.util.spec_from_file_location("tank", file)
    module = sys.modules["tank"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tank"]
