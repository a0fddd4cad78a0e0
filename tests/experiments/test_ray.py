"""The Ray engine on a real cluster of two nodes: the same numbers as on this machine, also when a node is lost."""

from __future__ import annotations

import sys
import threading

import pytest

from experiment_parts import GREEDY, RANDOM, environment, table, wait_for, write_toml
from kernelrl import experiments

ray = pytest.importorskip("ray")

# Ray's own code leaves sockets and processes to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """An experiment that takes some seconds, and its results, which do not depend on the pauses."""
    folder, agents = tmp_path_factory.mktemp("local"), RANDOM + GREEDY
    quick = write_toml(folder / "quick.toml", agents, episodes=200, seeds=1, pause=0.0)
    assert experiments.run(quick, folder / "out").finished
    return write_toml(folder / "a.toml", agents, episodes=200, seeds=1, pause=0.001), table(folder / "out")


@pytest.fixture
def cluster(monkeypatch):
    """A head without processors, which nothing runs on, and two nodes with one each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster, nodes
    ray.shutdown()
    cluster.shutdown()


def test_a_node_is_killed(expected, cluster, tmp_path, capfd):
    file, results = expected
    out, (system, nodes) = tmp_path / "out", cluster

    def begun():
        runs = experiments.open_store(out).runs() if (out / "experiment.json").exists() else []
        return len(runs) == 2 and all(run.episodes > 20 for run in runs)

    def kill():
        wait_for(begun)
        system.remove_node(nodes[0], allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    result = experiments.run(file, out, engine="ray", address=system.address, checkpoint_seconds=0.3)
    killer.join()
    assert result.finished, result.failed
    assert "its task was lost" in capfd.readouterr().err  # the kill came in the middle
    assert table(out).equals(results)
    assert {run.record["episodes"] for run in experiments.open_store(out).runs()} == {200}


def test_several_problems(cluster, tmp_path):
    """The same table as on this machine; one problem counts steps."""
    problems = (
        '[[environments]]\nlabel = "rooms"\nid = "experiment_parts:Rooms-v0"\n'
        '[[environments]]\nid = "kernelrl/PuddleWorld-v0"\nsteps = 600\n'
    )
    file = tmp_path / "a.toml"
    file.write_text(f'name = "test"\nepisodes = 20\nseeds = 2\n{problems}{RANDOM}{GREEDY}')
    assert experiments.run(file, tmp_path / "local").finished
    result = experiments.run(file, tmp_path / "ray", engine="ray", address=cluster[0].address)
    assert result.finished, result.failed
    assert table(tmp_path / "ray").equals(table(tmp_path / "local"))


def test_short_runs_in_batches(cluster, tmp_path, monkeypatch):
    """The same table as on this machine; several runs are one task."""
    from kernelrl.experiments.ray_engine import RayEngine

    batches = []
    submit = RayEngine.submit
    monkeypatch.setattr(RayEngine, "submit", lambda self, batch: (batches.append(len(batch)), submit(self, batch))[1])
    file = write_toml(tmp_path / "a.toml", RANDOM, episodes=10, seeds=60)
    assert experiments.run(file, tmp_path / "local").finished
    result = experiments.run(file, tmp_path / "ray", engine="ray", address=cluster[0].address, workers=2)
    assert result.finished, result.failed
    assert table(tmp_path / "ray").equals(table(tmp_path / "local"))
    assert max(batches) > 1 and len(batches) < 40


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "ray://127.0.0.1:10001"])
def test_no_cluster_there(tmp_path, address):
    file = write_toml(tmp_path / "a.toml", RANDOM)
    with pytest.raises(experiments.ExperimentError, match=f"address: there is no Ray cluster at '{address}'"):
        experiments.run(file, tmp_path / "out", engine="ray", address=address)


def test_without_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "kernelrl.experiments.ray_engine", raising=False)
    with pytest.raises(experiments.ExperimentError, match=r"pip install 'kernelrl\[ray\]'"):
        experiments.run(write_toml(tmp_path / "a.toml", RANDOM), tmp_path / "out", engine="ray")
