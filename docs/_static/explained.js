"use strict";
/* The figure of docs/explained.md that readers move: an estimate, its bonus and the optimistic value in an episode of one
   step, by the formulas of that page. The samples are in explained_samples.js. Without scripts the page has its pictures. */
(function () {
  const box = document.getElementById("try-kernel"), samples = window.explainedSamples;
  if (!box || !samples) return;
  const BETA = 0.1, POINTS = 201, W = 720, H = 320, LEFT = 44, RIGHT = 10, TOP = 12, BOTTOM = 40;
  const px = (x) => LEFT + x * (W - LEFT - RIGHT), py = (v) => H - BOTTOM - ((v + 0.1) / 1.2) * (H - TOP - BOTTOM);
  const grid = Array.from({ length: POINTS }, (_, i) => i / (POINTS - 1));
  const truth = (x) => 0.5 + 0.35 * Math.sin(2 * Math.PI * x) * Math.exp(-x);

  const sliders = [  // name, label, position at first, from position 0 … 100 to number, number as text
    ["number", "samples", 72, (p) => Math.round(Math.pow(300, p / 100)), String],
    ["bandwidth", "bandwidth σ", 49, (p) => 0.01 * Math.pow(40, p / 100), (v) => v.toFixed(3)],
    ["bonus", "bonus, times", 50, (p) => p / 50, (v) => v.toFixed(2)],
  ];
  const controls = sliders.map(([name, label, first]) =>
    `<label><span>${label} <output></output></span><input type="range" min="0" max="100" value="${first}" name="${name}"></label>`);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((t) =>
    `<text x="${px(t)}" y="${H - BOTTOM + 16}" text-anchor="middle">${t}</text><text x="${LEFT - 6}" y="${py(t) + 4}" text-anchor="end">${t}</text>` +
    `<path class="grid" d="M${px(0)} ${py(t)}H${px(1)}"/>`).join("");
  box.innerHTML = `<div class="try-controls">${controls.join("")}</div>
    <svg viewBox="0 0 ${W} ${H}" role="img">${ticks}
    <path class="band"/><path class="truth"/><path class="estimate"/><path class="upper"/><path class="samples"/>
    <text x="${px(0.5)}" y="${H - 4}" text-anchor="middle">state x</text></svg>
    <p class="try-keys"><span class="upper">optimistic value</span><span class="estimate">estimate, without bonus</span>
    <span class="truth">truth</span><span class="samples">samples (rewards 0 or 1)</span></p><p class="try-said" role="status"></p>`;
  const inputs = [...box.querySelectorAll("input")], outputs = [...box.querySelectorAll("output")];

  function curves(number, bandwidth, times) {
    const estimate = [], upper = [];
    for (const x of grid) {
      let count = BETA, sum = 0;
      for (let s = 0; s < number; s++) {
        const z = (x - samples.x[s]) / bandwidth, w = Math.exp(-z * z / 2);
        count += w;
        sum += w * samples.r[s];
      }
      estimate.push(Math.min(1, sum / count));
      upper.push(Math.min(1, sum / count + times * (0.4 / Math.sqrt(count) + 0.1 / count)));
    }
    return { x: grid, estimate: estimate, upper: upper };
  }

  const points = (values) => values.map((v, i) => `${px(grid[i]).toFixed(1)} ${py(v).toFixed(1)}`);
  const line = (values) => "M" + points(values).join("L");

  function show() {
    const values = inputs.map((input, i) => sliders[i][3](Number(input.value)));
    const [number, bandwidth, times] = values, shown = curves(number, bandwidth, times);
    values.forEach((v, i) => {
      outputs[i].textContent = sliders[i][4](v);
      inputs[i].setAttribute("aria-valuetext", sliders[i][4](v));
    });
    const draw = (name, d) => box.querySelector("path." + name).setAttribute("d", d);
    draw("upper", line(shown.upper));
    draw("estimate", line(shown.estimate));
    draw("truth", line(grid.map(truth)));
    draw("band", `M${[...points(shown.upper), ...points(shown.estimate).reverse()].join("L")}Z`);
    draw("samples", samples.x.slice(0, number).map((x, s) => `M${px(x).toFixed(1)} ${py(samples.r[s] * 1.1 - 0.05) - 4}v8`).join(""));
    const capped = shown.upper.filter((v) => v > 0.9999).length / POINTS;
    const error = shown.estimate.reduce((sum, v, i) => sum + Math.abs(v - truth(grid[i])), 0) / POINTS;
    const text = `The value is at the cap of 1 on ${(100 * capped).toFixed(0)} % of the states. The estimate is ${error.toFixed(2)} from the truth on average.`;
    box.querySelector(".try-said").textContent = text;
    box.querySelector("svg").setAttribute("aria-label", `Estimate and optimistic value against the state, with ${number} samples, bandwidth ${bandwidth.toFixed(3)} and ${times.toFixed(2)} times the bonus. ${text}`);
    box.shown = shown;
  }

  for (const input of inputs) input.addEventListener("input", show);
  box.hidden = false;
  show();
})();
