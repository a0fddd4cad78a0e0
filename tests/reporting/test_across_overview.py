"""The numbers across problems, and the sentences that say what is seen: hand-made runs with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from kernelrl.reporting.across import sentences, tables
from kernelrl.reporting.across.overview import Problem, Runs, overview_of, window_of
from kernelrl.reporting.across.sections import sections_of
from naive import across as naive


def runs(levels, episodes=40, seconds=1.0, first_seed=0):
    """One run for each level, which has that return in all episodes."""
    returns = tuple(np.full(episodes, float(level)) for level in levels)
    seeds = tuple(range(first_seed, first_seed + len(levels)))
    return of_equal_length(seeds, returns, np.full(len(levels), seconds), np.full(len(levels), 2e6))


def of_equal_length(seeds, returns, seconds, sizes):
    """Runs whose episodes all have one step."""
    return Runs(seeds, returns, tuple(np.ones(one.size) for one in returns), seconds, sizes)


def climbing(after, episodes=100, seeds=4):
    """Runs that return 0 at first, and 10 from episode number `after` on."""
    returns = tuple(np.where(np.arange(episodes) < after + i, 0.0, 10.0) for i in range(seeds))
    return of_equal_length(tuple(range(seeds)), returns, np.full(seeds, 2.0), np.ones(seeds))


GOOD = [9.0, 9.2, 9.1, 9.3, 9.4]
FAIR = [5.0, 5.3, 4.9, 5.2, 5.4]


def three():
    """Three problems, and "partial" only on the last."""
    problems = [Problem(f"p{i}", {"good": runs(GOOD), "fair": runs(FAIR)}, 10.0) for i in range(3)]
    problems[2].runs["partial"] = runs([9.9, 9.8, 9.9, 9.9, 9.7])
    return overview_of(problems, ["good", "fair", "partial", "absent"])


def test_fractions_are_between_worst_and_best():
    problem = Problem(
        "p", {"a": of_equal_length((3, 5), (np.array([2.0, 4.0]), np.array([6.0])), np.ones(2), np.ones(2))}, 6.0, 2.0
    )
    assert [part.tolist() for part in problem.fractions("a")] == [[0.0, 0.5], [1.0]]
    assert problem.scores("a").tolist() == [0.25, 1.0] and problem.episodes == 2 and problem.window == 1
    for best, worst in ((2.0, 2.0), (1.0, 2.0), (np.nan, 0.0), (np.inf, 0.0)):
        with pytest.raises(ValueError, match="best: of problem p it must be a number above worst"):
            Problem("p", {}, best, worst)


@pytest.mark.parametrize(
    ("episodes", "window"), [(1, 1), (4, 1), (10, 2), (99, 19), (100, 20), (1000, 20), (5000, 100)]
)
def test_window(episodes, window):
    assert window_of(episodes) == window


def test_numbers_are_those_of_the_statistics():
    overview = three()
    assert overview.labels == ["good", "fair", "partial"] and overview.everywhere == ["good", "fair"]
    scores = {"good": [np.array(GOOD) / 10] * 3, "fair": [np.array(FAIR) / 10] * 3}
    for label, values in scores.items():
        assert overview.means[label].value == pytest.approx(naive.interquartile_mean(values))
        assert overview.gaps[label].value == pytest.approx(naive.optimality_gap(values))
        at = int(np.argmin(np.abs(overview.thresholds - 0.91)))
        assert overview.profiles[label].value[at] == pytest.approx(naive.profile(values, overview.thresholds[at]))
    assert overview.improvements["good", "fair"].probability == (1.0, 1.0, 1.0)
    assert overview.improvements["good", "fair"].problems == 3 and overview.improvements["good", "fair"].decided
    assert overview.improvements["partial", "good"].problems == 1
    assert overview.improvements["partial", "good"].decided  # five seeds of each: two of 252 divisions
    assert overview.cells["p0", "good"].seconds == 25.0 and overview.cells["p0", "good"].megabytes == 2.0
    np.testing.assert_allclose(overview.learning["good"].value, overview.means["good"].value)


def test_steps_count_where_runs_have_a_number_of_them():
    returns, lengths = (np.array([1.0, 5.0]), np.array([3.0])), (np.array([10.0, 30.0]), np.array([40.0]))
    runs_of = {"a": Runs((0, 1), returns, lengths, np.ones(2), np.ones(2))}
    assert Problem("p", runs_of, 10.0, by_steps=True).scores("a").tolist() == [0.4, 0.3]
    assert Problem("p", runs_of, 10.0).scores("a").tolist() == pytest.approx([0.3, 0.3])


def test_one_seed_decides_nothing():
    problems = [Problem("p", {"good": runs([9.0]), "fair": runs([5.0])}, 10.0)]
    overview = overview_of(problems, ["good", "fair"])
    assert sentences.about_table(overview) == (
        "good has the highest mean on 1 of 1 problem. With so few seeds nothing can be said about differences."
    )


def test_an_agent_without_an_interval_is_not_compared():
    problems = [Problem("p", {"good": runs(GOOD), "fair": runs(FAIR), "once": runs([2.0])}, 10.0)]
    overview = overview_of(problems, ["good", "fair", "once"])
    said = sentences.about_means(overview)
    assert said.endswith("; its interval lies above that of fair; of once there is no interval.")


def test_memory_of_agents_of_other_libraries_is_not_known():
    unknown = of_equal_length((0,), (np.ones(5),), np.ones(1), np.array([np.nan]))
    overview = overview_of([Problem("p", {"ours": runs([9.0]), "peer": unknown}, 10.0)], ["ours", "peer"])
    assert [entry.text for entry in tables.memory_table(overview).rows[0][1]] == ["2", "–"]
    assert sentences.about_memory(overview) == "Most memory at the end of a run: ours 2 MB."


def test_memory():
    overview = three()
    assert sentences.about_memory(overview) == (
        "Most memory at the end of a run: good 2 MB, on p0; fair 2 MB, on p0; partial 2 MB."
    )
    assert [entry.text for entry in tables.memory_table(overview).rows[0][1]] == ["2", "2", "–"]
    assert sentences.megabytes(1e-5) == "< 0.1"


def test_places():
    overview = three()
    assert overview.cells["p0", "good"].place == "best" and overview.cells["p0", "fair"].place == "worse"
    assert overview.cells["p2", "partial"].place == "best"
    near = Problem("p", {"a": runs([5, 6, 7, 8]), "b": runs([8, 5, 6, 6.9])}, 10.0)
    cells = overview_of([near], ["a", "b"]).cells
    assert cells["p", "a"].place == "best" and cells["p", "b"].place == "close"
    single = overview_of([Problem("p", {"a": runs([5]), "b": runs([6])}, 10.0)], ["a", "b"])
    assert single.cells["p", "a"].place == "" and single.cells["p", "b"].place == "best"


def test_agents_are_compared_on_common_seeds():
    problem = Problem("p", {"a": runs([1, 2, 3]), "b": runs([9, 0, 0], first_seed=2)}, 10.0)  # seed 2 is common
    found = overview_of([problem], ["a", "b"]).improvements
    assert found["a", "b"].probability.value == 0.0 and not found["a", "b"].decided  # 3 < 9
    apart = Problem("p", {"a": runs([1, 2]), "b": runs([9, 0], first_seed=5)}, 10.0)
    overview = overview_of([apart], ["a", "b"])
    assert overview.improvements == {}
    assert "no agent that has runs on the same problems and seeds" in sentences.about_improvement(overview)
    assert [section.key for section in sections_of(overview)] == [
        "results",
        "means",
        "profiles",
        "efficiency",
        "time",
        "memory",
    ]


def test_few_runs_decide_nothing():
    """Three seeds of each agent on one problem: the bootstrap says [1, 1], chance in a tenth of cases."""
    overview = overview_of([Problem("p", {"a": runs([7, 8, 9]), "b": runs([1, 2, 3])}, 10.0)], ["a", "b"])
    assert overview.improvements["a", "b"].probability == (1.0, 1.0, 1.0)
    assert not overview.improvements["a", "b"].decided
    assert sentences.about_improvement(overview) == "Nothing is decided between a and b (1.00 [1.00, 1.00])."


def test_sample_efficiency():
    problems = [Problem("p", {"quick": climbing(10), "slow": climbing(60), "never": runs([1] * 4, 100)}, 10.0)]
    overview = overview_of(problems, ["quick", "slow", "never"])
    # nine tenths of 20 recent episodes: 18 episodes after the first good one
    assert overview.cells["p", "quick"].until.tolist() == [28, 29, 30, 31]
    assert np.isinf(overview.cells["p", "never"].until).all()
    assert overview.reached["quick"].value[-1] == 1.0 and overview.reached["never"].value[-1] == 0.0
    said = sentences.about_efficiency(overview)
    assert said.startswith("90 % of the ceiling was reached by 100 % of the runs of quick, half of all within ")
    assert said.endswith("None of the runs of never did.")
    cells = dict(tables.episodes_table(overview).rows)["p"]
    assert [cell.text for cell in cells] == ["30", "80", "not reached"]  # the median of 28 … 31 is 29.5
    nobody = overview_of([Problem("p", {"never": runs([1, 2])}, 10.0)], ["never"])
    assert sentences.about_efficiency(nobody) == "No run reached 90 % of the ceiling."


def test_some_runs_never_reach():
    returns = np.full(50, 9.5), np.full(50, 1.0), np.full(50, 1.0)
    mixed = of_equal_length((0, 1, 2), returns, np.ones(3), np.ones(3))
    overview = overview_of([Problem("p", {"a": mixed}, 10.0)], ["a"])
    (cell,) = dict(tables.episodes_table(overview).rows)["p"]
    assert (cell.text, cell.below) == ("not reached", "1 of 3 runs")


def test_runs_of_different_lengths():
    """A problem that ends by steps: each run has its own number of episodes."""
    problem = Problem(
        "p",
        {"a": of_equal_length((0, 1), (np.full(30, 5.0), np.full(90, 8.0)), np.array([3.0, 9.0]), np.ones(2))},
        10.0,
    )
    overview = overview_of([problem], ["a"])
    assert problem.window == 6 and overview.episodes[-1] == 90
    assert overview.means["a"].value == pytest.approx(0.65) and overview.cells["p", "a"].seconds == pytest.approx(100)


def test_sentences():
    overview = three()
    assert sentences.about_table(overview) == (
        "Agents that are the best or not significantly worse than the best: good on 2 of 3 problems (the best on 2) "
        "and partial on 1 (the best on 1); on none fair."
    )
    said = sentences.about_means(overview)
    assert said.startswith("good has the highest interquartile mean, 0.92 [")
    assert "its interval lies above those of all others that have every problem." in said
    assert "partial (0.99 [0.97, 0.99]) has finished runs on 1 of 3 problems, where good has 0.92 [" in said
    assert said.endswith("; it is not ranked with the others.")
    said = sentences.about_profiles(overview)
    assert "was collected by 100 % of the runs of good and none of fair" in said
    assert "The profile of good is nowhere below another" in said
    said = sentences.about_improvement(overview)
    assert "A run of good is more likely better than not against fair (1.00 [1.00, 1.00])." in said
    assert "A run of good is more likely worse than not against partial (0.00 [0.00, 0.00] on 1 problem)." in said
    assert "p2, the only problem that all agents have" in sentences.about_time(overview)
    assert "92 % with 5" in sentences.about_seeds(overview)


def test_sentences_claim_nothing_without_intervals():
    overview = overview_of([Problem("p", {"a": runs([7]), "b": runs([1])}, 10.0)], ["a", "b"])
    assert "without intervals it is not known" in sentences.about_means(overview)
    assert "Nothing is decided between a and b (1.00)." == sentences.about_improvement(overview)
    assert "no difference can be told from noise" in sentences.about_seeds(overview)
    assert "band" not in sentences.about_profiles(overview)


def test_overlapping_intervals_are_said():
    near = [Problem(f"p{i}", {"a": runs([5, 6, 7, 8]), "b": runs([8, 5, 6, 6.9])}, 10.0) for i in range(2)]
    overview = overview_of(near, ["a", "b"])
    assert "overlaps that of b, so this order may be noise" in sentences.about_means(overview)
    assert "Nothing is decided between a and b" in sentences.about_improvement(overview)
    crossing = {"a": runs([1, 9, 9, 9]), "b": runs([5, 5, 5, 5])}
    assert "Profiles cross" in sentences.about_profiles(overview_of([Problem("p", crossing, 10.0)], ["a", "b"]))


def test_one_agent_and_low_scores():
    overview = overview_of([Problem("p", {"only": runs([0.1, 0.2])}, 10.0)], ["only"])
    assert "only agent" in sentences.about_table(overview)
    assert sentences.about_profiles(overview) == "No run collected more than 2 % of the ceiling."
    assert sentences.about_time(overview) == "On p, 1,000 episodes take only 25 s of learning."


def test_nothing_to_show():
    with pytest.raises(ValueError, match="there must be one with a finished run"):
        overview_of([Problem("p", {}, 1.0)], ["a"])


def test_tables_in_both_forms():
    overview = three()
    table = tables.scores_table(overview)
    page, text = tables.as_html(table, {"p0": "p 0/report.html"}), tables.as_markdown(table)
    assert '<a href="p%200/report.html">p0</a>' in page and "<b>0.920 ★</b>" in page
    lines = text.splitlines()
    assert lines[0] == "| problem | good | fair | partial |" and lines[1] == "|---|---:|---:|---:|"
    assert lines[2].startswith("| p0 | **0.920 ★** [0.900, 0.940] | 0.516 [") and lines[2].endswith("| – |")
    assert lines[-1] == "| *problems* | 3 of 3 | 3 of 3 | 1 of 3 |"
    square = tables.as_markdown(tables.improvement_table(overview))
    assert "**▲ 1.00** [1.00, 1.00]" in square and "▼ 0.00 [0.00, 0.00]" in square


def test_labels_are_escaped():
    label = "<b>|$x"
    overview = overview_of([Problem(label, {label: runs([1, 2])}, 10.0)], [label])
    table = tables.scores_table(overview)
    assert "&lt;b&gt;|$x" in tables.as_html(table) and "<b>|" not in tables.as_html(table)
    assert "<b>\\|$x" in tables.as_markdown(table)
