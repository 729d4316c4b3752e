"use strict";
/* The charts: what they show is in the data of the page; here it gets colours, axes and a place. */
const charts = (function () {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]];
  /* Dark enough for white text of 4.5 : 1 on each; lighter ones for lines on a dark page. */
  const COLORS = {
    python: "#36658f", numpy: "#7d5a0f", cpu: "#1a7468", shared: "#8c3a8c", pinned: "#7a1d4e", native: "#6f5630",
    probe: "#9aa5b1", rest: "#b8c0ca",
    parameter: "#36658f", gradient: "#1a7468", "optimizer state": "#8c3a8c", activation: "#b04a16", batch: "#7d5a0f", other: "#7b8694",
  };
  const SPARE = ["#2a6e35", "#4c6b14", "#2f6f4c", "#0f6a2d", "#566b1c"];
  let data = {};
  const chosen = {};

  function size(bytes) {
    for (const [unit, factor] of UNITS) {
      if (Math.abs(bytes) >= factor) return (bytes / factor).toPrecision(3) + " " + unit;
    }
    return bytes + " B";
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  function ink(name) {
    return getComputedStyle(root).getPropertyValue("--" + name).trim();
  }

  function color(name, index) {
    return COLORS[name] || SPARE[index % SPARE.length];
  }

  /* A colour as it is on this page: on a dark one, lighter. */
  function onPage(hex) {
    return isDark() ? mixed(hex, 255, 0.3) : hex;
  }

  function mixed(hex, to, share) {
    return "#" + [1, 3, 5].map((i) => Math.round(parseInt(hex.slice(i, i + 2), 16) * (1 - share) + to * share).toString(16).padStart(2, "0")).join("");
  }

  function layout(extra) {
    return Object.assign({
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: ink("sans"), size: 12, color: ink("ink") },
      margin: narrow.matches ? { l: 62, r: 14, t: 14, b: 48 } : { l: 76, r: 24, t: 16, b: 50 },
      hoverlabel: { bgcolor: ink("card"), bordercolor: ink("line"), font: { color: ink("ink"), family: ink("sans") } },
    }, extra);
  }

  function overSteps(top, extra) {
    const entries = narrow.matches ? 118 : 56;
    return layout(Object.assign({
      margin: narrow.matches ? { l: 62, r: 14, t: entries, b: 48 } : { l: 76, r: 24, t: entries, b: 50 }, hovermode: "x unified",
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
      xaxis: { title: { text: "step", standoff: 8 }, automargin: true, gridcolor: ink("line"), zeroline: false, showspikes: false },
      yaxis: Object.assign({ gridcolor: ink("line"), zerolinecolor: ink("line"), rangemode: "tozero", range: [0, top * 1.06] }, ticks(top)),
    }, extra || {}));
  }

  function ticks(top) {
    const unit = UNITS.find(([, factor]) => top >= factor * 2) || ["B", 1];
    const step = niceStep(top / unit[1] / 5);
    const values = [], texts = [];
    for (let at = 0; at * unit[1] <= top * 1.02; at += step) {
      values.push(at * unit[1]);
      texts.push(at ? Number(at.toPrecision(6)) + " " + unit[0] : "0");
    }
    return { tickvals: values, ticktext: texts };
  }

  function niceStep(rough) {
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
    return power * [1, 2, 5, 10].find((m) => m * power >= rough);
  }

  function highest(traces, stacked) {
    const lengths = traces.map((t) => t.y.length);
    let top = 1;
    for (let i = 0; i < Math.max(0, ...lengths); i++) {
      const values = traces.map((t) => t.y[i] || 0);
      top = Math.max(top, stacked ? values.reduce((a, b) => a + b, 0) : Math.max(...values));
    }
    return top;
  }

  function area(steps, name, values, shade, pattern) {
    return Object.assign(line(steps, name, values, shade, 0.5), {
      stackgroup: "memory", fillcolor: pattern ? undefined : shade + "cc",
      fillpattern: pattern ? { shape: "/", fgcolor: shade, bgcolor: "rgba(0,0,0,0)", size: 7, solidity: 0.25 } : undefined,
    });
  }

  function line(steps, name, values, shade, width, dash) {
    return {
      x: steps, y: values, name: name, type: "scatter", mode: "lines", line: { color: shade, width: width, dash: dash || "solid" },
      text: values.map((v) => (v === null ? "not known" : size(v))), hovertemplate: "%{text}<extra>" + name.replace(/</g, "&lt;") + "</extra>",
    };
  }

  const draw = {
    memory(box) {
      const m = data.memory;
      if (!m.step.length) return "No step was marked.";
      const traces = Object.keys(m.media).map((name, i) => area(m.step, name, m.media[name], onPage(color(name, i))));
      traces.push(area(m.step, "leakprobe itself", m.probe, COLORS.probe));
      if (m.rest.some((v) => v !== null)) traces.push(area(m.step, "not accounted for", m.rest, isDark() ? "#6d7886" : COLORS.rest, true));
      let top = highest(traces, true);
      if (m.rss.some((v) => v !== null)) {
        traces.push(line(m.step, "resident (RSS)", m.rss, ink("ink"), 2));
        top = Math.max(top, highest(traces.slice(-1), false));
      }
      const shapes = m.epochs.map((step) => ({ type: "line", x0: step, x1: step, yref: "paper", y0: 0, y1: 1, line: { color: ink("soft"), width: 1, dash: "dot" }, opacity: 0.55 }));
      const marks = [];
      if (m.warmup) {
        shapes.push({ type: "rect", x0: m.step[0], x1: Math.min(m.warmup, m.step[m.step.length - 1]), yref: "paper", y0: 0, y1: 1, fillcolor: ink("soft"), opacity: 0.12, line: { width: 0 } });
      }
      if (m.epochs.length) marks.push({ x: m.epochs[0], yref: "paper", y: 1, text: "epoch", showarrow: false, xanchor: "left", yanchor: "top", font: { size: 10, color: ink("soft") } });
      return plot(box, traces, overSteps(top, { shapes: shapes, annotations: marks }));
    },

    roles(box) {
      const of = data.roles[choice("roles", box)];
      if (!of) return "No reading was taken.";
      const traces = Object.keys(of.roles).map((role, i) => area(of.step, role, of.roles[role], onPage(color(role, i))));
      return plot(box, traces, overSteps(highest(traces, true)));
    },

    peaks(box) {
      const of = data.peaks[choice("peaks", box)];
      if (!of) return "There was one epoch.";
      const bars = (name, values, shade) => ({
        x: of.epoch, y: values, name: name, type: "bar", marker: { color: shade },
        text: values.map((v, i) => size(v) + (name === "peak" ? ", step " + of.step[i] : "")), textposition: "none", hovertemplate: "%{text}<extra>" + name + "</extra>",
      });
      const traces = [bars("peak", of.peak, onPage("#b04a16")), bars("at the end", of.end, onPage("#36658f"))];
      const plain = overSteps(highest(traces, false), { barmode: "group", bargap: 0.25 });
      plain.xaxis.title.text = "epoch";
      if (of.epoch.length <= 20) plain.xaxis.dtick = 1;
      return plot(box, traces, plain);
    },

    ranks(box) {
      const of = data.ranks[choice("ranks", box)];
      if (!of) return "The recordings have no rows per rank.";
      const ranks = Object.keys(of.ranks).sort((a, b) => of.outliers.includes(Number(a)) - of.outliers.includes(Number(b)));
      const traces = ranks.map((rank, i) => {
        const far = of.outliers.includes(Number(rank));
        const found = line(of.ranks[rank].step, "rank " + rank + (far ? ", stands out" : ""), of.ranks[rank].bytes, far ? ink("bad") : onPage(ranks.length <= 6 ? Object.values(COLORS)[i % 6] : "#7b8694"), far ? 3 : 1.5);
        found.showlegend = far || ranks.length <= 8;
        return found;
      });
      return plot(box, traces, overSteps(highest(traces, false), ranks.length > 8 ? { hovermode: "closest" } : {}));
    },

    compare(box) {
      const of = data.compare[choice("compare", box)];
      if (!of) return "No step was marked in either.";
      const traces = [line(of.A.step, "A", of.A.bytes, onPage("#36658f"), 2, "dot"), line(of.B.step, "B", of.B.bytes, onPage("#b04a16"), 2.5)];
      return plot(box, traces, overSteps(highest(traces, false)));
    },

    icicle(box) {
      const t = data.icicle;
      if (t.ids.length < 2) return "No look was taken.";
      const media = t.ids.map((id) => id.split("/")[1]);
      const names = [...new Set(media)].filter(Boolean);
      return plot(box, [{
        type: "icicle", ids: t.ids.map((id) => id || "all"), labels: t.labels.map((l) => l.replace(/</g, "&lt;")),
        parents: t.parents.map((p) => (p === null ? "" : p || "all")),
        values: t.values, branchvalues: "total", text: t.values.map(size), texttemplate: "%{label}<br>%{text}", maxdepth: narrow.matches ? 6 : 9,
        hovertemplate: "%{label}<br>%{text}, %{percentRoot:.0%} of all<extra></extra>", tiling: { orientation: "v", pad: 1 },
        textfont: { color: "#ffffff", size: 12 }, leaf: { opacity: 1 }, pathbar: { visible: true, textfont: { color: "#ffffff" } },
        marker: { colors: media.map((name, i) => shade(name ? color(name, names.indexOf(name)) : "#46515e", t.ids[i])), line: { width: 0 } },
      }], layout({ margin: { l: 14, r: 14, t: 30, b: 14 }, uniformtext: { minsize: 9, mode: "hide" } }));
    },
  };

  /* The same colour for a medium, a little darker by the box, so that neighbours part. */
  function shade(hex, id) {
    let hash = 0;
    for (const c of id) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    return mixed(hex, 0, (hash % 100) / 330);
  }

  async function plot(box, traces, shape) {
    box.replaceChildren();
    await Plotly.newPlot(box, traces, shape, { displayModeBar: false, responsive: true });
    /* The table beside it says the same: a reader of the screen gets one picture with one name. */
    for (const svg of box.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
  }

  /* Which medium a chart shows: the one that was chosen, else the one with most bytes. */
  function choice(name, box) {
    const names = Object.keys(data[name]);
    const tools = document.querySelector('[data-choose="' + name + '"]');
    if (!names.includes(chosen[name])) chosen[name] = names[names.length > 1 ? names.findIndex((n) => n !== "python" && n !== "rss") : 0] || names[0];
    if (tools && names.length > 1) {
      const select = document.createElement("select"), label = document.createElement("label");
      for (const one of names) select.append(new Option(one === "rss" ? "resident (RSS)" : one, one, one === chosen[name], one === chosen[name]));
      select.addEventListener("change", () => { chosen[name] = select.value; draw[name](box); });
      label.append("Show ", select);
      tools.replaceChildren(label);
      tools.hidden = false;
    }
    return chosen[name];
  }

  async function drawAll() {
    for (const name of Object.keys(draw)) {
      const box = document.getElementById("chart-" + name);
      if (!box || !data[name]) continue;
      const said = await draw[name](box);
      if (typeof said === "string") {
        const waiting = document.createElement("p");
        waiting.className = "waiting";
        waiting.textContent = said;
        box.replaceChildren(waiting);
      }
      await new Promise((done) => setTimeout(done));  /* the page answers in between */
    }
    root.dataset.drawn = "true";
  }

  return { isDark, dark, drawAll, take(given) { data = given; } };
})();
