"""Settings of all tests."""

import os

# Two processes run tests at once. Threads of NumPy's linear algebra would wait for each other, which takes their time.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402

settings.register_profile("kernelrl", deadline=None)  # a loaded machine is no error
settings.load_profile("kernelrl")
