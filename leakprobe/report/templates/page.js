/* Tables that are searched, sorted and filtered; findings; the theme; news of a recording that is followed. */
(function () {
  const root = document.documentElement;
  const MORE = 200;
  const LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz";
  const NS = "http://www.w3.org/2000/svg";
  let data = JSON.parse(document.getElementById("data").textContent);

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // ---- tables ----

  const states = {};  // what each table shows: kept while a page follows a recording

  function setUpTable(name) {
    const table = document.querySelector('[data-table="' + name + '"]'), spec = data.tables[name];
    if (!table || !spec) return;
    const state = states[name] = states[name] || { words: "", choices: {}, column: null, down: true, shown: spec.few };
    const tools = document.querySelector('[data-tools="' + name + '"]');
    const rest = document.querySelector('[data-rest="' + name + '"]') || element("p", { class: "rest", "data-rest": name });
    table.closest(".scroll").after(rest);
    const rows = spec.columns[0].texts.length, marked = new Set(spec.marked);
    const haystack = new Array(rows);

    function textOf(row) {
      haystack[row] = haystack[row] || spec.columns.filter((c) => c.kind !== "picture").map((c) => c.texts[row]).join(" ").toLowerCase();
      return haystack[row];
    }

    function wanted() {
      const words = state.words.toLowerCase().split(/\s+/).filter(Boolean), found = [];
      for (let row = 0; row < rows; row++) {
        if (spec.columns.some((c, i) => state.choices[i] && c.texts[row] !== state.choices[i])) continue;
        if (words.every((word) => textOf(row).includes(word))) found.push(row);
      }
      if (state.column !== null) {
        const column = spec.columns[state.column], sign = state.down ? -1 : 1;
        found.sort((a, b) => sign * (column.by ? column.by[a] - column.by[b] : column.texts[a].localeCompare(column.texts[b])) || a - b);
      }
      return found;
    }

    function show() {
      const found = wanted();
      table.tBodies[0].replaceChildren(...found.slice(0, state.shown).map(rowOf));
      const shown = Math.min(state.shown, found.length);
      rest.replaceChildren(element("span", { "aria-live": "polite" }, shown.toLocaleString("en") + " of " + found.length.toLocaleString("en") + (found.length < rows ? " that fit, " + rows.toLocaleString("en") + " in all" : " " + spec.label)));
      if (found.length > shown) rest.append(" ", button("Show " + Math.min(MORE, found.length - shown) + " more", () => { state.shown += MORE; show(); }));
      for (const [i, head] of [...table.tHead.rows[0].cells].entries()) {
        if (state.column === i) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
    }

    function rowOf(row) {
      const made = element("tr", marked.has(row) ? { class: "grows" } : {});
      for (const [i, column] of spec.columns.entries()) {
        const text = column.texts[row];
        const cell = i ? element("td", { class: column.kind }) : element("th", { scope: "row" });
        if (column.kind === "picture") cell.append(bars(text));
        else if (column.kind === "place") cell.append(element("code", {}, text));
        else if (column.kind === "choice") cell.append(element("span", { class: "chip" }, text));
        else cell.append(text);
        made.append(cell);
      }
      return made;
    }

    for (const [i, head] of [...table.tHead.rows[0].cells].entries()) {
      const column = spec.columns[i];
      if (column.kind === "picture" || head.querySelector("button")) continue;
      head.replaceChildren(button(column.name, () => {
        const first = column.by ? true : false;
        state.down = state.column === i ? !state.down : first;
        state.column = i;
        show();
      }, "sort"));
    }
    if (tools && rows > spec.few) {
      const search = element("input", { type: "search", autocomplete: "off" });
      search.value = state.words;
      search.addEventListener("input", () => { state.words = search.value; state.shown = spec.few; show(); });
      tools.replaceChildren(element("label", {}, "Search ", search));
      for (const [i, column] of spec.columns.entries()) {
        if (column.kind !== "choice") continue;
        const names = [...new Set(column.texts)].sort(), select = element("select");
        if (names.length < 2) continue;
        select.append(new Option("all", ""), ...names.map((name) => new Option(name)));
        select.value = state.choices[i] || "";
        select.addEventListener("change", () => { state.choices[i] = select.value; state.shown = spec.few; show(); });
        tools.append(element("label", {}, column.name + " ", select));
      }
      tools.hidden = false;
    }
    show();
  }

  function button(text, action, kind) {
    const made = element("button", { type: "button", class: kind || "more" }, text);
    made.addEventListener("click", action);
    return made;
  }

  /* Survivors by birth step, from one character a span. */
  function bars(levels) {
    const svg = document.createElementNS(NS, "svg"), scale = 480 / levels.length;
    const path = [...levels].map((c, i) => [i * scale, LEVELS.indexOf(c) / (LEVELS.length - 1) * 42]).filter(([, height]) => height > 0)
      .map(([x, height]) => "M" + x.toFixed(1) + " 44v-" + height.toFixed(1) + "h" + (scale - 0.6).toFixed(1) + "v" + height.toFixed(1) + "z").join("");
    for (const [key, value] of [["class", "survivors"], ["viewBox", "0 0 480 44"], ["preserveAspectRatio", "none"], ["role", "img"], ["aria-label", [...levels].filter((c) => c !== "0").length + " of " + levels.length + " spans of birth steps have survivors"]]) svg.setAttribute(key, value);
    const bar = document.createElementNS(NS, "path"), base = document.createElementNS(NS, "line");
    bar.setAttribute("d", path);
    for (const [key, value] of [["class", "base"], ["x1", 0], ["x2", 480], ["y1", 44], ["y2", 44]]) base.setAttribute(key, value);
    svg.append(bar, base);
    return svg;
  }

  // ---- findings ----

  const findings = { words: "", medium: "", sort: "rate" };

  function setUpFindings() {
    const tools = document.getElementById("finding-tools"), list = document.getElementById("finding-list");
    if (!tools || !list) return;
    const search = document.getElementById("finding-search"), medium = document.getElementById("finding-medium");
    const sort = document.getElementById("finding-sort"), count = document.getElementById("finding-count");
    const cards = [...list.children];
    const texts = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
    [search.value, medium.value, sort.value] = [findings.words, findings.medium, findings.sort];
    function show() {
      [findings.words, findings.medium, findings.sort] = [search.value, medium.value, sort.value];
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const card of cards) {
        card.hidden = !(words.every((word) => texts.get(card).includes(word)) && (!medium.value || card.dataset.medium === medium.value));
        shown += !card.hidden;
      }
      const by = sort.value;
      list.append(...cards.slice().sort((a, b) => (by === "text" ? a.dataset.text.localeCompare(b.dataset.text) : b.dataset[by] - a.dataset[by]) || cards.indexOf(a) - cards.indexOf(b)));
      count.textContent = shown + " of " + cards.length + " findings";
    }
    for (const [field, event] of [[search, "input"], [medium, "change"], [sort, "change"]]) field.addEventListener(event, show);
    tools.addEventListener("submit", (event) => event.preventDefault());
    tools.hidden = false;
    show();
  }

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

  // ---- a recording that is followed ----

  const POLL_MS = 1000;

  async function follow() {
    const said = document.getElementById("live");
    if (!said) return;
    try {
      const news = await (await fetch("news", { cache: "no-store" })).json();
      if (String(news.version) !== said.dataset.version) await take(await (await fetch("page?part=1", { cache: "no-store" })).text());
      const now = document.getElementById("live");
      now.dataset.state = news.state;
      now.textContent = news.text;
      if (news.state === "ended" || news.state === "cut off") return;
    } catch (error) {
      said.dataset.state = "lost";
      said.textContent = "The server has ended: this page stays as it was.";
      return;
    }
    setTimeout(follow, POLL_MS);
  }

  /* Put a newer page in place of this one, with what is open, searched and chosen kept. */
  async function take(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const open = new Map([...document.querySelectorAll("details[data-key]")].map((d) => [d.dataset.key, d.open]));
    const focus = document.activeElement && document.activeElement.id;
    for (const box of fresh.querySelectorAll(".chart")) {
      const drawn = document.getElementById(box.id);
      if (drawn) box.replaceWith(drawn);
    }
    for (const details of fresh.querySelectorAll("details[data-key]")) {
      if (open.has(details.dataset.key)) details.open = open.get(details.dataset.key);
    }
    document.title = fresh.title;
    document.body.className = fresh.body.className;
    for (const id of ["head"]) document.getElementById(id).replaceWith(document.adoptNode(fresh.getElementById(id)));
    document.querySelector("nav").replaceWith(document.adoptNode(fresh.querySelector("nav")));
    document.querySelector("main").replaceWith(document.adoptNode(fresh.querySelector("main")));
    data = JSON.parse(fresh.getElementById("data").textContent);
    await setUp();
    if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
  }

  // ---- the beginning ----

  function setUp() {
    for (const name of Object.keys(data.tables)) setUpTable(name);
    setUpFindings();
    root.dataset.ready = "true";
    return charts.take(data);
  }

  const theme = document.getElementById("theme");
  function named() {
    theme.textContent = charts.isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", charts.isDark() ? "Light: switch to light colours" : "Dark: switch to dark colours");
  }
  theme.hidden = false;
  named();
  theme.addEventListener("click", () => {
    root.dataset.theme = charts.isDark() ? "light" : "dark";
    named();
    charts.renew();
  });
  charts.dark.addEventListener("change", () => {
    named();
    charts.renew();
  });
  window.addEventListener("hashchange", openTarget);

  setUp();
  openTarget();
  follow();
  /* What draws is made ready while nothing else is to do; sooner where a chart is in sight. */
  (window.requestIdleCallback || setTimeout)(charts.loaded);
})();
