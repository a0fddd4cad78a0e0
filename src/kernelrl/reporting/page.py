"""The page of a report on one problem, which needs no network, and the figures beside it.

On a screen the curves and maps are plotly.js charts; on paper, and where scripts are off, the page shows matplotlib
figures instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from kernelrl.reporting import tables
from kernelrl.reporting.certified import Intervals, certified_section
from kernelrl.reporting.charts import curve_charts, map_data
from kernelrl.reporting.document import NAME, described, files_list, lines_of, picture, rendered, write_text
from kernelrl.reporting.drawing import save_all
from kernelrl.reporting.figures import draw_all, window_of
from kernelrl.reporting.learnt import EVALUATION_EPISODES
from kernelrl.reporting.summary import Summary, summarize

__all__ = ["Part", "write_page"]


class Part(NamedTuple):
    """What a page says of the experiment that it is a part of."""

    problem: str = ""
    back: str = ""
    """A link to the page of all problems."""
    order: Sequence[str] = ()
    """The labels of all agents, so that each has the same colour on all pages."""


WHOLE = Part()


def write_page(store: Any, out: Path, say: Callable[[str], None], part: Part = WHOLE) -> Path:
    """Write the page of a store into the folder `out`."""
    summary = summarize(store, say, maps=True, order=part.order)
    say("Drawing")
    files = save_all(draw_all(summary), out)
    return write_text(out / NAME, render(summary, files, part))


def render(summary: Summary, files: dict[str, list[Path]], part: Part = WHOLE) -> str:
    """The page as text."""
    data = {"charts": curve_charts(summary), "maps": map_data(summary)}
    recent = RETURN.format(window_of(summary))
    sections = [
        ("results", "Results", results(summary)),
        ("environment", "Environment", environment(summary, files)),
        ("reward", "Total reward", curve(summary, ["total-reward"], "total-reward", REWARD, files, optimum=True)),
        ("regret", "Regret", regret_section(summary, files)),
        ("return", "Return per episode", curve(summary, ["return"], "return", recent, files, optimum=True)),
        ("time", "Learning time", curve(summary, ["time"], "time", TIME, files)),
        *optimism_section(summary),
        *bounds_section(summary, files),
        ("maps", "What the agents knew", maps_section(summary, files)),
        ("configuration", "Configuration and versions", configuration(summary, files)),
    ]
    title = ", ".join(filter(None, (str(summary.experiment["name"]), part.problem)))
    return rendered(title, part.back + header(summary, title), summary.notes, sections, data)


def header(summary: Summary, title: str) -> str:
    """The title and what was run."""
    seeds = sorted({seed for c in summary.curves for seed in c.seeds})
    count = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    unit = "steps" if "steps" in summary.experiment else "episodes"
    facts = [summary.environment, f"{summary.experiment[unit]:,} {unit}", count]
    if summary.optimal is not None:
        facts.append(f"optimal value {summary.optimal.start_value:.3f} per episode")
    return f'<h1>{escape(title)}</h1><p class="facts">{escape(" · ".join(facts))}</p>'


def results(summary: Summary) -> str:
    """The table of results, and which differences are significant."""
    few = max(len(c.seeds) for c in summary.curves)
    text = (
        "Means over seeds, in brackets Student's 95 % intervals of the means. "
        f"The deployed policy of each run was played for {EVALUATION_EPISODES:,} episodes without learning. "
    )
    if few == 1:
        text = text.replace(", in brackets Student's 95 % intervals of the means", "; one seed gives no intervals")
    elif few < 5:
        text += f"With {few} seeds intervals are wide, and they hold for numbers that are roughly normal. "
    if summary.optimal is None:
        text += f"{summary.no_optimal} Therefore regret and the fraction of the ceiling are left out."
    table, differences = tables.results(summary), tables.differences(summary)
    return f"<p>{escape(text)}</p>{table}<h3>Which differences are beyond noise</h3>{differences}"


def environment(summary: Summary, files: dict[str, list[Path]]) -> str:
    """The paper's first figure."""
    name = escape(summary.environment)
    if "environment" not in files:
        return f"<p>There is no drawing of {name}.</p>"
    caption = "The rooms, where episodes start, and the reward of each state; states in the grey wall do not exist."
    drawing = picture("picture", f"Drawing of {summary.environment}", files["environment"])
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"


REWARD = "Sum of the rewards of all episodes so far: mean over seeds, with Student's 95 % interval of the mean."
RETURN = "Mean return of the last {:,} episodes: mean over seeds, with Student's 95 % interval of the mean."
TIME = (
    "Time spent learning, on a logarithmic axis: geometric mean over seeds, with Student's 95 % interval of "
    "the mean of the logarithms."
)


def curve(
    summary: Summary, charts: list[str], figure: str, caption: str, files: dict[str, list[Path]], optimum: bool = False
) -> str:
    """Charts for the screen, side by side under one legend, and their figure for paper."""
    boxes = "".join(
        f'<figure><div class="chart" id="chart-{name}" {described(caption)}></div></figure>' for name in charts
    )
    boxes = f'<div class="pair screen">{boxes}</div>' if len(charts) > 1 else boxes
    legend = tables.legend(summary, optimum and summary.optimal is not None)
    static = picture("static", caption, files[figure])
    return f'<div class="whole">{legend}{boxes}{static}<p class="quiet">{escape(caption)}</p></div>'


def regret_section(summary: Summary, files: dict[str, list[Path]]) -> str:
    """Regret, or why there is none."""
    if summary.optimal is None:
        return f"<p>{escape(summary.no_optimal)} There is no regret to show.</p>"
    caption = (
        f"Episodes × {summary.optimal.start_value:.3f} (the optimal value) minus the rewards collected, on linear and "
        "on logarithmic axes. Mean over seeds, with Student's 95 % interval of the mean."
    )
    return curve(summary, ["regret", "regret-log"], "regret", caption, files) + tables.exponents(summary)


def optimism_section(summary: Summary) -> list[tuple[str, str, str]]:
    """How optimistic the monitored labels were; nothing if there are none."""
    if all(c.below is None for c in summary.curves):
        return []
    return [("optimism", "Optimism", f"<p>{escape(OPTIMISM)}</p>{tables.optimism(summary)}")]


def bounds_section(summary: Summary, files: dict[str, list[Path]]) -> list[tuple[str, str, str]]:
    """Certified bounds of the labels that have them; nothing if no model is declared."""
    labels = {label for label, part in summary.certified.items() if isinstance(part, Intervals)}
    return certified_section(summary, files, tables.legend(summary, summary.optimal is not None, labels))


OPTIMISM = (
    "Guarantees depend on values V that are never below the optimal V*; where V < V*, an agent may give up a good "
    "action for ever. The share of visited states with V < V* is the mean over seeds, the largest V* − V that of all "
    "seeds, in the environment's units of reward; V* is computed to about 0.001. Monitored runs take longer, but learn "
    "the same."
)


def maps_section(summary: Summary, files: dict[str, list[Path]]) -> str:
    """The maps with their controls, and the figures for paper."""
    if not summary.maps:
        return "<p>Maps are drawn only for states in a box of two dimensions, and only of kernelrl's own agents.</p>"
    boxes = "".join(
        f'<figure id="map-figure-{name}"><h3>{title}</h3><div class="map" id="map-{name}" {described(title)}></div>'
        f"{tables.action_legend(summary) if name == 'policy' else ''}</figure>"
        for name, title in MAP_TITLES.items()
    )
    seeds = sorted({m.seed for m in summary.maps})
    seed = (
        f"Each map shows one run, seed {' or '.join(map(str, seeds))}. Steps count from 0. V, B and Q are in "
        "the environment's units of reward; C and B are on logarithmic scales. Grey areas have no states."
    )
    pictures = "".join(picture("static", f"Maps of {m.label}", files[m.file], ".png") for m in summary.maps)
    boxes = f'<p class="quiet screen" id="map-missing"></p><div class="maps">{boxes}</div>'
    return f'{CONTROLS}{boxes}{pictures}<p class="quiet">{seed}</p>'


MAP_TITLES = {
    "value": "Optimistic value V",
    "count": "Generalized count C, all actions together",
    "bonus": "Bonus B of the action with the largest optimistic Q",
    "policy": "Deployed policy",
    "partition": "Partition of the action, coloured by Q",
}
CONTROLS = """<div class="controls">
<label>algorithm <select id="map-label"></select></label>
<label><span>step <output id="map-step-value"></output></span>
<input id="map-step" type="range" min="0" value="0"></label>
<label><span>after episodes <output id="map-episode-value"></output></span>
<input id="map-episode" type="range" min="0" value="0"></label>
<label id="map-action-label">action of the partition <select id="map-action"></select></label>
</div>"""


def configuration(summary: Summary, files: dict[str, list[Path]]) -> str:
    """What was run, with what, and which files there are."""
    return (
        f"<h3>The experiment</h3><pre>{escape(lines_of(summary.experiment))}</pre>"
        f"<h3>All hyper-parameters, defaults included</h3>{tables.hyper_parameters(summary)}"
        f"<h3>Versions and machines</h3>{tables.versions(summary)}{files_list(files)}"
    )
