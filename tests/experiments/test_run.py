"""`kernelrl run`: the same results whatever happens on the way, and clear words where something cannot be done."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from experiment_parts import GREEDY, RANDOM, call, command, environment, start, table, tripping, wait_for, write_toml
from kernelrl import experiments
from kernelrl.experiments import lock as locking
from kernelrl.experiments.local import LocalEngine
from kernelrl.experiments.lock import FolderLock


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An experiment that takes some seconds, in an environment that runs in Python, and its undisturbed results.

    The results do not depend on the pauses.
    """
    folder = tmp_path_factory.mktemp("whole")
    quick = write_toml(folder / "quick.toml", RANDOM + GREEDY, episodes=120, seeds=1, pause=0.0)
    assert experiments.run(quick, folder / "out", workers=2).finished
    file = write_toml(folder / "slow.toml", RANDOM + GREEDY, episodes=120, seeds=1, pause=0.001)
    return file, table(folder / "out")


def stored(out: Path) -> int:
    """How many episodes of Greedy there are by now."""
    return sum(run.episodes for run in experiments.open_store(out).runs() if run.label == "greedy")


def half_way(out: Path) -> bool:
    return (out / "experiment.json").exists() and stored(out) > 20


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_one_worker_or_two(whole, tmp_path):
    file, expected = whole
    assert expected["return"].max() > 0 and len(expected) == 2 * 120
    result = experiments.run(file, tmp_path / "out", workers=1)
    assert result.finished and table(tmp_path / "out").equals(expected)


def test_a_finished_experiment_costs_nothing(whole, tmp_path, capfd):
    file = write_toml(tmp_path / "a.toml", RANDOM)
    assert experiments.run(file, tmp_path / "out").finished
    paths = [path for path in (tmp_path / "out").rglob("*") if path.name != ".lock"]
    before = {path: path.stat().st_mtime_ns for path in paths}
    capfd.readouterr()
    assert experiments.run(file, tmp_path / "out").finished
    assert {path: path.stat().st_mtime_ns for path in paths} == before
    assert capfd.readouterr().err == ""  # no worker, no warming


def test_interrupted_by_ctrl_c(whole, tmp_path):
    file, expected = whole
    out = tmp_path / "out"
    running = start("run", file, "--out", out, "--workers", "2", "--checkpoint", "1000")
    wait_for(lambda: half_way(out) or running.poll() is not None)
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert f"To go on: kernelrl run {file} --out {out} --workers=2" in errors and "Traceback" not in errors
    assert "greedy  0 of 1 runs finished" in said
    before = stored(out)
    assert 20 < before < 120
    assert all(len(run.history()) == run.episodes for run in experiments.open_store(out).runs())
    again = call("run", file, "--out", out)
    assert again.returncode == 0, again.stderr
    assert table(out).equals(expected)


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    file = write_toml(tmp_path / "a.toml", RANDOM, episodes=3, seeds=1, pause=5.0)
    running = start("run", file, "--out", tmp_path / "out")
    wait_for(lambda: workers_of(running.pid))
    running.send_signal(signal.SIGINT)
    for line in running.stderr:
        if "Ctrl-C again" in line:
            break
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)  # an episode takes 100 s
    assert running.returncode == 130


def test_a_worker_is_killed(whole, tmp_path):
    file, expected = whole
    out = tmp_path / "out"
    running = start("run", file, "--out", out, "--workers", "2", "--checkpoint", "0.3")
    wait_for(lambda: half_way(out) or running.poll() is not None)
    os.kill(workers_of(running.pid)[0], signal.SIGKILL)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    assert "killed by SIGKILL; going on from the last checkpoint" in errors
    assert table(out).equals(expected)


def test_a_worker_is_killed_in_a_batch_of_short_runs(tmp_path, capfd, monkeypatch):
    """Only the run that it worked on counts as failed; the others of the batch are done by the next worker."""
    batches = []
    submit = LocalEngine.submit
    monkeypatch.setattr(LocalEngine, "submit", lambda self, batch: (batches.append(len(batch)), submit(self, batch))[1])
    entry = f'agent = "experiment_parts:DyingAt"\nmark = "{tmp_path}/mark"\ndeadly = 17'
    dying = f'\n[[agents]]\nlabel = "random"\n{entry}\n'
    result = experiments.run(write_toml(tmp_path / "a.toml", dying, 10, 40), tmp_path / "out", workers=1)
    assert result.finished and (tmp_path / "mark").exists()
    said = capfd.readouterr().err
    assert said.count("killed by SIGKILL") == 1 and "random, seed 17: the worker was killed" in said
    assert max(batches) > 1 and sum(batches) > 40
    assert all(said.count(f"random, seed {seed}: finished") == 1 for seed in range(40))
    assert experiments.run(write_toml(tmp_path / "b.toml", RANDOM, 10, 40), tmp_path / "whole").finished
    assert table(tmp_path / "out").equals(table(tmp_path / "whole"))


def test_the_parent_is_killed(whole, tmp_path):
    """Its workers store what they have; the next run waits for them and goes on."""
    file, expected = whole
    out = tmp_path / "out"
    running = start("run", file, "--out", out, "--workers", "2", "--checkpoint", "1000")
    wait_for(lambda: half_way(out) or running.poll() is not None)
    running.kill()
    running.wait()
    again = call("run", file, "--out", out)
    running.communicate()
    assert again.returncode == 0, again.stderr
    assert table(out).equals(expected)


def test_everything_is_killed(whole, tmp_path):
    """As when the power fails."""
    file, expected = whole
    out = tmp_path / "out"
    running = start("run", file, "--out", out, "--workers", "2", "--checkpoint", "0.3")
    wait_for(lambda: half_way(out) or running.poll() is not None)
    for pid in [running.pid, *workers_of(running.pid)]:
        os.kill(pid, signal.SIGKILL)
    running.communicate()
    assert 20 < stored(out) < 120
    again = call("run", file, "--out", out)
    assert again.returncode == 0, again.stderr
    assert table(out).equals(expected)


def test_an_experiment_is_extended(tmp_path):
    """More episodes, seeds and agents; what was there is part of it."""
    out = tmp_path / "out"
    assert experiments.run(write_toml(tmp_path / "a.toml", GREEDY, episodes=30, seeds=1), out, workers=1).finished
    before = table(out)
    larger = write_toml(tmp_path / "a.toml", RANDOM + GREEDY, episodes=60, seeds=2)
    assert experiments.run(larger, out, workers=1).finished
    assert experiments.run(larger, tmp_path / "direct", workers=1).finished
    assert table(out).equals(table(tmp_path / "direct"))
    kept = table(out).filter(label="greedy", seed=0)
    assert kept[:30].equals(before)
    assert [episode for episode, _ in experiments.open_store(out).run("greedy", 0).snapshots()][-1] == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"agents": RANDOM + GREEDY.replace("0.1\n", "0.2\n")}, ['"greedy"', "bandwidth was 0.1 and is 0.2", "label"]),
        ({"agents": RANDOM + GREEDY + "regularization = 1"}, ["regularization was 0.01 and is 1"]),
        ({"agents": RANDOM + '[[agents]]\nlabel = "greedy"\nagent = "RandomAgent"'}, ['"greedy"', "agent was Greedy"]),
        ({"agents": RANDOM}, ["extended, not shortened", '"greedy"']),
        ({"episodes": 9}, ["extended, not shortened", "10 episodes, not 9"]),
        ({"seeds": [1, 2]}, ["extended, not shortened", "seed 0"]),
        ({"pause": 0.0}, ["another experiment", "environment", "Rooms-v0"]),
        ({"name": "other"}, ["another experiment", '"test"', '"other"']),
    ],
)
def test_other_changes_are_refused(small, tmp_path, change, words):
    name = change.pop("name", None)
    file = write_toml(tmp_path / "b.toml", **{"agents": RANDOM + GREEDY, "episodes": 10, "seeds": 1, **change})
    if name:
        file.write_text(file.read_text().replace('"test"', f'"{name}"'))
    before = table(small)
    with pytest.raises(experiments.ExperimentError) as caught:
        experiments.run(file, small)
    for word in [*words, "--out"]:
        assert word in str(caught.value)
    assert table(small).equals(before)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    file = write_toml(folder / "a.toml", RANDOM + GREEDY, episodes=10, seeds=1)
    assert experiments.run(file, folder / "out", workers=1).finished
    return folder / "out"


def test_what_is_said_explicitly_is_no_change(small, tmp_path):
    file = write_toml(tmp_path / "b.toml", RANDOM + GREEDY + "regularization = 0.01", episodes=10, seeds=1)
    assert experiments.run(file, small).finished


def test_what_is_said_about_a_changed_agent_works(small, tmp_path):
    """Each of the three ways that the message offers."""
    changed = GREEDY.replace("0.1\n", "0.2\n")
    out = shutil.copytree(small, tmp_path / "out")
    options = {"episodes": 10, "seeds": 1}
    with pytest.raises(experiments.ExperimentError) as caught:
        experiments.run(write_toml(tmp_path / "a.toml", RANDOM + changed, **options), out)
    for word in ("beside this one under its own label", f"{out}/runs/greedy has results", "remove that folder"):
        assert word in str(caught.value)
    assert experiments.run(tmp_path / "a.toml", tmp_path / "other", workers=1).finished
    beside = RANDOM + GREEDY + changed.replace('"greedy"', '"wider"')
    assert experiments.run(write_toml(tmp_path / "b.toml", beside, **options), out, workers=1).finished
    shutil.rmtree(out / "runs" / "greedy")
    shutil.rmtree(out / "runs" / "wider")
    assert experiments.run(tmp_path / "a.toml", out, workers=1).finished
    assert table(out).equals(table(tmp_path / "other"))


@pytest.mark.parametrize(("change", "folder"), [({"agents": RANDOM}, "greedy"), ({"seeds": [1]}, "*/seed-0")])
def test_what_is_said_about_a_shortened_experiment_works(small, tmp_path, change, folder):
    out = shutil.copytree(small, tmp_path / "out")
    file = write_toml(tmp_path / "a.toml", **{"agents": RANDOM + GREEDY, "episodes": 10, "seeds": 1, **change})
    with pytest.raises(experiments.ExperimentError, match=re.escape(f"remove {out}/runs/{folder}, or choose")):
        experiments.run(file, out)
    for path in (out / "runs").glob(folder):
        shutil.rmtree(path)
    assert experiments.run(file, out, workers=1).finished
    assert experiments.run(file, tmp_path / "other", workers=1).finished
    assert table(out).equals(table(tmp_path / "other"))


def test_a_failed_beginning_does_not_block_its_correction(tmp_path):
    """A run that failed in its first episode holds nothing; the rest of the experiment is kept."""
    file, out = write_toml(tmp_path / "a.toml", RANDOM + tripping(1), episodes=10, seeds=1), tmp_path / "out"
    first = call("run", file, "--out", out, "--workers", "1")
    assert first.returncode == 1
    assert "bad, seed 0: ZeroDivisionError: 1 is too many; nothing is stored yet, beginning again" in first.stderr
    assert "Failed before anything was stored: bad seed 0. Correct the experiment" in first.stderr
    assert first.stderr.endswith(f"To go on: kernelrl run {file} --out {out} --workers=1\n")
    kept = (out / "runs/random/seed-0/history.parquet").stat().st_mtime_ns
    write_toml(file, RANDOM + tripping(1000), episodes=10, seeds=1)
    again = call("run", file, "--out", out, "--workers", "1")
    assert again.returncode == 0, again.stderr
    assert (out / "runs/random/seed-0/history.parquet").stat().st_mtime_ns == kept
    assert experiments.run(file, tmp_path / "direct", workers=1).finished
    assert table(out).equals(table(tmp_path / "direct"))
    assert experiments.open_store(out).run("bad", 0).config["hyper_parameters"]["after"] == 1000


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A folder with an experiment that failed in its first episode."""
    folder = tmp_path_factory.mktemp("failed")
    assert experiments.run(write_toml(folder / "a.toml", tripping(1), 10, 1), folder / "out", workers=1).failed
    return folder / "out"


@pytest.mark.parametrize(
    "correction",
    [
        {"agents": RANDOM},
        {"agents": tripping(1000, "renamed")},
        {"episodes": 5},
        {"seeds": [4]},
        {"pause": 0.0},
        {"name": "another name"},
    ],
)
def test_an_experiment_of_which_nothing_is_stored_can_become_any_other(failed, tmp_path, correction):
    out, name = shutil.copytree(failed, tmp_path / "out"), correction.pop("name", "test")
    leftovers = [out / "runs/bad/seed-0" / name for name in ("agent-2.krl", "history.parquet")]
    for path in leftovers:  # of a run that was killed within its first checkpoint
        path.write_bytes(b"anything")
    changed = {"agents": tripping(1000), "episodes": 10, "seeds": 1, **correction}
    file = write_toml(tmp_path / "a.toml", **changed)
    file.write_text(file.read_text().replace('"test"', f'"{name}"'))
    assert experiments.run(file, out, workers=1).finished
    assert experiments.open_store(out).experiment["name"] == name
    assert experiments.run(file, tmp_path / "direct", workers=1).finished
    assert table(out).equals(table(tmp_path / "direct"))
    for run in experiments.open_store(out).runs():
        assert not [path for path in run.path.iterdir() if path.read_bytes() == b"anything"]


def test_advice_after_a_failure_with_a_checkpoint(tmp_path):
    file, out = write_toml(tmp_path / "a.toml", tripping(9), episodes=10, seeds=1), tmp_path / "out"
    done = call("run", file, "--out", out, "--checkpoint", "7")
    assert done.returncode == 1 and "going on from the last checkpoint" in done.stderr
    assert "Failed: bad seed 0. Once the cause is removed, they go on from their last checkpoints" in done.stderr
    assert done.stderr.endswith(f"To go on: kernelrl run {file} --out {out} --checkpoint=7.0\n")
    write_toml(file, tripping(1000), episodes=10, seeds=1)
    refused = call("run", file, "--out", out)
    assert refused.returncode == 2 and "after was 9 and is 1000 now" in refused.stderr
    (out / "runs/bad/seed-0/history.parquet").write_bytes(b"")
    write_toml(file, tripping(9), episodes=10, seeds=1)
    done = call("run", file, "--out", out)
    assert done.returncode == 1 and f"remove {out / 'runs/bad/seed-0'} to begin this run again" in done.stderr
    assert "Damaged: bad seed 0. Remove the folders named above" in done.stderr


def test_runs_without_their_experiment_are_refused(tmp_path):
    (tmp_path / "out" / "runs").mkdir(parents=True)
    with pytest.raises(experiments.ExperimentError, match=r"no experiment\.json.*--out"):
        experiments.run(write_toml(tmp_path / "a.toml", RANDOM), tmp_path / "out")


def test_a_failing_run_does_not_stop_the_others(tmp_path):
    failing = '\n[[agents]]\nlabel = "bad"\nagent = "experiment_parts:Failing"\n'
    file = write_toml(tmp_path / "a.toml", failing + RANDOM, seeds=1)
    done = call("run", file, "--out", tmp_path / "out", "--json")
    assert done.returncode == 1
    summary = json.loads(done.stdout)
    assert summary["failed"] == 1 and summary["finished"] is False
    rows = {row["label"]: row for row in summary["runs"]}
    assert rows["random"]["finished"] and rows["random"]["episodes"] == 60 and "error" not in rows["random"]
    assert not rows["bad"]["finished"] and rows["bad"]["episodes"] == 12  # the last checkpoint before
    assert "ZeroDivisionError: thirty is too many" in rows["bad"]["error"] and "Traceback" in rows["bad"]["error"]
    assert "in fit" in done.stderr and "bad, seed 0: failed 3 times" in done.stderr


@pytest.mark.parametrize(("times", "fine"), [(2, True), (3, False)])
def test_a_dying_worker_is_restarted_a_few_times(tmp_path, times, fine):
    marks = tmp_path / "marks"
    dying = f'\n[[agents]]\nlabel = "dying"\nagent = "experiment_parts:Dying"\nmarks = "{marks}"\ntimes = {times}\n'
    file = write_toml(tmp_path / "a.toml", dying + RANDOM, seeds=1)
    result = experiments.run(file, tmp_path / "out", workers=2)
    assert result.finished is fine and marks.read_text() == "x" * times
    frame = table(tmp_path / "out")
    random = frame.filter(label="random")["return"]
    assert len(random) == 60
    if fine:
        assert frame.filter(label="dying")["return"].equals(random)
    else:
        (failed,) = result.failed.items()
        assert failed[0] == ("dying", 0) and "SIGKILL" in failed[1] and "these are my last words" in failed[1]


# ------------------------------------------------------------------------------------------------------------- folders


def test_two_at_once(tmp_path):
    file = write_toml(tmp_path / "a.toml", RANDOM, episodes=1000, seeds=1, pause=0.001)
    running = start("run", file, "--out", tmp_path / "out")
    try:
        wait_for(lambda: (tmp_path / "out" / "experiment.json").exists())
        second = call("run", file, "--out", tmp_path / "out", "--json")
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert second.returncode == 2
    assert f"in use by another run, process {running.pid} on {os.uname().nodename}" in second.stderr
    assert "in use" in json.loads(second.stdout)["error"]


def test_a_stale_lock_is_no_obstacle(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / ".lock").write_text(json.dumps({"pid": 2**22 + 1, "host": os.uname().nodename}))
    assert experiments.run(write_toml(tmp_path / "a.toml", RANDOM, episodes=2, seeds=1), out).finished


def test_workers_left_behind_are_waited_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(locking, "WAIT_SECONDS", 0.3)
    with FolderLock(tmp_path):
        with pytest.raises(experiments.ExperimentError, match=f"process {os.getpid()}"), FolderLock(tmp_path):
            pass
        (tmp_path / ".lock").write_text(json.dumps({"pid": 2**22 + 1, "host": os.uname().nodename}))
        with pytest.raises(experiments.ExperimentError, match=f"process {2**22 + 1}"), FolderLock(tmp_path):
            pass
        assert "left behind" in capsys.readouterr().err
        (tmp_path / ".lock").write_text("")
        with pytest.raises(experiments.ExperimentError, match="not said its name"), FolderLock(tmp_path):
            pass
    with FolderLock(tmp_path):
        pass


def test_an_unwritable_folder(tmp_path):
    file = write_toml(tmp_path / "a.toml", RANDOM)
    done = call("run", file, "--out", file / "below")
    assert done.returncode == 2
    assert str(file / "below") in done.stderr and "Not a directory" in done.stderr and "Traceback" not in done.stderr
    done = call("run", file, "--out", "/proc/nothing")  # not even root can write there
    assert done.returncode == 2 and "/proc/nothing" in done.stderr and "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 200 kB, and a function that makes it larger."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs is not allowed here; the next test has a limit on files instead")
    yield disk, lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The file of an experiment that takes more than a small disk, and its undisturbed results."""
    folder = tmp_path_factory.mktemp("large")
    file = write_toml(folder / "a.toml", GREEDY, episodes=400, seeds=1)
    assert experiments.run(file, folder / "out").finished
    return file, table(folder / "out")


def check_full_disk(done, out):
    """The run has failed in so many words, and what was stored before is whole."""
    assert done.returncode == 1, done.stderr
    assert "greedy, seed 0: failed 3 times: OSError" in done.stderr
    (run,) = experiments.open_store(out).runs()
    assert 0 < run.episodes < 400 and len(run.history()) == run.episodes == run.agent().episodes
    assert not list(run.path.glob(".*.part"))


def test_a_disk_that_fills_up(small_disk, large):
    (disk, enlarge), (file, expected) = small_disk, large
    done = call("run", file, "--out", disk / "out")
    check_full_disk(done, disk / "out")
    assert "No space left on device" in done.stderr
    enlarge()
    assert call("run", file, "--out", disk / "out").returncode == 0
    assert table(disk / "out").equals(expected)


def test_files_that_may_not_grow(large, tmp_path):
    """Nothing is left to compile, which writes files, too."""
    (file, expected), out = large, tmp_path / "out"
    limited = ["bash", "-c", 'ulimit -f 60 && exec "$@"', "bash", *command("run", file, "--out", out)]
    done = subprocess.run(limited, capture_output=True, text=True, env=environment(), check=False)
    check_full_disk(done, out)
    assert "File too large" in done.stderr
    assert call("run", file, "--out", out).returncode == 0
    assert table(out).equals(expected)


# ------------------------------------------------------------------------------------------------------------ the rest


def test_modules_beside_the_file_are_found(tmp_path):
    (tmp_path / "beside.py").write_text(
        "import kernelrl as krl\n\nclass Mine(krl.RandomAgent):\n    '''An agent of mine.'''\n"
    )
    file = write_toml(tmp_path / "a.toml", '[[agents]]\nlabel = "mine"\nagent = "beside:Mine"\n', episodes=5, seeds=1)
    done = call("run", file, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "mine  1 of 1 runs finished" in done.stdout


def test_what_environments_print_does_no_harm(tmp_path):
    (tmp_path / "loud.py").write_text(
        "import gymnasium as gym\nfrom kernelrl.envs import TwinRooms\n\n"
        "class Loud(TwinRooms):\n    def step(self, action):\n        print('a step')\n"
        "        return super().step(action)\n\n"
        "gym.register('Loud-v0', entry_point=Loud, max_episode_steps=3)\n"
    )
    file = write_toml(tmp_path / "a.toml", RANDOM, episodes=2, seeds=1)
    file.write_text(file.read_text().replace("kernelrl/TwinRooms-v0", "loud:Loud-v0"))
    done = call("run", file, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"] and "a step" in done.stderr


@pytest.mark.parametrize("fault", ["def", "raise RuntimeError('no')"])
def test_a_module_that_cannot_be_imported(tmp_path, fault):
    (tmp_path / "faulty.py").write_text(f"x = 1\n{fault}\n")
    file = write_toml(tmp_path / "a.toml", RANDOM)
    file.write_text(file.read_text().replace("kernelrl/TwinRooms-v0", "faulty:A-v0"))
    done = call("run", file, "--out", tmp_path / "out")
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.count("\n") == 1
    assert f"{tmp_path / 'faulty.py'}, line 2: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--workers", "0"], "workers"),
        (["--episodes", "0"], "episodes"),
        (["--seeds", "0"], "seeds"),
        (["--engine", "cloud"], "engine"),
        (["--address", "auto"], "address"),
    ],
)
def test_wrong_options(tmp_path, arguments, word):
    file = write_toml(tmp_path / "a.toml", RANDOM)
    done = call("run", file, "--out", tmp_path / "out", *arguments)
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
