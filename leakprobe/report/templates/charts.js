"use strict";
/* The charts: what they show is in the data of the page; here it gets colours, axes and a place. */
const charts = (function () {
  const root = document.documentElement;
  const nonce = document.currentScript.nonce;
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
  /* Charts are drawn that are less than half a window's height away. */
  const NEAR = "50% 0px";
  /* Pixels below which a box of the flame graph can't be told from its neighbours, and can't have a label. */
  const LEAST_BOX = 4, LEAST_LABEL = 24;
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
      traces.filter((t) => m.on_devices.includes(t.name)).forEach((t) => { t.stackgroup = "device"; });
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
      if (t.ids.length < 2) return "No check was made.";
      if (!t.ids.includes(chosen.icicle)) chosen.icicle = t.ids[0];
      const media = [...new Set(t.ids.map((id) => id.split("/")[1]))].filter(Boolean);
      const boxes = boxesUnder(t, chosen.icicle, box.clientWidth);
      return plot(box, [{
        type: "icicle", level: chosen.icicle || "all", ids: boxes.map((b) => b.id || "all"), labels: boxes.map((b) => b.label.replace(/</g, "&lt;")),
        parents: boxes.map((b) => (b.parent === null ? "" : b.parent || "all")),
        values: boxes.map((b) => b.value), branchvalues: "total", text: boxes.map((b) => size(b.value)), maxdepth: narrow.matches ? 6 : 9,
        texttemplate: boxes.map((b) => (b.width < LEAST_LABEL ? "" : "%{label}<br>%{text}")),
        hovertemplate: "%{label}<br>%{text}, %{percentRoot:.0%} of all<extra></extra>", tiling: { orientation: "v", pad: 1 },
        textfont: { color: "#ffffff", size: 12 }, leaf: { opacity: 1 }, pathbar: { visible: true, textfont: { color: "#ffffff" } },
        marker: { colors: boxes.map((b) => { const name = b.id.split("/")[1]; return shade(name ? color(name, media.indexOf(name)) : "#46515e", b.id); }), line: { width: 0 } },
      }], layout({ margin: { l: 14, r: 14, t: 30, b: 14 }, uniformtext: { minsize: 9, mode: "hide" } }), lookInto);
    },
  };

  const REST = "/others, too narrow to draw";

  /* A box that was chosen becomes the whole width, and what was too narrow in it is drawn. */
  function lookInto(box) {
    box.on("plotly_icicleclick", (event) => {
      const next = event.nextLevel;
      if (next === undefined) return true;
      chosen.icicle = next === "all" ? "" : next.replace(REST, "");
      setTimeout(() => draw.icicle(box));
      return false;
    });
  }

  /* The boxes to draw where one of them has the whole width: it, those it stands under, and those under it
     that are wide enough; of each, the others put together. */
  function boxesUnder(t, level, width) {
    const at = new Map(t.ids.map((id, i) => [id, i])), rest = new Map(), found = [];
    const whole = t.values[at.get(level)];
    const add = (id, label, parent, value) => found.push({ id: id, label: label, parent: parent, value: value, width: value / whole * width });
    for (let i = at.get(level); i !== undefined; i = at.get(t.parents[i])) add(t.ids[i], t.labels[i], t.parents[i], t.values[i]);
    const inside = new Set([level]);
    for (const [i, id] of t.ids.entries()) {  /* parents stand before what is under them */
      const parent = t.parents[i], value = t.values[i];
      if (!inside.has(parent)) continue;
      if (!rest.has(parent)) rest.set(parent, t.values[at.get(parent)]);
      if (value / whole * width < LEAST_BOX) continue;
      inside.add(id);
      rest.set(parent, rest.get(parent) - value);
      add(id, t.labels[i], parent, value);
    }
    for (const [parent, value] of rest) {
      if (value > 0) add(parent + REST, REST.slice(1), parent, value);
    }
    return found;
  }

  /* The same colour for a medium, a little darker by the box, so that neighbours part. */
  function shade(hex, id) {
    let hash = 0;
    for (const c of id) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    return mixed(hex, 0, (hash % 100) / 330);
  }

  async function plot(box, traces, shape, then) {
    box.replaceChildren();
    await Plotly.newPlot(box, traces, shape, { displayModeBar: false, responsive: true });
    /* The table beside it says the same: a reader of the screen gets one picture with one name. */
    for (const svg of box.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
    if (then) then(box);
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

  // ---- when: once a chart comes near, and all of them to be printed ----

  const near = new Set(), stale = new Set();
  const observer = window.IntersectionObserver ? new IntersectionObserver(moved, { rootMargin: NEAR }) : null;
  let looked = !observer, drawing = false;

  const nameOf = (box) => box.id.replace("chart-", "");
  const boxes = () => [...document.querySelectorAll(".chart")].filter((box) => data[nameOf(box)]);

  function moved(entries) {
    looked = true;
    for (const entry of entries) near[entry.isIntersecting ? "add" : "delete"](entry.target);
    if (near.size) loaded();
    drawNear();
  }

  /* Show this from now on. */
  function take(given) {
    data = given;
    for (const box of boxes()) {
      if (observer) observer.observe(box);
      else near.add(box);
      if (!box.querySelector("svg")) say(box, "The chart is drawn when it is scrolled to.");
    }
    return renew();
  }

  /* Draw all anew, of other data or in other colours, each when it is near. */
  function renew() {
    for (const box of boxes()) {
      stale.add(box);
      delete box.dataset.drawn;
    }
    return drawNear();
  }

  async function drawNear() {
    if (drawing || !window.Plotly) return;
    drawing = true;
    for (let box; (box = boxes().find((one) => stale.has(one) && near.has(one)));) {
      await drawOne(box);
      await new Promise((done) => setTimeout(done));  /* the page answers in between */
    }
    drawing = false;
    if (looked) root.dataset.drawn = "true";
  }

  async function drawOne(box) {
    stale.delete(box);
    try {
      const said = await draw[nameOf(box)](box);
      if (typeof said === "string") say(box, said);
    } catch (error) {
      say(box, "This browser can't draw the chart: " + error.message);
    }
    box.dataset.drawn = "true";
  }

  function say(box, text) {
    const said = document.createElement("p");
    said.className = "waiting";
    said.textContent = text;
    box.replaceChildren(said);
  }

  /* Plotly draws before it returns, so that what is printed has every chart. */
  window.addEventListener("beforeprint", () => {
    if (window.Plotly) boxes().filter((box) => stale.has(box)).forEach(drawOne);
  });

  /* The compressed plotly.js of the page, once: unpacked and compiled off the main thread, as far as the browser does so. */
  let loading = null;
  function loaded() {
    loading = loading || loadPlotly().then(drawNear, (error) => {
      root.dataset.drawn = "failed";
      for (const box of boxes()) say(box, "This browser can't draw the chart: " + error.message);
    });
    return loading;
  }

  async function loadPlotly() {
    const packed = document.getElementById("plotly"), text = atob(packed.textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const unpacked = await new Response(stream, { headers: { "content-type": "text/javascript" } }).blob();
    const script = document.createElement("script"), url = URL.createObjectURL(unpacked);
    script.nonce = nonce;
    script.src = url;
    await new Promise((done, failed) => {
      script.addEventListener("load", done);
      script.addEventListener("error", () => failed(new Error("its script was refused")));
      document.head.append(script);
    });
    URL.revokeObjectURL(url);
    packed.remove();
  }

  return { isDark, dark, take, renew, loaded };
})();
