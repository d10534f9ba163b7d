"use strict";
// Shows one question of a run at a time. Where it stands is the page's address: #<question>/<sample>?show=&against=&find=
// Every text is set as a text, never as markup.

const summary = JSON.parse(document.getElementById("summary").textContent);
const lines = document.getElementById("lines").textContent.split("\n"); // one JSON object each, read when it is shown
const ROW = 56; // pixels of a row of the list
const MATHML = "http://www.w3.org/1998/Math/MathML";
const usual = summary.others[0]?.run; // that a run is compared with, where the address names none
const byId = new Map(summary.questions.map(([id], place) => [id, place]));
const $ = (id) => document.getElementById(id);
let shown = []; // places of the questions that the filters leave
let state = {};

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function formula([tag, attributes, ...children]) {
  const made = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (typeof child === "string" ? child : formula(child))));
  return made;
}

function parts(text, formulas) {
  return [text ?? "none"].flat().map((part) => (typeof part === "number" ? formula(formulas[part]) : part));
}

// Where the page stands

function read() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const words = path.split("/").map(decoded);
  const options = new URLSearchParams(query);
  return {
    id: words[0],
    sample: Number(words[1] ?? 0),
    show: options.get("show") ?? "all",
    against: options.get("against") ?? usual ?? "",
    find: options.get("find") ?? "",
  };
}

function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

function address(changes) {
  const { id, sample, show, against, find } = { ...state, ...changes };
  const options = new URLSearchParams();
  if (show !== "all") options.set("show", show);
  if (against && against !== usual) options.set("against", against);
  if (find) options.set("find", find);
  const query = options.toString();
  return "#" + encodeURIComponent(id) + (sample ? `/${sample}` : "") + (query ? `?${query}` : "");
}

function go(changes, how = "pushState") {
  history[how](null, "", address(changes));
  show();
}

// The list

const against = () => summary.others.find((other) => other.run === state.against);

function passes([id, asked, right], place) {
  const other = against()?.right[place] ?? null;
  const both = right !== null && other !== null;
  const kind = {
    all: true, right: right === 1, wrong: right !== null && right < 1, disagrees: both && right !== other,
    won: both && right > other, lost: both && right < other,
  }[state.show];
  const text = `${id} ${asked}`.toLowerCase();
  return kind && state.find.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function verdict(right) {
  if (right === null || right === undefined) return element("span", { class: "verdict" }, "not graded");
  const word = right === 1 ? "✓ right" : right === 0 ? "✗ wrong" : `${Math.round(100 * right)}% right`;
  return element("span", { class: `verdict ${right === 1 ? "right" : "wrong"}` }, word);
}

function row(index) {
  const place = shown[index];
  const [id, asked, right, strip] = summary.questions[place];
  const squares = [...strip].map((origin) => element("i", { class: origin }));
  const top = element("span", { class: "row" }, verdict(right), element("span", { class: "place" }, `${place + 1}`), element("span", { class: "strip" }, ...squares));
  const current = id === state.id ? "true" : null;
  return element("a", { href: address({ id, sample: 0 }), "aria-current": current },
    top, element("span", { class: "asked" }, asked || id));
}

function list() {
  const first = Math.max(0, Math.floor($("list").scrollTop / ROW) - 5);
  const last = Math.min(shown.length, first + Math.ceil($("list").clientHeight / ROW) + 10);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    const made = row(index);
    made.style.top = `${index * ROW}px`;
    rows.push(element("li", {}, made));
  }
  $("list").firstElementChild.replaceChildren(...rows);
}

function follow(index) { // the current row, if there is one, stays in sight
  const top = index * ROW;
  const box = $("list");
  box.firstElementChild.style.height = `${shown.length * ROW}px`;
  if (index < 0) return;
  if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
}

// A question

const UNITS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

function flops(value) {
  if (value === null || value === undefined) return "not measured";
  const [size, unit] = UNITS.find(([least]) => value >= least) ?? [1, ""];
  return `${Number((value / size).toPrecision(3))} ${unit}`;
}

function fact(word, ...told) {
  return element("span", {}, element("b", {}, word), ...told);
}

function bar(reward) {
  const [low, high] = summary.range;
  const at = (value) => `${Math.min(100, Math.max(0, (100 * (value - low)) / (high - low || 1)))}%`;
  const filled = element("i");
  filled.style.width = at(reward);
  const made = element("div", { class: "bar", role: "img", "aria-label": `reward ${reward.toFixed(3)}` }, filled);
  if (summary.delta !== null) {
    const mark = element("u", { title: `δ = ${summary.delta}` });
    mark.style.left = at(summary.delta);
    made.append(mark);
  }
  return made;
}

function judged({ reward, accepted, omega, u }) {
  if (reward === undefined) return omega === undefined ? "" : `ω ${omega.toFixed(3)}`;
  const value = `r = ${reward.toFixed(3)}`;
  if (accepted === undefined) return value;
  if (summary.delta !== null) return `${value} ${reward >= summary.delta ? "≥" : "<"} δ = ${summary.delta}`;
  return `${value}, ω = ${omega?.toFixed(3) ?? "–"}${u === undefined ? "" : `, u = ${u.toFixed(3)}`}`;
}

function role(proposal) {
  const words = [proposal.origin];
  if (proposal.accepted !== undefined) words.push(proposal.accepted ? "accepted" : "rejected");
  else if (proposal.sample === undefined) words.push(proposal.kept ? "kept" : "not kept");
  if (proposal.sample !== undefined) words.push(`sample ${proposal.sample + 1}`, proposal.kept ? "chosen" : "not chosen");
  if (proposal.class !== undefined) words.push(`answer class ${proposal.class + 1}`);
  if (proposal.cut) words.push("cut at a token limit");
  return words.join(", ");
}

function card(proposal, number, formulas) {
  const kind = proposal.kept ? "kept" : proposal.accepted === false ? "left rejected" : "left";
  const end = proposal.sample === undefined ? "(the end of the text)" : drawn(proposal);
  const body = element("div", {},
    element("span", { class: "who" }, role(proposal)),
    proposal.text === "" ? end : element("span", { class: "text" }, ...parts(proposal.text, formulas)));
  const ahead = proposal.ahead && `${proposal.ahead[0]} drafted ahead, ${proposal.ahead[1]} accepted, ${proposal.ahead[2]} rounds`;
  const measures = element("div", { class: "measures" + (proposal.accepted === false ? " below" : "") },
    proposal.reward === undefined ? null : bar(proposal.reward),
    element("b", {}, judged(proposal)), element("div", {}, `${proposal.tokens} tokens, ${flops(proposal.flops)}FLOPs`),
    ahead ? element("div", {}, ahead) : null);
  if (proposal.target !== undefined) {
    const told = proposal.target_reward === undefined ? "" : ` (r = ${proposal.target_reward.toFixed(3)})`;
    body.append(element("details", {}, element("summary", {}, `what the target writes here${told}`),
      element("span", { class: "text" }, ...parts(proposal.target, formulas))));
  }
  return element("li", { class: `proposal ${proposal.origin} ${kind}` }, element("span", { class: "number" }, number), body, measures);
}

function drawn({ sample }) { // of what a selection did not choose, the text stands where it was drawn
  if (!summary.drawn) return "(Its text stands in the run that drew it.)";
  return element("a", { href: `${summary.drawn}${address({ sample, show: "all", against: "", find: "" })}` }, "its text");
}

function steps(solution, formulas) {
  return solution.steps.flatMap((step, place) => {
    const main = step.filter((proposal) => proposal.kept || proposal.accepted === false);
    const rest = step.filter((proposal) => !main.includes(proposal));
    const cards = main.map((proposal, i) => card(proposal, i ? "" : `${place + 1}`, formulas));
    if (rest.length) {
      const others = rest.map((proposal) => card(proposal, "", formulas));
      const summaryLine = element("summary", {}, `${rest.length} other candidates`);
      cards.push(element("li", {}, element("details", { class: "others" }, summaryLine, element("ol", { class: "steps" }, ...others))));
    }
    return cards;
  });
}

function key(solution) {
  const all = solution.steps.flat();
  const entries = [
    ["", "written by the draft", all.some((p) => p.origin === "draft" && p.kept)],
    ["x", "draft's, rejected", all.some((p) => p.accepted === false)],
    ["t", "written by the target", all.some((p) => p.origin === "target")],
    ["delta", `threshold δ = ${summary.delta}`, summary.delta !== null],
  ];
  const made = entries.filter(([, , there]) => there).map(([kind, word]) => element("span", { class: kind || null }, element("i"), word));
  return element("p", { class: "key" }, ...made);
}

function question(place) {
  const data = JSON.parse(lines[place]);
  const right = summary.questions[place][2];
  const solution = data.samples.find((one) => one.sample === state.sample) ?? data.samples[0];
  const own = solution.correct === null ? null : Number(solution.correct);
  const badge = verdict(data.samples.length > 1 ? own : right);
  badge.classList.add("badge");
  const { draft, target, prm } = solution.tokens;
  const other = against();
  const compared = other?.right[place] ?? null;
  const samples = data.samples.length > 1 ? data.samples.map((one) => element("a", {
    class: one.correct ? "right" : "wrong", href: address({ sample: one.sample }),
    "aria-current": one === solution ? "true" : null, title: `sample ${one.sample + 1}, ${one.correct ? "right" : "wrong"}`,
  }, `${one.sample + 1}`)) : [];
  const left = summary.left_out > 0 ? [element("p", { class: "note" }, "The page holds the first samples of each question only.")] : [];
  return element("article", {},
    element("h2", {}, `Question ${place + 1} `, element("small", {}, data.id)),
    element("p", { class: "question" }, ...(data.question === null ? ["(The question's text could not be read.)"] : parts(data.question, data.formulas))),
    element("div", { class: "samples" }, ...samples), ...left,
    element("div", { class: "facts" }, badge, fact("answer", ...parts(solution.extracted, data.formulas)),
      fact("gold", ...parts(data.gold, data.formulas)), fact("ended by", solution.end),
      other && compared !== null ? fact(other.name, element("a", { href: `${other.page}#${encodeURIComponent(data.id)}` }, verdict(compared))) : null),
    element("div", { class: "facts" }, fact("tokens", `draft ${draft ?? 0}, target ${target ?? 0}, PRM ${prm ?? 0}`),
      ...Object.entries(solution.flops).map(([name, value]) => fact(`FLOPs, ${name}`, flops(value)))),
    solution.error === null ? null : element("p", { class: "error" }, solution.error),
    key(solution), element("ol", { class: "steps" }, ...steps(solution, data.formulas)));
}

// What moves it

function show() {
  const before = state;
  state = read();
  const filters = ["show", "against", "find"];
  if (filters.some((name) => before[name] !== state[name])) {
    shown = summary.questions.map((told, place) => [told, place]).filter(([told, place]) => passes(told, place)).map(([, place]) => place);
    for (const name of filters) if ($(name).value !== state[name]) $(name).value = state[name];
  }
  if (!byId.has(state.id)) state.id = summary.questions[shown[0] ?? 0]?.[0];
  const place = byId.get(state.id);
  const index = shown.indexOf(place);
  $("main").replaceChildren(...(place === undefined ? ["This run has no records."] : [question(place)]));
  $("main").scrollTop = 0;
  if (before.id !== state.id) scrollTo(0, 0);
  $("count").textContent = `${shown.length.toLocaleString("en")} of ${summary.questions.length.toLocaleString("en")}`;
  $("position").textContent = index < 0 ? "" : `${index + 1} of ${shown.length}`;
  $("previous").disabled = step(-1) === undefined;
  $("next").disabled = step(1) === undefined;
  follow(index);
  list();
}

function step(by) { // the place of the next question that the filters leave, also from one that they do not
  const place = byId.get(state.id);
  const index = shown.indexOf(place);
  if (index >= 0) return shown[index + by];
  return by > 0 ? shown.find((other) => other > place) : shown.findLast((other) => other < place);
}

function move(by) {
  const place = step(by);
  if (place !== undefined) go({ id: summary.questions[place][0], sample: 0 });
}

function drawer(open) {
  $("questions").classList.toggle("open", open);
  if (open) show();
}

$("against").append(...summary.others.map(({ run, name, model, prm }) => element("option", { value: run }, [name, model, prm].filter(Boolean).join(", "))));
$("against").parentElement.hidden = !summary.others.length;
for (const name of ["show", "against"]) $(name).addEventListener("change", () => go({ [name]: $(name).value }));
$("find").addEventListener("input", () => go({ find: $("find").value }, "replaceState"));
$("list").addEventListener("scroll", list);
$("list").addEventListener("click", () => drawer(false));
$("previous").addEventListener("click", () => move(-1));
$("next").addEventListener("click", () => move(1));
$("open").addEventListener("click", () => drawer(true));
$("close").addEventListener("click", () => drawer(false));
addEventListener("hashchange", show);
addEventListener("resize", list);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
  if (event.key === "ArrowRight" || event.key === "j") move(1);
  if (event.key === "ArrowLeft" || event.key === "k") move(-1);
});
document.querySelector("aside form").addEventListener("submit", (event) => event.preventDefault());
show();
