"""Settings of all tests."""

import os
from pathlib import Path

# Two processes run tests at once. Threads of NumPy's linear algebra would wait for each other, which takes their time.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402

settings.register_profile("kernelrl", deadline=None)  # a loaded machine is no error
settings.load_profile("kernelrl")

# The files that take longest, longest first. Those that need the same machine code are apart, or both processes would
# compile it.
LONG = (
    "experiments/test_run.py",
    "test_edited_files.py",
    "test_cache.py",
    "test_interface.py",
    "theory/test_certificates.py",
    "test_soak.py",
    "experiments/test_ray.py",
    "algorithms/test_own_parts_against_naive.py",
    "algorithms/test_exact_against_naive.py",
    "reporting/test_browser.py",
    "algorithms/test_representatives_against_naive.py",
    "test_example_parts.py",
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
