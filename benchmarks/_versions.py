"""Two versions of the package: the working tree, and a commit in its own worktree."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def versions(commit):
    """The source folders by name: "now" and, if a commit is given, "before"."""
    with contextlib.ExitStack() as stack:
        found = {}
        if commit:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "before"
            subprocess.run(["git", "worktree", "add", "-q", "--detach", folder, commit], cwd=ROOT, check=True)
            stack.callback(subprocess.run, ["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)
            found["before"] = folder / "src"
        yield found | {"now": ROOT / "src"}


def run(code, source, cache):
    """What a process that runs `code` with that version prints last, as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None
