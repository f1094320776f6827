// The page of a trial. It only reads. Whatever comes from people or the trial file is set as text, never as HTML.

import { band, bars, intervals, means } from "./charts.js";

const KEY = "omg-trial token";
const EVERY = 60_000;
const OPEN = 3; // number of a person's episodes that are unfolded
const $ = (id) => document.getElementById(id);
const fill = (id) => $(id).querySelector(".fill");
let shown = null;

class Denied extends Error {}

async function ask(path, body) {
  const options = { headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const told = await answer.json().catch(() => ({ error: `the service answered with status ${answer.status}` }));
  if (answer.status === 401 || answer.status === 403) throw new Denied(told.error);
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => child ?? ""));
  return made;
}

function table(label, heads, rows, nothing = "None.") {
  if (!rows.length) return el("p", {}, nothing);
  const numeric = heads.map((_, place) => rows.every((row) => typeof row[place] === "number"));
  const cell = (tag, each, place) => {
    const made = el(tag, tag === "th" ? { scope: "col" } : {}, each instanceof Node ? each : String(each ?? "–"));
    if (numeric[place]) made.className = "number";
    return made;
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el("table", { class: heads.at(-1).startsWith("What") ? "sentences" : "" },
      el("thead", {}, el("tr", {}, ...heads.map((each, place) => cell("th", each, place)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((each, place) => cell("td", each, place)))))));
}

const colour = (severity) => el("span", { class: `colour ${severity}` }, severity);
const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));

function time(text) {
  if (!text) return "–";
  const style = { dateStyle: "medium", timeStyle: "short", timeZone: shown?.zone };
  return new Intl.DateTimeFormat("en-GB", style).format(new Date(text));
}

function personButton(name) {
  const button = el("button", { type: "button", class: "link" }, name);
  button.addEventListener("click", () => {
    $("person-name").value = name;
    showPerson();
    $("person").scrollIntoView();
    $("person-name").focus({ preventScroll: true });
  });
  return button;
}

function summary(told) {
  const worst = ["red", "yellow", "green"].find((each) => told.checks.some((check) => check.severity === each));
  const tiles = [
    ["All in all", colour(worst)], ["People", told.people], ["Withdrawn", told.withdrawn],
    ["Episodes", told.episodes], ["Under way", told.episodes_under_way], ["Overdue rewards", told.rewards_overdue],
    ["Version in use", told.version], ["Events", told.event],
  ];
  $("summary").replaceChildren(...tiles.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value instanceof Node ? value : String(value)))));
}

function checks(told) {
  const order = { red: 0, yellow: 1, green: 2 };
  const sorted = [...told.checks].sort((one, other) => order[one.severity] - order[other.severity]);
  const rows = (those) => table("Checks", ["", "Check", "What it sees"],
    those.map((each) => [colour(each.severity), each.check, each.message]));
  const bad = sorted.filter((each) => each.severity !== "green");
  const good = sorted.filter((each) => each.severity === "green");
  const open = fill("checks").querySelector("details")?.open;
  const more = el("details", {}, el("summary", {}, `${good.length} checks are green`), rows(good));
  more.open = Boolean(open);
  fill("checks").replaceChildren(bad.length ? rows(bad) : el("p", {}, "Nothing stands out."), more);
}

function charts(told) {
  const places = ["chart-actions", "chart-probabilities", "chart-rewards"].map($);
  if (!told.days.length) {
    for (const place of [...places, $("days")]) place.replaceChildren(el("p", {}, "No decisions yet."));
    return;
  }
  bars(places[0], told.days, told.actions);
  band(places[1], told.days);
  means(places[2], told.days, told.reward_range);
  const heads = ["Day", "Decisions", ...told.actions, "Without a fresh plan", "Probability, least", "Median", "Most", "Reward", "Interval", "People"];
  $("days").replaceChildren(table("Days", heads, [...told.days].reverse().map((day) => [
    day.day, day.decisions, ...day.actions, day.fallbacks, ...(day.probability ?? [null, null, null]).map((each) => number(each)),
    number(day.reward?.mean), day.reward && day.reward.low !== null ? `${number(day.reward.low)} to ${number(day.reward.high)}` : "–",
    day.reward?.people ?? "–",
  ])));
}

function value(told) {
  const { value: found, reward_range: [low, high], horizon } = told;
  const interval = (each) => (each.low === null ? "not supported" : `${number(each.low)} to ${number(each.high)}`);
  const known = [["The trial, as it was played", found.played], ["Fixed probabilities", found.fixed]].filter(([, each]) => each);
  const parts = [el("p", {}, `${found.whole} of ${found.closed} closed episodes were seen to their end with all rewards and probabilities; only these count.`)];
  if (known.length) {
    const rows = [...known, ["Difference", found.gain]].filter(([, each]) => each);
    parts.push(table("Values", ["Reward of an episode", "Estimate", "95 % interval"], rows.map(([name, each]) => [name, number(each.value), interval(each)])));
  }
  const picture = el("div");
  const estimators = el("details", {}, el("summary", {}, "Estimates of the fixed probabilities"), table("Estimates",
    ["Estimator", "Estimate", "95 % interval", "Episodes that count", "Support"],
    found.estimates.map((each) => [each.name, number(each.value), interval(each), number(each.episodes, 0), each.support])));
  parts.push(picture, el("p", { class: "hint" }, `For the fixed probabilities: ${found.advice}`), estimators);
  if (told.lost) parts.unshift(el("p", {}, told.lost.text));
  fill("value").replaceChildren(...parts);
  if (known.length) intervals(picture, known, [horizon * low, horizon * high]);
}

function lists(told) {
  fill("under-way").replaceChildren(table("Under way",
    ["Person", "Episode", "Since", "Last call", "Steps", "Version", "Source"],
    told.under_way.map((each) => [personButton(each.person), each.episode, time(each.opened), time(each.touched), `${each.steps} of ${told.horizon}`, each.version, each.source]),
    "Nobody."));
  fill("overdue").replaceChildren(table("Overdue rewards", ["Person", "Episode", "Step", "Decided", "Action"],
    told.overdue.map((each) => [personButton(each.person), each.episode, each.step, time(each.time), each.action]), "None is overdue."));
  const why = (each) => ({
    published: "published: finite, within its bounds, with certified plans",
    refused: `not published: ${each.cause}`,
    "rolled back to": "in use again, by an administrator",
  })[each.verdict];
  fill("versions").replaceChildren(table("Versions", ["Version", "When", "Learned from", "What became of it"],
    told.versions.map((each) => [each.version, time(each.time), `${each.episodes} episodes`, why(each)]), "Nothing was learned yet: version 0 knows nothing."));
  fill("incidents").replaceChildren(table("Incidents", ["When", "", "Check", "What"],
    told.incidents.map((each) => [time(each.time), colour(each.severity), each.check, each.message]), "None."));
}

function contextForm(told) {
  if ($("policy-fields").childElementCount) return;
  const choice = (name, labels, empty) => el("select", { name },
    ...(empty ? [el("option", { value: "" }, "unknown")] : []), ...labels.map((each) => el("option", {}, each)));
  const field = (name, input) => {
    input.id = `context-${$("policy-fields").childElementCount}`;
    $("policy-fields").append(el("div", {}, el("label", { for: input.id }, name), input));
  };
  if (told.context.labels) field("Context", choice("", told.context.labels, false));
  for (const column of told.context.columns ?? []) {
    if (column.labels) field(column.name, choice(column.name, column.labels, true));
    else field(`${column.name} (${column.low} to ${column.high})`, el("input", { name: column.name, type: "number", step: "any" }));
  }
}

function contextAsked() {
  const fields = [...$("policy-fields").querySelectorAll("input, select")];
  if (shown.context.labels) return fields[0].value;
  return Object.fromEntries(fields.filter((each) => each.value !== "").map((each) =>
    [each.name, each.type === "number" ? Number(each.value) : each.value]));
}

async function showPolicy() {
  const told = await ask("v1/policy", { context: contextAsked() });
  const chance = (each) => {
    const cell = el("td", { class: "chance" }, number(each));
    cell.style.setProperty("--chance", each);
    return cell;
  };
  const rows = told.policy.flatMap((states, step) => states.map((row, state) => el("tr", {},
    el("td", {}, String(step)), el("td", {}, shown.states[state]), ...row.map(chance))));
  const heads = ["Step", "State", ...shown.actions].map((each) => el("th", { scope: "col" }, each));
  const made = told.source === "plan" ? `the plan's objective is within ${told.certificate.toPrecision(3)}/γ of its optimum, by its certificate`
    : `${told.source}, as there is ${told.cause}`;
  $("policy-table").replaceChildren(
    el("p", {}, `Version ${told.version}; ${made}.`),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Policy" },
      el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows))));
}

async function showPerson() {
  await guarded(async () => {
    const told = await ask(`v1/people/${encodeURIComponent($("person-name").value)}`);
    const heads = ["Step", "Decided", "State", "Action", "Probability", "Version", "Source", "Rules", "Reward", "Next state"];
    const row = ({ step, decision, outcome }) => [
      step, time(decision?.time), decision?.state, decision?.action, decision ? number(decision.probability) : "–", decision?.version ?? "–",
      decision?.cause ? `${decision.source}: ${decision.cause}` : decision?.source, decision?.rules.join(", ") || "–", number(outcome?.reward), outcome?.next_state,
    ];
    const context = (each) => (typeof each === "string" ? each : Object.entries(each).map(([name, entry]) => `${name}: ${entry ?? "unknown"}`).join(", "));
    const episode = (each, index) => {
      const made = el("details", {},
        el("summary", {}, `Episode ${each.episode}, ${time(each.opened)}, ${each.closed ? `closed (${each.closed})` : "under way"}`),
        el("p", { class: "hint" }, context(each.context)),
        table(`Episode ${each.episode}`, heads, each.steps.map(row), "No step yet."));
      made.open = index < OPEN;
      return made;
    };
    $("person-history").replaceChildren(
      el("p", {}, `${told.person}: ${told.episodes.length} episodes, the last one first.`), ...told.episodes.map(episode));
  }, $("person-history"));
}

// Show what went wrong where it was asked for; without a right to look, ask for the token.
async function guarded(task, place) {
  try {
    await task();
  } catch (error) {
    if (error instanceof Denied) return askForToken(error.message);
    const message = error instanceof TypeError ? "The service does not answer." : error.message;
    if (place) place.replaceChildren(el("p", { class: "red" }, message));
    else $("notice").textContent = message;
  }
}

function askForToken(message = "") {
  sessionStorage.removeItem(KEY);
  shown = null;
  $("notice").textContent = message;
  $("main").hidden = $("buttons").hidden = true;
  for (const each of document.querySelectorAll("main .fill, #policy-fields, #summary")) each.replaceChildren();
  $("trial").textContent = "Trial";
  $("as-of").textContent = "";
  $("token-form").hidden = false;
  $("token").focus();
}

function draw() {
  if (!shown) return;
  charts(shown);
  value(shown);
}

function refresh() {
  return guarded(async () => {
    shown = await ask("v1/overview");
    $("notice").textContent = "";
    $("token-form").hidden = true;
    $("main").hidden = $("buttons").hidden = false;
    document.title = $("trial").textContent = shown.trial;
    $("as-of").textContent = `${time(shown.time)}, times of ${shown.zone}`;
    summary(shown);
    checks(shown);
    lists(shown);
    contextForm(shown);
    draw();
  });
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("token").value.trim());
  $("token").value = "";
  refresh();
});
$("refresh").addEventListener("click", refresh);
$("forget").addEventListener("click", () => askForToken());
$("person-form").addEventListener("submit", (event) => { event.preventDefault(); showPerson(); });
$("policy-form").addEventListener("submit", (event) => { event.preventDefault(); guarded(showPolicy, $("policy-table")); });
let waiting;
window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(draw, 150); });
// Not under the hands of somebody who is in a table.
setInterval(() => { if (shown && !document.hidden && !document.activeElement.closest(".fill")) refresh(); }, EVERY);
if (sessionStorage.getItem(KEY)) refresh();
else askForToken();
