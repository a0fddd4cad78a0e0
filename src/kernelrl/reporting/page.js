"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("screen and (prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const font = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif", size: 13 };
  // Exactly these buttons: what plotly.js adds by itself depends on its version, and some of it sends the data elsewhere.
  const buttons = [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]];
  const config = { responsive: true, displaylogo: false, modeBarButtons: buttons, plotlyServerURL: "" };

  function themed(layout) {  // the page's colours, and a tool bar above the drawing, where it covers nothing
    const axis = { gridcolor: colour("grid"), linecolor: colour("soft"), tickcolor: colour("soft") };
    layout = Object.assign({ plot_bgcolor: colour("page") }, layout, { paper_bgcolor: colour("page") });
    layout.font = Object.assign({}, font, layout.font, { color: colour("ink") });
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colour("soft"), activecolor: colour("ink"), orientation: "h" };
    layout.hoverlabel = { bgcolor: colour("wash"), font: { color: colour("ink") } };
    for (const name of ["xaxis", "yaxis"]) layout[name] = Object.assign({}, layout[name], axis);
    return layout;
  }

  function visible(traces) {  // black and dark grey lines would not be seen in the dark
    if (!dark.matches) return traces;
    const swap = (key, value) => (value === "#000000" ? "#f0f0f0" : value === "#555555" ? "#b8b8b8" : value);
    return JSON.parse(JSON.stringify(traces), swap);
  }

  function draw(div, chart) {
    const layout = themed(Object.assign({ margin: { l: 62, r: 30, t: 34, b: 48 } }, chart.layout));
    return Plotly.react(div, visible(chart.data), layout, config);
  }

  function drawAll() {
    for (const [name, chart] of Object.entries(data.charts)) draw(document.getElementById("chart-" + name), chart);
  }

  drawAll();
  dark.addEventListener("change", drawAll);
  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const div of button.closest("section").querySelectorAll(".chart")) {
        const traces = div.data.map((trace, i) => [trace.legendgroup, i]).filter((pair) => pair[0] === button.dataset.group);
        if (traces.length) Plotly.restyle(div, { visible: shown }, traces.map((pair) => pair[1]));
      }
    });
  }
  if (data.maps) new Maps(data.maps).show();

  // ---------------------------------------------------------------------------------------------------- maps

  function words(packed) {  // 16-bit numbers from base64
    const bytes = Uint8Array.from(atob(packed.bdata), (c) => c.charCodeAt(0));
    return new Uint16Array(bytes.buffer);
  }

  function Maps(maps) {
    const at = (id) => document.getElementById(id);
    const which = at("map-label"), step = at("map-step"), episode = at("map-episode"), action = at("map-action");
    const w = maps.x.length, h = maps.y.length;
    const names = ["value", "count", "bonus", "policy", "partition"];
    let entry = null;

    maps.labels.forEach((one, i) => which.add(new Option(one.label, String(i))));
    maps.actions.forEach((name, a) => action.add(new Option(name, String(a))));

    function nearest(list, wanted) {
      return list.reduce((best, v, i) => (Math.abs(v - wanted) < Math.abs(list[best] - wanted) ? i : best), 0);
    }

    function choose() {  // another algorithm: its own steps, episodes and fields, at the same step and episode if it can
      const seen = entry && { step: entry.steps[Number(step.value)], episode: entry.episodes[Number(episode.value)] };
      entry = maps.labels[Number(which.value)];
      if (!entry.words) {
        entry.words = {};
        for (const [name, packed] of Object.entries(entry.fields)) entry.words[name] = words(packed);
        if (entry.leaves) entry.words.partition = words(entry.leaves);
      }
      step.max = String(entry.steps.length - 1);
      episode.max = String(entry.episodes.length - 1);
      step.value = String(seen ? nearest(entry.steps, seen.step) : 0);
      episode.value = seen ? String(nearest(entry.episodes, seen.episode)) : episode.max;
      for (const name of names) at("map-figure-" + name).hidden = !entry.words[name];
      at("map-action-label").hidden = !entry.leaves;
      const missing = names.slice(0, 3).filter((name) => !entry.words[name]);
      at("map-missing").textContent = missing.length ? "This agent has no " + missing.join(" and no ") + " to show." : "";
      show();
    }

    function field(name, e, s) {  // (h, w), numbers as they are, null where no state can be
      const packed = entry.fields[name], all = entry.words[name], size = w * h;
      const begin = (e * entry.steps.length + s) * size, scale = (packed.high - packed.low) / 65534, rows = [];
      for (let j = 0; j < h; j++) {
        const row = new Array(w);
        for (let i = 0; i < w; i++) {
          const v = all[begin + j * w + i];
          row[i] = v === 65535 ? null : packed.low + scale * v;
        }
        rows.push(row);
      }
      return rows;
    }

    function base(extra) {
      const plain = { showgrid: false, zeroline: false, ticks: "outside" };
      const layout = {
        font: { size: 12 }, margin: { l: 48, r: 8, t: 32, b: 42 }, plot_bgcolor: dark.matches ? "#555555" : "#d9d9d9",
        xaxis: Object.assign({ range: [maps.low[0], maps.high[0]], constrain: "domain", title: { text: "x₁", standoff: 4 } }, plain),
        yaxis: Object.assign({ range: [maps.low[1], maps.high[1]], constrain: "domain", title: { text: "x₂", standoff: 4 } }, plain, maps.equal ? { scaleanchor: "x" } : {}),
        showlegend: false,
      };
      return themed(Object.assign(layout, extra));
    }

    function height(div) {
      const inner = Math.max(120, div.clientWidth - 130);
      const ratio = maps.equal ? (maps.high[1] - maps.low[1]) / (maps.high[0] - maps.low[0]) : 0.7;
      return Math.min(444, 74 + inner * ratio);
    }

    function logTicks(low, high) {
      const values = [], text = [];
      const stride = Math.max(1, Math.ceil((high - low) / 5));
      for (let p = Math.ceil(low); p <= high; p += stride) { values.push(p); text.push(p > -4 && p < 6 ? Math.pow(10, p).toLocaleString("en", { maximumFractionDigits: 4 }) : "10<sup>" + p + "</sup>"); }
      if (values.length < 2) return { tickvals: [low, high], ticktext: [low, high].map((p) => Number(Math.pow(10, p).toPrecision(2)).toString()) };
      return { tickvals: values, ticktext: text };
    }

    function bar(letter, ticks) {
      return Object.assign({ thickness: 12, len: 1, outlinewidth: 0, xpad: 6, title: { text: letter, side: "top" } }, ticks);
    }

    function heat(name, e, s) {
      const z = field(name, e, s), packed = entry.fields[name];
      const trace = { type: "heatmap", x: maps.x, y: maps.y, z: z, colorscale: "Cividis", hoverongaps: false };
      if (name === "policy") {
        const n = maps.actions.length;
        trace.colorscale = maps.colours.flatMap((c, a) => [[a / n, c], [(a + 1) / n, c]]);
        Object.assign(trace, { zmin: -0.5, zmax: n - 0.5, showscale: false });
        trace.text = z.map((row) => row.map((a) => (a === null ? "" : maps.actions[Math.round(a)])));
        trace.hovertemplate = "(%{x:.3~g}, %{y:.3~g})<br>%{text}<extra></extra>";
      } else if (name === "value") {
        const unit = packed.low === 0 && packed.high === entry.horizon;  // rewards from 0 to 1
        const most = unit ? entry.horizon - entry.steps[s] : packed.high;
        Object.assign(trace, { zmin: packed.low, zmax: most, colorbar: bar("V") });
        trace.hovertemplate = "(%{x:.3~g}, %{y:.3~g})<br>%{z:.4~g}<extra></extra>";
      } else {
        const ticks = logTicks(packed.low, packed.high);
        Object.assign(trace, { zmin: packed.low, zmax: packed.high, colorbar: bar(name === "count" ? "C" : "B", ticks) });
        trace.text = z.map((row) => row.map((p) => (p === null ? "" : Number(Math.pow(10, p).toPrecision(3)).toString())));
        trace.hovertemplate = "(%{x:.3~g}, %{y:.3~g})<br>%{text}<extra></extra>";
      }
      return name === "policy" && maps.signs.length ? [trace, signs(z)] : [trace];
    }

    function signs(z) {  // the actions at some of the cells, for those who cannot tell colours apart
      const every = Math.max(1, Math.floor(w / 10)), first = Math.floor(every / 2), x = [], y = [], text = [], ink = [];
      for (let j = first; j < h; j += every) for (let i = first; i < w; i += every) {
        if (z[j][i] === null) continue;
        const a = Math.round(z[j][i]);
        x.push(maps.x[i]); y.push(maps.y[j]); text.push(maps.signs[a]); ink.push(maps.inks[a]);
      }
      return { type: "scatter", mode: "text", x: x, y: y, text: text, textfont: { color: ink, size: 12 }, hoverinfo: "skip" };
    }

    function partition(e, s, a) {  // a picture of the leaves, coloured by Q, and their outlines
      const all = entry.words.partition, ends = entry.leaves.ends, top = entry.leaves.top;
      const number = (e * entry.steps.length + s) * entry.actions + a;
      const first = number ? ends[number - 1] : 0, W = 256, H = 256;
      const z = Array.from({ length: H }, () => new Array(W).fill(null)), x = [], y = [];
      const place = (v, j) => maps.low[j] + (maps.high[j] - maps.low[j]) * v;
      for (let n = first; n < ends[number]; n++) {
        const [x0, y0, x1, y1] = [0, 1, 2, 3].map((k) => all[5 * n + k] / 65534), q = (all[5 * n + 4] / 65534) * top;
        for (let j = Math.round(y0 * H); j < Math.round(y1 * H); j++) z[j].fill(q, Math.round(x0 * W), Math.round(x1 * W));
        x.push(place(x0, 0), place(x1, 0), place(x1, 0), place(x0, 0), place(x0, 0), null);
        y.push(place(y0, 1), place(y0, 1), place(y1, 1), place(y1, 1), place(y0, 1), null);
      }
      const centres = (j, n) => Array.from({ length: n }, (_, i) => place((i + 0.5) / n, j));
      return [
        { type: "heatmap", x: centres(0, W), y: centres(1, H), z: z, zmin: 0, zmax: top, colorscale: "Cividis", colorbar: bar("Q"), hovertemplate: "(%{x:.3~g}, %{y:.3~g})<br>%{z:.4~g}<extra></extra>" },
        { type: "scatter", mode: "lines", x: x, y: y, hoverinfo: "skip", line: { color: "#ffffff", width: 0.7 } },
      ];
    }

    function show() {
      const e = Number(episode.value), s = Number(step.value);
      at("map-step-value").textContent = entry.steps[s] + " (of 0 … " + (entry.horizon - 1) + ")";
      at("map-episode-value").textContent = entry.episodes[e].toLocaleString("en");
      for (const name of names) {
        if (!entry.words[name]) continue;
        const div = at("map-" + name);
        const traces = name === "partition" ? partition(e, s, Number(action.value)) : heat(name, e, s);
        Plotly.react(div, traces, base({ height: height(div) }), config);
      }
    }

    which.addEventListener("change", choose);
    for (const control of [step, episode, action]) control.addEventListener("input", show);
    window.addEventListener("resize", () => show());
    dark.addEventListener("change", () => show());
    this.show = choose;
  }
})();
