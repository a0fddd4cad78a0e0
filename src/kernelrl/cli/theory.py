"""`kernelrl theory`."""

from __future__ import annotations

import json as jsonlib
import math
from typing import Annotated, Any

import typer

from kernelrl.cli.options import EnvId, Json, find_modules_here

__all__ = ["theory"]


def theory(
    env: EnvId,
    episodes: Annotated[int, typer.Option(help="Number of episodes K.")] = 50_000,
    delta: Annotated[float, typer.Option(help="Probability δ with which the guarantees may fail.")] = 0.05,
    bandwidth: Annotated[float | None, typer.Option(help="σ; default diameter·K^(-1/(2d+1)).")] = None,
    regularization: Annotated[float, typer.Option(help="β.")] = 0.01,
    kernel: Annotated[str, typer.Option(help="gaussian or compact.")] = "gaussian",
    lipschitz: Annotated[
        tuple[float, float] | None, typer.Option(help="λ_r and λ_p; known for kernelrl's own environments.")
    ] = None,
    stationary: Annotated[bool, typer.Option("--stationary/--per-step", help="Pool the data of all steps.")] = True,
    json: Json = False,
) -> None:
    """Show what the theory says about an environment."""
    from kernelrl.theory import summarise

    find_modules_here()
    answer = summarise(
        env, episodes, delta=delta, bandwidth=bandwidth, regularization=regularization, kernel=kernel,
        stationary=stationary, lipschitz=lipschitz,
    )  # fmt: skip
    if json:
        print(jsonlib.dumps(answer))
    else:
        show(answer)


def number(x: float) -> str:
    """Four figures, powers of ten where that is shorter."""
    if 1e4 <= abs(x) < 1e6:
        return f"{x:,.0f}"
    return f"{x:,.4g}" if 1e-3 <= abs(x) < 1e4 or x == 0 else f"{x:.2e}"


def show(answer: dict[str, Any]) -> None:
    """Print `answer` as tables."""
    from rich.console import Console

    console = Console(highlight=False)
    for part in (facts, bonus_rows, regret_rows, rate_rows):
        console.print(part(answer))
    console.print(verdict(answer))


def facts(answer: dict[str, Any]) -> Any:
    """The problem and its constants."""
    from rich.table import Table

    table = Table(title=f"{answer['environment']}, {answer['episodes']:,} episodes, δ = {answer['delta']:g}")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    reward, transition = answer["lipschitz_constants"]
    note = "" if answer["lipschitz_known"] else " (not known: log K is used for L₁)"
    L, covers = answer["lipschitz"], answer["log_covering"]
    rows = {
        "horizon H, actions A": f"{answer['horizon']}, {answer['actions']}",
        "bandwidth σ, regularization β": f"{number(answer['bandwidth'])}, {number(answer['regularization'])}",
        "data": "pooled, replanned each step" if answer["stationary"] else "per step",
        "λ_r, λ_p" + note: f"{number(reward)}, {number(transition)}",
        "L_h at the first, middle and last step": ", ".join(number(L[i]) for i in (0, len(L) // 2, -1)),
        "σ-covering number of states": number(math.exp(covers["states"])),
        "… of state-action pairs": number(math.exp(covers["state_actions"])),
        "log of the covering number in the full bonus": number(covers["full_bonus"]),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def bonus_rows(answer: dict[str, Any]) -> Any:
    """Each bonus against the count; those above the cap are dim."""
    from rich.table import Table

    bonuses, cap = answer["bonuses"], answer["cap"]
    table = Table(title=f"Bonuses of the first step; above the cap of {cap:g} (dim) no value moves")
    table.add_column("count C", justify="right")
    names = [name for name in bonuses if name != "count"]
    for name in names:
        table.add_column(name, justify="right")
    for i, count in enumerate(bonuses["count"]):
        values = (bonuses[name][i] for name in names)
        table.add_row(
            f"{count:,.0f}", *(f"[dim]{number(v)}[/]" if v >= cap else f"[bold]{number(v)}[/]" for v in values)
        )
    table.add_section()
    first = (next((c for c, v in zip(bonuses["count"], bonuses[name], strict=True) if v < cap), None) for name in names)
    table.add_row("below cap from", *("never" if count is None else f"{count:,.0f}" for count in first))
    return table


def regret_rows(answer: dict[str, Any]) -> Any:
    """The terms of the regret bounds."""
    from rich.table import Table

    regret = answer["regret"]
    table = Table(title="Regret bounds, term by term")
    table.add_column("term")
    table.add_column("Kernel-UCBVI", justify="right")
    table.add_column("Greedy", justify="right")
    for name in regret["kernel_ucbvi"]:
        style = "bold" if name == "total" else ""
        cells = (number(regret[which][name]) for which in ("kernel_ucbvi", "greedy"))
        table.add_row(name.replace("_", " "), *cells, style=style)
    of = "K·V*₁" if regret["start_value"] is not None else "K·H (V* is not known)"
    table.add_row(of, *[number(regret["ceiling"])] * 2)
    return table


def rate_rows(answer: dict[str, Any]) -> Any:
    """Rates of other algorithms and the lower bound."""
    from rich.table import Table

    table = Table(title="Rates, without constants and logarithms")
    for column in ("algorithm", "rate"):
        table.add_column(column)
    table.add_column("here", justify="right")
    for rate in answer["rates"]["bounds"]:
        table.add_row(rate["name"], f"H^{rate['horizon_power']:g}·K^{rate['episode_power']:.3g}", number(rate["value"]))
    return table


def verdict(answer: dict[str, Any]) -> str:
    """One sentence on whether the bounds are informative."""
    regret = answer["regret"]
    total, ceiling = regret["kernel_ucbvi"]["total"], regret["ceiling"]
    word = "says something" if total < ceiling else "says nothing"
    start = regret["says_something_from"]
    when = "10^80 episodes are not enough" if start is None else f"it would from about 10^{math.log10(start):.0f} on"
    more = "" if total < ceiling else f"; with σ = diameter·K^(-1/(2d+1)), {when}"
    return (
        f"At {answer['episodes']:,} episodes the regret bound {word} ({number(total)} against {number(ceiling)}){more}."
    )
