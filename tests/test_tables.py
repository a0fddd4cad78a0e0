"""The forms in which `learn_from` takes tables, and errors that name the row and the column."""

from __future__ import annotations

import math
import sys
import types

import gymnasium as gym
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelrl as krl
from logged_rows import logged
from small_envs import Chain

ENV = "kernelrl/TwinRooms-v0"
BOX = "kernelrl/Oil-v0"
SEED = 5


def rows():
    return logged(ENV, 3, 0.1)


def learnt(table, new=lambda: krl.UCBVI(bins=3), env=ENV, **options):
    """The optimistic values after learning from a table."""
    agent = new()
    agent.learn_from(table, env=env, seed=SEED, **options)
    first = agent.spaces.low[None].reshape(1, *agent.spaces.shape)
    return [agent.q_values(first, 0).tolist(), agent.counts(first, 0).tolist()]


def spoilt(column, row, value, table=None):
    """The rows with another value in one place, as a mapping of lists."""
    table = rows() if table is None else table
    columns = table.to_dict(as_series=False)
    columns[column][row] = value
    return columns


# --------------------------------------------------------------------------------------------------------------- forms


def test_all_forms_give_the_same(tmp_path):
    table, expected = rows(), learnt(rows())
    table.write_parquet(tmp_path / "log.parquet")
    table.write_csv(tmp_path / "log.csv")
    pandas.DataFrame(table.to_dict(as_series=False)).to_csv(tmp_path / "pandas.csv", index=False)
    states = {name: table.select(f"{name}_0", f"{name}_1").to_numpy() for name in ("state", "next_state")}
    others = {name: table[name].to_numpy() for name in ("action", "reward", "terminated", "step")}
    frame = pandas.DataFrame(table.to_dict(as_series=False))
    forms = {
        "polars": table,
        "lazy": table.lazy(),
        "float32 steps": table.with_columns(polars.col("step").cast(polars.Float32)),
        "decimal numbers": table.with_columns(polars.col("action").cast(polars.Decimal(10, 2))),
        "pandas": frame,
        "pandas with missing values allowed": frame.convert_dtypes(dtype_backend="numpy_nullable"),
        "pandas of objects": frame.astype(object),
        "pyarrow": pyarrow.table(table.to_dict(as_series=False)),
        "lists": table.to_dict(as_series=False),
        "arrays": {name: table[name].to_numpy() for name in table.columns},
        "arrays of states": {**states, **others},
        "lists of states": {**{name: x.tolist() for name, x in states.items()}, **others},
        "parquet": tmp_path / "log.parquet",
        "parquet as text": str(tmp_path / "log.parquet"),
        "csv": tmp_path / "log.csv",
        "csv of pandas": tmp_path / "pandas.csv",
    }
    for name, form in forms.items():
        assert learnt(form) == expected, name
    one = table.with_columns(terminated=polars.lit(False))
    assert learnt({**states, **others, "terminated": False}) == learnt(one)
    assert learnt(table.rename({"action": "action_0"})) == expected
    shuffled = table.select(reversed(table.columns))
    assert learnt(shuffled) == expected


def test_columns_that_are_not_known():
    table = rows().with_columns(weather=polars.lit("fine"), wind=1.5)
    with pytest.raises(
        ValueError, match=r"unknown columns \"weather\", \"wind\"; leave them out, or give ignore=\['we"
    ):
        learnt(table)
    assert learnt(table, ignore=["weather", "wind"]) == learnt(rows())
    assert learnt(rows().with_columns(wind=1.5), ignore="wind") == learnt(rows())
    with pytest.raises(ValueError, match='ignore: there is no column "rain"; the table has "episode", "step"'):
        learnt(table, ignore=["rain"])


UNUSABLE = {
    "timestamps": np.arange(60).astype("datetime64[ms]"),
    "gaps": [None, 1.0] * 30,
    "texts with gaps": ["a", None] * 30,
    "objects": [object()] * 60,
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_columns_that_are_not_used_may_hold_anything(name, tmp_path):
    """Those that are ignored, and episode and truncated."""
    expected, values = learnt(rows()), UNUSABLE[name]
    table = rows().to_dict(as_series=False)
    for names in ("note",), ("episode", "truncated"), ("note", "episode", "truncated"):
        mapping = table | dict.fromkeys(names, values)
        forms = [mapping, pandas.DataFrame(mapping)]
        if name != "objects":
            forms += [polars.DataFrame(mapping), tmp_path / "log.csv", tmp_path / "log.parquet"]
            forms[2].write_csv(tmp_path / "log.csv")
            forms[2].write_parquet(tmp_path / "log.parquet")
        for form in forms:
            assert learnt(form, ignore=["note"] if "note" in names else []) == expected
    assert learnt(table | {"note": 3, "episode": [1, 2]}, ignore="note") == expected
    with pytest.raises(ValueError, match='unknown columns "note"; leave them out, or give ignore='):
        learnt(table | {"note": values})


def test_columns_that_are_missing():
    for name in ("state_1", "action", "reward", "next_state_0", "terminated"):
        with pytest.raises(ValueError, match=f'table: the column "{name}" is missing'):
            learnt(rows().drop(name))
    with pytest.raises(ValueError, match=r'"reward" is missing \(did you mean "rewards"\? rename it\)'):
        learnt(rows().rename({"reward": "rewards"}))
    with pytest.raises(ValueError, match="False in every row if no episode ends before its time limit"):
        learnt(rows().drop("terminated"))
    with pytest.raises(ValueError, match=r'"state_0" is missing; state has 2 columns here; the table has "step"'):
        learnt(rows().drop("state_0", "state_1", "episode"))
    with pytest.raises(ValueError, match='"state_1" is missing'):  # of an environment with another dimension
        learnt(logged("kernelrl/Ramp-v0", 2))
    with pytest.raises(ValueError, match=r'the table has "episode", "step", "state_0", .*"truncated"$'):  # all of them
        learnt(rows().drop("terminated"))
    with pytest.raises(ValueError, match='ignore: the column "reward" is needed'):
        learnt(rows(), ignore="reward")
    with pytest.raises(ValueError, match="the table has no columns"):
        learnt({})


def test_too_many_columns():
    two = r"state must be 2 columns, state_0 … state_1, or one, state, with 2 numbers in each row; got "
    with pytest.raises(ValueError, match=two + '"state_0", "state_1", "state_2"$'):
        learnt(rows().with_columns(state_2=0.5))
    with pytest.raises(ValueError, match=two + '"state_0", "state_1", "state"$'):
        learnt({**rows().to_dict(as_series=False), "state": np.zeros((60, 2))})
    with pytest.raises(ValueError, match=r'state must be one column, state or state_0; got "state_0", "state_1"$'):
        learnt(rows(), env="kernelrl/Ramp-v0")
    with pytest.raises(ValueError, match=r'action must be one column, action or action_0; got "action", "action_0"$'):
        learnt(rows().with_columns(action_0=1))


# ------------------------------------------------------------------------------------------------------------ bad rows

BAD = [
    ("state_1", math.nan, "the value is nan; it must be a finite number"),
    ("state_0", math.inf, "the value is inf; it must be a finite number"),
    ("next_state_1", 1.5, "the value is 1.5; it must lie in the state space, from 0.0 to 1.0"),
    ("state_0", "north", "the value is 'north'; it must be a number"),
    ("state_0", None, "the value is missing; it must be a number"),
    ("action", 4, "the value is 4; it must be one of 0 … 3"),
    ("action", -1, "it must be one of 0 … 3"),
    ("action", 1.5, "the value is 1.5; it must be one of 0 … 3"),
    ("action", math.nan, "it must be one of 0 … 3"),
    ("reward", math.nan, "the value is nan; it must be a finite number"),
    ("reward", -1e100, "it must be a finite number"),
    ("terminated", 2, "it must be true or false"),
    ("terminated", None, "the value is missing"),
    ("step", 20, "it must be one of 0 … 19; this agent pools its data over steps, so ignore="),
    ("step", -1, "it must be one of 0 … 19"),
    ("step", 0.5, "it must be one of 0 … 19"),
]


@pytest.mark.parametrize(("column", "value", "said"), BAD, ids=[f"{column} {value}" for column, value, _ in BAD])
def test_a_bad_value_is_named(column, value, said):
    with pytest.raises(ValueError, match=rf"^table: row 17 \(the first is 0\), column {column}: (.*; )?{said}"):
        learnt(spoilt(column, 17, value))


def is_number(text):
    """Whether a text stands for a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


@settings(max_examples=40)
@given(
    row=st.integers(0, 59),
    column=st.sampled_from(["state_0", "next_state_1", "action", "reward", "step", "terminated"]),
    value=st.one_of(
        st.just(math.nan),
        st.just(math.inf),
        st.none(),
        st.text(max_size=3).filter(lambda text: not is_number(text)),  # "0" is read as a number in some columns
        st.floats(-1e300, -1e100),
        st.just(10**120),
        st.just(10**400),
    ),
)
def test_any_bad_value_is_named_and_nothing_taken_in(row, column, value):
    agent = krl.UCBVI(bins=3)
    agent.learn_from(rows(), env=ENV, seed=SEED)
    before = agent.counts([[0.1, 0.1]], 0).tolist()
    with pytest.raises(ValueError, match=rf"^table: row {row} \(the first is 0\), column {column}: the value is "):
        agent.learn_from(spoilt(column, row, value))
    assert agent.counts([[0.1, 0.1]], 0).tolist() == before
    assert int(agent.model.store.number[1]) == len(rows())


def test_a_file_with_bad_values(tmp_path):
    table = rows()
    for column, value, said in [
        ("reward", "high", "row 4 .*, column reward: the value is 'high'; it must be a number"),
        ("reward", None, r"row 4 .*, column reward: the value is missing \(null\); every row needs a value: leave"),
        ("state_0", "NaN", "row 4 .*, column state_0: the value is nan"),
        ("action", "off", "column action: the value is 'off'; it must be a number; give each action a number"),
        ("terminated", "yes", "row 4 .*, column terminated: the value is 'yes'; it must be true or false"),
        ("action", "7", "row 4 .*, column action: the value is 7; it must be one of 0 … 3"),
    ]:
        values = [str(value).lower() for value in table[column]]
        values[4] = value
        table.with_columns(polars.Series(column, values)).write_csv(tmp_path / "log.csv")
        with pytest.raises(ValueError, match=said):
            learnt(tmp_path / "log.csv")
    with pytest.raises(FileNotFoundError, match=r"table: there is no file .*none.csv"):
        learnt(tmp_path / "none.csv")
    (tmp_path / "log.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"log.parquet cannot be read as Parquet: "):
        learnt(tmp_path / "log.parquet")
    (tmp_path / "semi.csv").write_text("state_0;state_1\n0,5;0,5\n")
    with pytest.raises(ValueError, match=r"semi.csv has semicolons .*separator=';'\), .*decimal_comma"):
        learnt(tmp_path / "semi.csv")
    (tmp_path / "log.txt").write_text("1, 2")
    with pytest.raises(ValueError, match=r"log.txt must end in .parquet, .pq, .csv"):
        learnt(tmp_path / "log.txt")


def test_a_csv_file_with_numbers_as_python_and_numpy_write_them(tmp_path):
    """Spaces around names and values, nan and inf."""
    table, file = rows(), tmp_path / "log.csv"
    lines = [", ".join(table.columns), *(", ".join(map(str, row)) + " " for row in table.rows())]
    file.write_text("\n".join(lines))
    assert learnt(file) == learnt(table)
    used = table.drop("episode", "truncated")
    np.savetxt(file, used.to_numpy(), delimiter=" , ", header=",".join(used.columns), comments="")
    assert learnt(file) == learnt(table)
    for value in ("nan", " NaN", "inf", "-inf", "-Infinity "):
        said = rf"row 17 .*, column reward: the value is {float(value)}; it must be a finite number"
        values = [*map(str, table["reward"])]
        values[17] = value
        table.with_columns(polars.Series("reward", values)).write_csv(file)
        with pytest.raises(ValueError, match=said):
            learnt(file)
    for text in ("-", " ", "1_0", "0,5", "0.5 m"):
        values = [*map(str, table["reward"])]
        values[3], values[17], values[18] = "nan", text, "off"
        table.with_columns(polars.Series("reward", values)).write_csv(file)
        with pytest.raises(ValueError, match=rf"row 17 .*, column reward: the value is {text!r}; it must be a number"):
            learnt(file)
    table.with_columns(polars.Series("reward", [" 0.5"] * 20 + [None] + ["nan"] * 39)).write_csv(file)
    with pytest.raises(ValueError, match=r"row 20 .*, column reward: the value is missing \(null\)"):
        learnt(file)


def test_types_that_are_no_numbers():
    texts = rows().with_columns(polars.col("reward").cast(polars.String))
    with pytest.raises(ValueError, match="column reward holds texts, not numbers; convert it"):
        learnt(texts)
    dates = {**rows().to_dict(as_series=False), "reward": np.full(60, "2026-01-01", "datetime64[D]")}
    with pytest.raises(ValueError, match="column reward must hold numbers, and its type is datetime64"):
        learnt(dates)
    with pytest.raises(TypeError, match=r"table must be a polars or pandas frame, .* or a Minari dataset .*; got int"):
        learnt(3)
    with pytest.raises(ValueError, match=r"columns must have the same number of rows, got .*reward 59"):
        learnt({**rows().to_dict(as_series=False), "reward": [0.0] * 59})
    other = rows().drop("state_0", "state_1").to_dict(as_series=False)
    uneven = [[0.1, 0.2]] * 59 + [[0.1, 0.2, 0.3]]
    said = r"row 59 .*, column state: the value is .*0\.3.*; every row must have as many numbers as row 0, which has 2"
    for ragged in (uneven, [np.array(row) for row in uneven], pandas.Series(uneven), polars.Series(uneven)):
        with pytest.raises(ValueError, match=said):
            learnt({**other, "state": ragged})
    with pytest.raises(ValueError, match=r"row 59 .*, column state: the value is None; every row must have as many"):
        learnt({**other, "state": [*uneven[:59], None]})
    with pytest.raises(ValueError, match=r"row 0 .*, column state: .*; it must be a number or a list of numbers"):
        learnt({**other, "state": [[[0.1], [0.2, 0.3]]] * 60})
    with pytest.raises(ValueError, match="column state has 3 numbers in each row, not 2"):
        learnt({**rows().drop("state_0", "state_1").to_dict(as_series=False), "state": np.zeros((60, 3))})
    twice = pandas.DataFrame(rows().to_dict(as_series=False)).rename(columns={"episode": "step"})
    with pytest.raises(ValueError, match='there are two columns "step"'):
        learnt(twice)


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("detach it first")


def test_things_that_are_no_columns():
    for value, said in [
        (None, "got None"),
        ((x for x in [1.0] * 60), "got an object of type generator"),
        (object(), "got an object of type object"),
        ({1: 2}, "got an object of type dict"),
        (pandas.NA, "got an object of type NAType"),
        (Unreadable(), "got an object of type Unreadable: .*detach it first"),
    ]:
        wanted = "must be an array or a list with a value for each row, or one number for all rows; "
        with pytest.raises(ValueError, match=f"^table: column reward {wanted}{said}"):
            learnt({**rows().to_dict(as_series=False), "reward": value})
    for ignore in (3, None):
        with pytest.raises(TypeError, match=rf"ignore must be names of columns, such as .*; got {ignore}"):
            learnt(rows(), ignore=ignore)


def test_masked_arrays():
    table = rows()
    arrays = {name: np.ma.array(table[name].to_numpy()) for name in table.columns}
    assert learnt(arrays) == learnt(table)  # with nothing masked
    arrays["episode"][3] = np.ma.masked
    assert learnt(arrays) == learnt(table)
    arrays["reward"][7] = np.ma.masked
    with pytest.raises(ValueError, match=r"row 7 \(the first is 0\), column reward: the value is missing \(masked\)"):
        learnt(arrays)
    states = np.ma.array(table.select("state_0", "state_1").to_numpy())
    states[9, 1] = np.ma.masked
    with pytest.raises(ValueError, match=r"row 9 .*, column state: the value is missing \(masked\)"):
        learnt({**table.drop("state_0", "state_1").to_dict(as_series=False), "state": states})


def test_tables_without_rows(tmp_path):
    empty = rows().head(0)
    empty.write_csv(tmp_path / "log.csv")  # from which no types can be told
    agent = krl.UCBVI(bins=3)
    agent.learn_from(rows(), env=ENV, seed=SEED)
    before = agent.counts([[0.1, 0.1]], 0).tolist()
    for table in (
        empty,
        empty.with_columns(polars.col("reward").cast(polars.Datetime)),
        pandas.DataFrame(empty.to_dict(as_series=False)),
        empty.to_dict(as_series=False),
        {**empty.to_dict(as_series=False), "state_0": 0.5},
        tmp_path / "log.csv",
    ):
        with pytest.raises(ValueError, match=r"^table: it has no rows; at least one is needed"):
            agent.learn_from(table)
    assert agent.counts([[0.1, 0.1]], 0).tolist() == before
    with pytest.raises(ValueError, match=r'"state_0", .* have one value each; at least one column must be an array'):
        agent.learn_from({name: values[0] for name, values in rows().to_dict(as_series=False).items()})


def test_actions_of_a_box():
    table = logged(BOX, 3)
    with pytest.raises(
        ValueError, match=r"row 2 .*, column action_0: the value is 1.5; it must lie in the action space"
    ):
        learnt(spoilt("action_0", 2, 1.5, table), lambda: krl.AdaptiveQL(), BOX)
    with pytest.raises(ValueError, match="column action_0: the value is nan"):
        learnt(spoilt("action_0", 2, math.nan, table), lambda: krl.AdaptiveQL(), BOX)


def test_states_of_a_discrete_space():
    env = gym.wrappers.TimeLimit(Chain(first=3), 6)
    table = krl.RandomAgent().fit(env, 3, seed=0, progress=False, transitions=True).transitions
    for value in (2, 7, 3.5):
        with pytest.raises(
            ValueError, match=rf"row 2 .*, column state: the value is {value}.*; it must be one of 3 … 6"
        ):
            krl.UCBVI().learn_from(spoilt("state", 2, value, table), env=env)


def test_a_termination_where_the_range_excludes_zero():
    table = rows().with_columns(reward=1.5, terminated=polars.int_range(polars.len()) == 8)
    with pytest.raises(ValueError, match=r"row 8 .*, column terminated: reward_range: \(1.0, 2.0\) excludes 0"):
        learnt(table, lambda: krl.UCBVI(bins=3, reward_range=(1, 2)))


# -------------------------------------------------------------------------------------------------------------- Minari


class Episode:
    """What an episode of Minari has; one more observation than there are steps."""

    def __init__(self, table, number):
        self.id = number
        last = table.tail(1).select(polars.col("^next_state_.*$")).to_numpy()
        self.observations = np.concatenate([table.select(polars.col("^state_.*$")).to_numpy(), last])
        self.actions, self.rewards = table["action"].to_numpy(), table["reward"].to_numpy()
        self.terminations, self.truncations = table["terminated"].to_numpy(), table["truncated"].to_numpy()


class Dataset:
    """A stand-in for a dataset of Minari."""

    def __init__(self, table):
        self.episodes = [Episode(part, k) for (k,), part in table.group_by("episode", maintain_order=True)]

    def iterate_episodes(self):
        yield from self.episodes


def test_a_minari_dataset(monkeypatch):
    dataset = Dataset(rows())
    assert learnt(dataset) == learnt(rows())
    asked = []
    module = types.ModuleType("minari")
    module.load_dataset = lambda name: asked.append(name) or dataset
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "minari", module)
    assert learnt("minari:twin/rooms-v0") == learnt(rows())
    assert asked == ["twin/rooms-v0"]

    def missing(name):
        raise FileNotFoundError(f"Dataset {name} not found locally")

    module.load_dataset = missing
    with pytest.raises(
        ValueError, match=r"twin/rooms-v0 cannot be loaded \(FileNotFound.*minari download twin/rooms-v0"
    ):
        learnt("minari:twin/rooms-v0")


def test_a_minari_dataset_that_does_not_fit(monkeypatch):
    dataset = Dataset(rows())
    dataset.episodes[1].observations = dataset.episodes[1].observations[:-1]
    with pytest.raises(
        ValueError, match="episode 1 of the Minari dataset has 20 observations and 20 actions for 20 rew"
    ):
        learnt(dataset)
    dataset.episodes[0].observations = {"position": 1}
    with pytest.raises(ValueError, match="the observations of the Minari dataset are a dict"):
        learnt(dataset)
    dataset.episodes = []
    with pytest.raises(ValueError, match="the Minari dataset has no episodes"):
        learnt(dataset)
    if "minari" not in sys.modules:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(
            ValueError, match=r"minari:a needs Minari, which is not installed: pip install 'kernelrl\[data"
        ):
            learnt("minari:a")
