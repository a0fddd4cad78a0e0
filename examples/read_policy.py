"""A policy from a JSON file of `agent.export("policy.json")`, in plain Python: a model for readers in other languages.

`docs/export.md` says what is in the file. Representatives and samples are looked at one by one here, without the index
that the file also has. Local bandwidths, several bandwidths, functions of users and kernels other than the Gaussian are
left out; the C header has them all.

    python examples/read_policy.py policy.json 3 0.1 0.2        # the step and the state
"""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

Numbers = Sequence[float]


class Policy:
    """`policy(state, step)` is the action: a number, or a list for continuous actions."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self.file = json.load(file)
        self.table = {name: table["values"] for name, table in self.file["tables"].items()}
        self.shape = {name: table["shape"] for name, table in self.file["tables"].items()}

    def __call__(self, state: Numbers, step: int) -> Any:
        """The action in `state` at `step`, from 0."""
        table, file = self.table, self.file
        x = [min(max(low, s), high) for s, low, high in zip(state, table["low"], table["high"], strict=True)]
        step = min(max(step, 0), file["horizon"] - 1)
        row = table["rows"][step] if "rows" in table else step
        number = getattr(self, file["kind"].replace(" ", "_"))(x, row, step)
        if file["action_axes"] is None:
            return file["first_action"] + number
        action: list[float] = []
        for j in reversed(range(file["action_axes"])):
            number, i = divmod(number, len(table[f"action_{j}"]))
            action.insert(0, table[f"action_{j}"][i])
        return action

    def grid(self, x: Numbers, row: int, step: int) -> int:
        """One action for each cell."""
        table, cell = self.table, 0
        for s, origin, per_width, bins in zip(x, table["origin"], table["per_width"], table["bins"], strict=True):
            cell = cell * bins + min(int((s - origin) * per_width), bins - 1)
        return int(table["best"][row * self.shape["best"][1] + cell])

    def digits(self, x: Numbers) -> list[int]:
        """The binary digits of a state in the unit box, as whole numbers."""
        most, table = 2 ** self.file["digits"], self.table
        places = zip(x, table["origin"], table["per_width"], strict=True)
        return [min(int((s - origin) * per_width * most), most - 1) for s, origin, per_width in places]

    def trees(self, x: Numbers, row: int, step: int) -> int:
        """A tree for each action; a node is its first child or, below 0, -1 - rank."""
        place, nodes, ranks = self.digits(x), self.table["nodes"], []
        for a in range(self.file["trees"]):
            node, k = nodes[row * self.file["trees"] + a], self.file["digits"]
            while node >= 0:
                k -= 1
                node = nodes[node + int("".join(str((p >> k) & 1) for p in place), 2)]
            ranks.append(-1 - node)
        return ranks.index(max(ranks))

    def joint_trees(self, x: Numbers, row: int, step: int) -> int:
        """One tree of states and actions; the action is the centre of the best leaf."""
        place, nodes, axes, finest = self.digits(x), self.table["nodes"], self.file["axes"], self.file["finest"]
        last, best, found = 2 << finest, -1, 0
        stack = [(nodes[row], 0, sum(last // 2 * (last + 1) ** j for j in range(axes)))]
        while stack:
            node, depth, centre = stack.pop()
            if node < 0:
                best, found = (-1 - node, centre) if -1 - node > best else (best, found)
                continue
            half = int("".join(str((p >> (self.file["digits"] - 1 - depth)) & 1) for p in place), 2)
            shift = 1 << (finest - 1 - depth)
            for i in range(1 << axes):
                moved = sum((1 if (i >> j) & 1 else -1) * shift * (last + 1) ** j for j in range(axes))
                stack.append((nodes[node + (half << axes) + i], depth + 1, centre + moved))
        return found

    def place(self, x: Numbers, step: int) -> list[float]:
        """The state as it is compared."""
        places = self.file["places"]
        if places["fold"] or places["distance"]:
            raise NotImplementedError("this policy has a function of the user's, which the file has in C")
        own = [s * scale for s, scale in zip(x, self.table["scale"], strict=True)]
        return [*own, step * places["step_scale"]] if places["step_scale"] > 0 else own

    def square(self, name: str, v: int, x: Numbers) -> float:
        """The squared distance between point `v` and a place."""
        n, p, points = len(x), float(self.file["places"]["p"]), self.table[name]
        gaps = [abs(points[v * n + j] - x[j]) for j in range(n)]
        if p == 2.0:
            return float(sum(gap * gap for gap in gaps))
        return float(max(gaps) ** 2 if p == math.inf else sum(gap**p for gap in gaps) ** (2.0 / p))

    def row(self, name: str, i: int) -> list[float]:
        """Row `i` of a table with one column for each action."""
        A = self.file["actions"]
        found: list[float] = self.table[name][i * A : i * A + A]
        return found

    def representatives(self, state: Numbers, row: int, step: int) -> int:
        """The action of the nearest representative, or the best of a mean of values around the state."""
        file, x, U = self.file, self.place(state, step), self.shape["points"][0]
        squares = [self.square("points", v, x) for v in range(U)]
        nearest = min(range(U), key=squares.__getitem__)
        if file["reading"] == "nearest":
            if squares[nearest] <= file["merge"] ** 2 or file["elsewhere"] == "nearest":
                return int(self.table["best"][row * U + nearest])
            return first_largest(self.estimate(squares, row))
        radius = file["blend"] * file["merge"]
        shares = {v: (1 - math.sqrt(s) / radius) ** 2 for v, s in enumerate(squares) if s < radius * radius}
        if not shares and file["elsewhere"] == "nearest":
            return first_largest(self.row("values", row * U + nearest))
        if not shares:
            return first_largest(self.estimate(squares, row))
        total, q = sum(shares.values()), [0.0] * file["actions"]
        for v, share in shares.items():
            q = [old + share / total * new for old, new in zip(q, self.row("values", row * U + v), strict=True)]
        return first_largest(q)

    def estimate(self, squares: Numbers, row: int) -> list[float]:
        """Values where no representative is near: a weighted sum over all."""
        given, U, A = self.file["estimates"], len(squares), self.file["actions"]
        if given["kernel"] != "gaussian" or "local" in given or "bonus_form" in given:
            raise NotImplementedError("only the Gaussian kernel with one bandwidth is read here")
        pool = row if self.shape["counts"][0] > 1 else 0
        count, total = [given["beta"]] * A, [0.0] * A
        for v, square in enumerate(squares):
            if square <= self.table["reach_squared"][0]:
                w = math.exp(-0.5 * square * self.table["inverse_sigma2"][0])
                count = [c + w * n for c, n in zip(count, self.row("counts", pool * U + v), strict=True)]
                total = [t + w * s for t, s in zip(total, self.row("sums", row * U + v), strict=True)]
        return [t / c for t, c in zip(total, count, strict=True)]

    def samples(self, state: Numbers, row: int, step: int) -> int:
        """A weighted sum over the samples of each action, without chunks whose boxes are too far away."""
        file, table, x, q = self.file, self.table, self.place(state, step), []
        n, N, A = len(x), self.shape["points"][0], file["actions"]
        for a in range(A):
            first, count, total = (0 if file["pooled"] else row) * A + a, 0.0, 0.0
            for c in range(table["lists"][first], table["lists"][first + 1]):
                low, high = (table["boxes"][c * 2 * n + i * n : c * 2 * n + i * n + n] for i in range(2))
                gaps = [max(0.0, b - s, s - t) for b, s, t in zip(low, x, high, strict=True)]
                gap = sum(g * g for g in gaps) if float(file["places"]["p"]) <= 2.0 else max(gaps) ** 2
                if gap <= file["reach"] ** 2:
                    for k in range(table["ends"][c], table["ends"][c + 1]):
                        w = math.exp(-0.5 * self.square("points", k, x) * file["inverse_sigma2"])
                        count += w
                        total += w * table["targets"][(row if file["pooled"] else 0) * N + k]
            q.append(total / (file["beta"] + count))
        return first_largest(q)


def first_largest(q: Numbers) -> int:
    """The first of the largest."""
    return max(range(len(q)), key=q.__getitem__)


if __name__ == "__main__":
    print(Policy(sys.argv[1])([float(s) for s in sys.argv[3:]], int(sys.argv[2])))
