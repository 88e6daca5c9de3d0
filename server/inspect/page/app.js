"use strict";
// Everything that comes from the server is put on the page with textContent, never as markup.

const $ = (id) => document.getElementById(id);
const every = 1000; // milliseconds between polls

const view = { limit: 20, paused: false, kind: "", route: "", status: "", timer: 0, turn: 0, rows: new Map(), slowFrom: 0 };

let token = "";
try {
  token = sessionStorage.getItem("lazyreq-inspect-token") || "";
} catch { /* no storage: the token lasts as long as the page */ }

function keepToken(value) {
  token = value;
  try {
    sessionStorage.setItem("lazyreq-inspect-token", value);
  } catch { /* as above */ }
}

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  keepToken(given);
  history.replaceState(null, "", location.pathname + location.search);
}

// el makes an element. Attributes are set as such; text children become text.
function el(name, attrs, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value !== undefined && value !== false) node.setAttribute(key, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function duration(ms) {
  if (ms === 0) return "0";
  if (ms < 0.01) return (ms * 1000).toFixed(1) + " µs";
  if (ms < 1) return Math.round(ms * 1000) + " µs";
  if (ms < 100) return ms.toFixed(1) + " ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60e3) return (ms / 1000).toFixed(2) + " s";
  if (ms < 3600e3) return (ms / 60e3).toFixed(1) + " min";
  return (ms / 3600e3).toFixed(1) + " h";
}

const counts = new Intl.NumberFormat("en");
const count = (n) => counts.format(n);

function percent(part, whole) {
  if (!whole || !part) return "0 %";
  const p = (100 * part) / whole;
  return (p < 0.1 ? "< 0.1" : p < 10 ? p.toFixed(1) : Math.round(p)) + " %";
}

function bytes(n) {
  if (n < 1024) return n + " B";
  if (n < 1 << 20) return (n / 1024).toFixed(n < 10240 ? 1 : 0) + " KiB";
  return (n / (1 << 20)).toFixed(1) + " MiB";
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// set changes a text only if it differs, so that screen readers are not told again.
function set(id, text) {
  const node = $(id);
  if (node.textContent !== text) node.textContent = text;
}

function share(part, whole, kind) {
  const fill = el("b");
  fill.style.width = (whole ? Math.min(100, (100 * part) / whole) : 0) + "%";
  return el("div", { class: "share " + (kind || "") }, el("i", { "aria-hidden": "true" }, fill), el("span", null, percent(part, whole)));
}

// The strip.

function showStrip(s) {
  set("rate", s.perSecond < 10 ? s.perSecond.toFixed(1) : count(Math.round(s.perSecond)));
  set("denied", percent(s.denied, s.requests));
  set("denied-note", count(s.denied) + " of " + count(s.requests) + " in a minute");
  const troubled = s.storeErrors > 0 || s.failovers > 0;
  set("store", s.storeErrors > 0 ? "Failing" : s.failovers > 0 ? "Failover" : s.storeCalls > 0 ? "Healthy" : "Idle");
  $("store").className = "number" + (s.storeErrors > 0 ? " bad" : troubled ? " warn" : "");
  set("store-note", troubled
    ? count(s.storeErrors) + " errors, " + count(s.failovers) + " failovers of " + count(s.storeCalls) + " calls"
    : count(s.storeCalls) + " calls, no error");
  set("p99", s.requests ? duration(s.p99) : "–");
  set("p99-note", s.requests ? "p50 " + duration(s.p50) : "");
  const top = Math.max(1, ...s.history);
  const points = s.history.map((n, i) => (i * 236) / (s.history.length - 1) + " " + (35 - (33 * n) / top).toFixed(1));
  $("spark").querySelector(".line").setAttribute("d", "M" + points.join("L"));
  $("spark").querySelector(".area").setAttribute("d", "M0 36L" + points.join("L") + "L236 36Z");
}

// The requests.

function badges(r) {
  return ["failed", "denied", "slow"].filter((k) => r[k]).map((k) => el("span", { class: "badge " + k }, k));
}

function newRow(r) {
  const id = "details-" + r.id;
  const open = el("button", { type: "button", class: "open", "aria-expanded": "false", "aria-controls": id }, r.route);
  if (r.path) open.append(el("span", { class: "path" }, r.method + " " + r.path));
  const row = el("tr", { class: "row" },
    el("td", null, open),
    el("td", null, el("span", { class: "mono" }, r.status ? String(r.status) : "–"), ...badges(r)),
    el("td", { class: "num read" }, String(r.read)),
    el("td", { class: "num" }, duration(r.took)),
    el("td", { class: "num time dim" }, clock.format(r.began)));
  const cell = el("td", { colspan: "5" });
  const details = el("tr", { class: "details", id, hidden: "" }, cell);
  const entry = { row, details, open: false };
  row.addEventListener("click", () => toggle(r, entry, open, cell));
  return entry;
}

async function toggle(r, entry, button, cell) {
  entry.open = !entry.open;
  button.setAttribute("aria-expanded", String(entry.open));
  entry.details.hidden = !entry.open;
  if (!entry.open || cell.firstChild) return;
  try {
    const res = await load("request.json?id=" + r.id);
    if (res.ok) cell.replaceChildren(...describe(await res.json()));
    else cell.replaceChildren(el("p", { class: "note" }, "This request is no longer kept."));
  } catch {
    cell.replaceChildren(el("p", { class: "error" }, "The request could not be loaded."));
  }
}

// held is true while a request is open: the list would move away under the reader.
const held = () => [...view.rows.values()].some((entry) => entry.open);

function showRequests(s) {
  set("held", held() && !view.announce ? "The list is held while a request is open." : "");
  if (held() && !view.announce) return;
  const list = $("list");
  const shown = s.requests.slice(0, view.limit);
  const wanted = new Set(shown.map((r) => r.id));
  for (const [id, entry] of view.rows) {
    if (wanted.has(id)) continue;
    entry.row.remove();
    entry.details.remove();
    view.rows.delete(id);
  }
  let next = list.firstChild;
  for (const r of shown) {
    let entry = view.rows.get(r.id);
    if (entry) {
      next = entry.details.nextSibling;
      continue;
    }
    entry = newRow(r);
    view.rows.set(r.id, entry);
    list.insertBefore(entry.row, next);
    list.insertBefore(entry.details, next);
  }
  $("no-requests").hidden = shown.length > 0;
  $("more").hidden = s.requests.length <= view.limit;
  if (view.announce) {
    set("shown", shown.length + (shown.length === 1 ? " request shown" : " requests shown"));
    view.announce = false;
  }
}

function showRoutes(routes) {
  const select = $("route");
  const names = routes.map((r) => r.name).join("\n");
  if (view.names === names) return;
  view.names = names;
  select.replaceChildren(el("option", { value: "" }, "all"), ...routes.map((r) => el("option", { value: r.name }, r.name)));
  select.value = view.route;
}

// The waterfall.

function describe(d) {
  const out = [];
  const facts = [clock.format(d.began), "status " + (d.status || "none sent"), bytes(d.written) + " sent", d.read + " of " + d.properties.length + " properties read"];
  out.push(el("p", { class: "facts" }, ...facts.map((f) => el("span", null, f))));
  if (d.error && !d.properties.some((p) => p.error === d.error)) out.push(el("p", { class: "error" }, d.error));
  out.push(waterfall(d));
  if (d.decisions && d.decisions.length) out.push(el("ul", { class: "decisions" }, ...d.decisions.map(decision)));
  return out;
}

function waterfall(d) {
  const read = readersFirst(d.properties.filter((p) => p.state !== "unused").sort((a, b) => a.start - b.start));
  const unused = d.properties.filter((p) => p.state === "unused");
  const end = Math.max(d.took, ...read.map((p) => p.start + p.took)) || 1;
  const list = el("ol", { class: "waterfall", "aria-label": "Properties in the order in which they were resolved" });
  list.append(bar("whole request", [], 0, d.took, end, "whole", 0));
  const depths = new Map();
  for (const p of read) {
    const depth = p.by && depths.has(p.by) ? depths.get(p.by) + 1 : 0;
    depths.set(p.name, depth);
    list.append(propertyBar(p, end, depth));
  }
  for (const p of unused) {
    list.append(el("li", { class: "unused" }, el("span", { class: "name" }, p.name), el("span", { class: "track", "aria-hidden": "true" }), el("span", { class: "length" }, "not read")));
  }
  return list;
}

// readersFirst puts each property behind the one that read it.
function readersFirst(list) {
  const names = new Set(list.map((p) => p.name));
  const ordered = new Set();
  const add = (p) => {
    if (ordered.has(p)) return;
    ordered.add(p);
    list.filter((q) => q.by === p.name).forEach(add);
  };
  list.filter((p) => !names.has(p.by)).forEach(add);
  list.forEach(add);
  return [...ordered];
}

function propertyBar(p, end, depth) {
  const asked = p.by ? "from " + p.by : "from the handler";
  const notes = [[p.state === "assigned" ? "set" : asked, p.caller].filter(Boolean).join(" · ")];
  if (p.asked > 1) notes.push(p.asked + " readers waited " + duration(p.waited) + " in all");
  if (p.value) notes.push("value: " + p.value);
  const item = bar(p.name, notes, p.start, p.took, end, p.state === "failed" ? "broken" : "", depth, p.state);
  if (p.error) item.append(el("span", { class: "error text" }, p.error));
  return item;
}

function bar(name, notes, start, took, end, kind, depth, state) {
  const label = el("span", { class: "name" }, name, ...notes.map((n) => el("small", null, n)));
  label.style.paddingLeft = depth * 14 + "px";
  const track = el("span", { class: "track", "aria-hidden": "true" });
  const timed = state !== "assigned" && state !== "resolving";
  if (timed) {
    const fill = el("span", { class: "bar" });
    const left = Math.min(99.5, (100 * start) / end);
    fill.style.left = left + "%";
    fill.style.width = Math.min(100 - left, (100 * took) / end) + "%";
    track.append(fill);
  }
  const text = state === "assigned" ? "set" : state === "resolving" ? "running" : duration(took);
  const length = el("span", { class: "length" }, text);
  if (kind !== "whole" && timed) length.append(el("span", { class: "visually-hidden" }, ", started after " + duration(start)));
  return el("li", { class: kind }, label, track, length);
}

function decision(d) {
  const denied = d.violated && !d.shadow;
  const kind = d.shadow ? "shadow" : denied ? "denied" : "shadow";
  let verdict = d.shadow ? (d.violated ? "would be denied" : "would pass") : denied ? "denied" : d.allowed ? "allowed" : "not charged";
  let text = d.quota + ", " + d.rule;
  if (d.limit > 0 && !denied) text += ": " + count(d.remaining) + " of " + count(d.limit) + " left";
  if (denied) text += ": retry after " + duration(d.retryAfter);
  if (d.source !== "store") text += " (by " + d.source + ")";
  return el("li", null, el("span", { class: "badge " + kind }, verdict), text);
}

// The tables below.

function cell(label, content, attrs) {
  return el("td", { role: "cell", "data-label": label, ...attrs }, content);
}

const num = { class: "num" };

function showProperties(list) {
  let saved = 0;
  const rows = list.map((p) => {
    saved += p.saved;
    return el("tr", { role: "row", class: p.needed ? undefined : "idle" },
      cell("Property", p.name, { class: "mono" }),
      cell("Needed by", share(p.needed, p.requests)),
      cell("p50", p.needed ? duration(p.p50) : "–", num),
      cell("p99", p.needed ? duration(p.p99) : "–", num),
      cell("Errors", count(p.failed), { class: p.failed ? "num error" : "num dim" }),
      cell("Time saved", p.saved > 0 ? duration(p.saved) : "–", { class: p.saved > 0 ? "num saved" : "num dim" }));
  });
  $("properties").replaceChildren(...rows);
  set("saved-note", saved > 0 ? duration(saved) + " saved in all" : "");
}

function showAdvice(advice) {
  $("no-advice").hidden = advice.length > 0;
  set("advice-note", advice.length ? advice.length + (advice.length === 1 ? " route would gain" : " routes would gain") : "");
  const made = JSON.stringify(advice.map((a) => ({ ...a, gain: duration(a.gain) })));
  if (view.advice === made) return; // a selection of a line stays
  view.advice = made;
  $("advice").replaceChildren(...advice.map(suggestion));
}

function suggestion(a) {
  const names = a.prefetch.map((name) => name === "session" ? "session.Loaded" : "/* the key of " + JSON.stringify(name) + " */").join(", ");
  return el("li", null,
    el("p", null, el("span", { class: "mono" }, a.route), " resolves " + a.prefetch.length + " properties one after another. Started together, they save up to ", el("b", { class: "saved" }, duration(a.gain)), " a request:"),
    el("pre", { tabindex: "0", "aria-label": "The line to write" }, el("code", null, "srv.HandleFunc(" + JSON.stringify(a.route) + ", handler, server.Prefetch(" + names + "))")));
}

function showTable(list) {
  const lacking = list.filter((r) => r.lacks.length).length;
  set("table-note", lacking ? lacking + (lacking === 1 ? " route lacks" : " routes lack") + " requirements of a group" : "");
  const names = (items) => items.join(", ") || "–";
  $("table").replaceChildren(...list.map((r) => el("tr", { role: "row" },
    cell("Route", r.pattern, { class: "mono" }),
    cell("Requires", names(r.requires), { class: "mono" }),
    cell("Prefetches", names(r.prefetch), { class: "mono" }),
    cell("Lacks", names(r.lacks), { class: r.lacks.length ? "mono error" : "dim" }))));
}

function showLimiters(list) {
  $("limiters").replaceChildren(...list.map((q) => el("tr", { role: "row" },
    cell("Policy", q.name, { class: "mono" }),
    cell("Rule", q.rule, { class: "rule", "data-wide": "" }),
    cell("Takes", count(q.takes + q.shadowTakes), num),
    cell("Denied", q.takes ? share(q.denied, q.takes, "deny") : "–"),
    cell("Shadow: would deny", q.shadowTakes ? share(q.shadowDenied, q.shadowTakes, "deny") : "–", { class: q.shadowTakes ? "" : "dim" }),
    cell("Without store", count(q.failovers), { class: q.failovers ? "num error" : "num dim" }))));
  $("no-limiters").hidden = list.length > 0;
}

// Polling.

function load(path) {
  return fetch(path, { headers: { Authorization: "Bearer " + token }, cache: "no-store" });
}

function state(text, kind) {
  set("state", text);
  $("state").className = kind;
}

async function poll() {
  clearTimeout(view.timer);
  const turn = view.turn;
  const query = new URLSearchParams({ kind: view.kind, route: view.route, status: view.status });
  try {
    const res = await load("snapshot.json?" + query);
    if (res.status === 401) {
      $("login").hidden = false;
      $("main").hidden = true;
      state("Token needed", "");
      return;
    }
    if (!res.ok) throw new Error(res.statusText);
    const s = await res.json();
    if (turn !== view.turn) return; // the filter has changed meanwhile
    show(s);
    state(view.paused ? "Paused" : "Live", view.paused ? "" : "live");
  } catch {
    state("No connection", "lost");
  }
  if (!view.paused && !document.hidden) view.timer = setTimeout(poll, every);
}

function show(s) {
  $("login").hidden = true;
  $("main").hidden = false;
  showStrip(s.strip);
  showRoutes(s.routes);
  showRequests(s);
  showProperties(s.properties);
  showAdvice(s.advice);
  showTable(s.table);
  showLimiters(s.limiters);
  set("memory", count(s.kept) + " requests kept in " + bytes(s.bytes) + " of " + bytes(s.maxBytes) + " · slow is from " + duration(s.slowFrom) + " · since " + clock.format(s.since));
}

function refilter() {
  view.turn++;
  view.announce = true;
  poll();
}

for (const button of document.querySelectorAll("[data-kind]")) {
  button.addEventListener("click", () => {
    view.kind = button.dataset.kind;
    for (const b of document.querySelectorAll("[data-kind]")) b.setAttribute("aria-pressed", String(b === button));
    refilter();
  });
}
$("route").addEventListener("change", (e) => { view.route = e.target.value; refilter(); });
$("status").addEventListener("change", (e) => { view.status = e.target.value; refilter(); });
$("more").addEventListener("click", () => { view.limit += 20; refilter(); });
$("pause").addEventListener("click", () => {
  view.paused = !view.paused;
  $("pause").setAttribute("aria-pressed", String(view.paused));
  if (view.paused) state("Paused", "");
  poll();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && !view.paused) poll(); });
$("login").addEventListener("submit", (e) => {
  e.preventDefault();
  keepToken($("token").value.trim());
  poll();
});

// The theme: the system's, until the button chooses one.

const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
const showTheme = () => $("theme").setAttribute("aria-pressed", String(dark()));
try {
  const chosen = localStorage.getItem("lazyreq-inspect-theme");
  if (chosen) root.dataset.theme = chosen;
} catch { /* no storage */ }
$("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("lazyreq-inspect-theme", root.dataset.theme);
  } catch { /* no storage */ }
  showTheme();
});
systemDark.addEventListener("change", showTheme);
showTheme();
poll();
