"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const GIB = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]];
  const COLORS = {
    python: "#4477aa", numpy: "#cc9a2e", cpu: "#2f9e8f", shared: "#aa4499", pinned: "#882255", native: "#8a6d3b",
    probe: "#9aa5b1", rest: "#b8c0ca",
  };
  const SPARE = ["#228833", "#66a61e", "#3b8f5f", "#117733", "#6b8e23"];

  function size(bytes) {
    for (const [unit, factor] of GIB) {
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

  function layout(extra) {
    return Object.assign({
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: ink("sans"), size: 12, color: ink("ink") },
      margin: narrow.matches ? { l: 62, r: 14, t: 14, b: 48 } : { l: 76, r: 24, t: 16, b: 50 },
      hoverlabel: { bgcolor: ink("card"), bordercolor: ink("line"), font: { color: ink("ink"), family: ink("sans") } },
    }, extra);
  }

  function ticks(top) {
    const unit = GIB.find(([, factor]) => top >= factor * 2) || ["B", 1];
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

  function area(name, values, shade, pattern) {
    const steps = data.memory.step;
    return {
      x: steps, y: values, name: name, type: "scatter", mode: "lines", stackgroup: "memory", line: { width: 0.5, color: shade },
      fillcolor: pattern ? undefined : shade + "cc", fillpattern: pattern ? { shape: "/", fgcolor: shade, bgcolor: "rgba(0,0,0,0)", size: 7, solidity: 0.25 } : undefined,
      text: values.map((v) => (v === null ? "not known" : size(v))), hovertemplate: "%{text}<extra>" + name + "</extra>",
    };
  }

  function drawMemory() {
    const m = data.memory, box = document.getElementById("chart-memory");
    if (!m.step.length) {
      box.querySelector(".waiting").textContent = "No step was marked.";
      return;
    }
    const traces = Object.keys(m.media).map((name, i) => area(name, m.media[name], color(name, i)));
    traces.push(area("leakprobe itself", m.probe, COLORS.probe));
    if (m.rest.some((v) => v !== null)) {
      traces.push(area("not accounted for", m.rest, isDark() ? "#6d7886" : COLORS.rest, true));
      traces.push({
        x: m.step, y: m.rss, name: "resident (RSS)", type: "scatter", mode: "lines", line: { width: 2, color: ink("ink") },
        text: m.rss.map((v) => (v === null ? "not known" : size(v))), hovertemplate: "%{text}<extra>resident (RSS)</extra>",
      });
    }
    const stacked = m.step.map((_, i) => traces.filter((t) => t.stackgroup).reduce((sum, t) => sum + (t.y[i] || 0), 0));
    const top = stacked.concat(m.rss).reduce((a, b) => Math.max(a, b || 0), 1);
    const shapes = m.epochs.map((step) => ({ type: "line", x0: step, x1: step, yref: "paper", y0: 0, y1: 1, line: { color: ink("soft"), width: 1, dash: "dot" }, opacity: 0.55 }));
    const marks = [];
    if (m.warmup) {
      shapes.push({ type: "rect", x0: m.step[0], x1: Math.min(m.warmup, m.step[m.step.length - 1]), yref: "paper", y0: 0, y1: 1, fillcolor: ink("soft"), opacity: 0.12, line: { width: 0 } });
    }
    if (m.epochs.length) marks.push({ x: m.epochs[0], yref: "paper", y: 1, text: "epoch", showarrow: false, xanchor: "left", yanchor: "top", font: { size: 10, color: ink("soft") } });
    box.replaceChildren();
    return Plotly.newPlot(box, traces, layout({
      margin: narrow.matches ? { l: 62, r: 14, t: 122, b: 48 } : { l: 76, r: 24, t: 56, b: 50 }, hovermode: "x unified", shapes: shapes, annotations: marks,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
      xaxis: { title: { text: "step", standoff: 8 }, automargin: true, gridcolor: ink("line"), zeroline: false, showspikes: false },
      yaxis: Object.assign({ gridcolor: ink("line"), zerolinecolor: ink("line"), rangemode: "tozero", range: [0, top * 1.06] }, ticks(top)),
    }), { displayModeBar: false, responsive: true });
  }

  function drawIcicle() {
    const t = data.icicle, box = document.getElementById("chart-icicle");
    if (t.ids.length < 2) {
      box.querySelector(".waiting").textContent = "No look was taken.";
      return;
    }
    const media = t.ids.map((id) => id.split("/")[1]);
    const names = [...new Set(media)].filter(Boolean);
    box.replaceChildren();
    return Plotly.newPlot(box, [{
      type: "icicle", ids: t.ids.map((id) => id || "all"), labels: t.labels, parents: t.parents.map((p) => (p === null ? "" : p || "all")),
      values: t.values, branchvalues: "total", text: t.values.map(size), textinfo: "label+text", maxdepth: narrow.matches ? 7 : 10,
      hovertemplate: "%{label}<br>%{text}, %{percentRoot:.0%} of all<extra></extra>", tiling: { orientation: "v", pad: 1 },
      textfont: { color: "#ffffff", size: 11 }, pathbar: { visible: true, textfont: { color: "#ffffff" } },
      marker: { colors: media.map((name, i) => shade(name ? color(name, names.indexOf(name)) : "#5a6674", t.ids[i])), line: { width: 0 } },
    }], layout({ margin: { l: 14, r: 14, t: 30, b: 14 } }), { displayModeBar: false, responsive: true });
  }

  /* The same colour for a medium, a little darker or lighter by the box, so that neighbours part. */
  function shade(hex, id) {
    let hash = 0;
    for (const c of id) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    const factor = 0.72 + (hash % 100) / 420;
    return "#" + [1, 3, 5].map((i) => Math.round(parseInt(hex.slice(i, i + 2), 16) * factor).toString(16).padStart(2, "0")).join("");
  }

  async function loadPlotly() {
    const text = atob(document.getElementById("plotly").textContent);
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.nonce = document.currentScript ? document.currentScript.nonce : nonce;
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    document.getElementById("plotly").remove();
  }

  async function draw() {
    await drawMemory();
    await drawIcicle();
    root.dataset.drawn = "true";
  }

  const nonce = document.currentScript.nonce;
  const button = document.getElementById("theme");
  function named() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  }
  button.hidden = false;
  named();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    named();
    if (window.Plotly) draw();
  });
  dark.addEventListener("change", () => {
    named();
    if (window.Plotly) draw();
  });

  document.addEventListener("click", (event) => {
    const node = event.target.closest(".node");
    if (!node) return;
    const more = node.parentElement.querySelector(".more");
    more.hidden = !more.hidden;
    node.setAttribute("aria-expanded", String(!more.hidden));
  });

  function openTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  window.addEventListener("hashchange", openTarget);
  openTarget();

  for (const waiting of document.querySelectorAll(".waiting")) waiting.textContent = "Drawing ...";
  requestAnimationFrame(() => setTimeout(() => {
    loadPlotly().then(draw).catch((error) => {
      root.dataset.drawn = "failed";
      for (const waiting of document.querySelectorAll(".waiting")) waiting.textContent = "This browser can't draw the chart: " + error.message;
    });
  }));
})();
