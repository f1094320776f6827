// What can be asked for: the history of a person, and the policy of a context.

import { colours, strip } from "./charts.js";
import { $, day, el, number, scroll, table, time } from "./dom.js";

const OPEN = 3; // number of a person's episodes that are unfolded
const DAY = 86_400_000;

export function showPerson(told, trial) {
  const context = (each) => (typeof each === "string" ? each : Object.entries(each).map(([name, entry]) => `${name}: ${entry ?? "unknown"}`).join(", "));
  const heads = ["Step", "Decided", "State", "Action", "Probability", "Version", "Source", "Rules", "Reward", "Next state"];
  const row = ({ step, decision, outcome }) => [
    step, time(decision?.time), decision?.state, decision?.action, decision ? number(decision.probability) : "–", decision?.version ?? "–",
    decision?.cause ? `${decision.source}: ${decision.cause}` : decision?.source, decision?.rules?.join(", ") || "–", number(outcome?.reward), outcome?.next_state,
  ];
  const episode = (each, open) => {
    const made = el("details", {},
      el("summary", {}, `Episode ${each.episode}, ${time(each.opened)}, ${each.closed ? `closed (${each.closed})` : "under way"}`),
      el("p", { class: "hint" }, context(each.context)),
      table(`Episode ${each.episode}`, heads, each.steps.map(row), "No step yet."));
    made.open = open;
    return made;
  };
  const picture = scroll(`Days of ${told.person}`), names = el("div"), earlier = told.episodes.slice(OPEN);
  $("person-history").replaceChildren(
    el("p", {}, `${told.person}: ${told.episodes.length} episodes, the last one first.`), el("p", { class: "hint" }, about(told)),
    el("p", { class: "hint" }, "A column is a day, a box is a decision in the colour of its action, filled as high as its reward; an empty box has no reward yet."),
    picture, names, ...told.episodes.slice(0, OPEN).map((each) => episode(each, true)));
  if (earlier.length) {
    $("person-history").append(el("details", {}, el("summary", {}, `${earlier.length} earlier`), ...earlier.map((each) => episode(each, false))));
  }
  if (!trial.blinded) colours(names, trial.actions);
  strip(picture, columns(told), trial.actions, trial.reward_range);
  picture.scrollLeft = picture.scrollWidth;
}

function about(told) {
  const consent = told.consent_from || told.consent_to ? `consent from ${told.consent_from ?? "the beginning"} to ${told.consent_to ?? "the end"}` : "";
  const halt = told.paused ? `${told.paused.kind}: ${told.paused.cause}` : "";
  return [`Enrolled ${time(told.enrolled)}`, told.arm ? `${told.arm} arm` : "", `times of ${told.zone}`, consent, told.end ? `last day ${told.end}` : "", halt].filter(Boolean).join("; ");
}

// All days from the first decision to the last one, those without a decision too.
function columns(told) {
  const steps = told.episodes.flatMap((each) => each.steps).filter((each) => each.decision)
    .sort((one, other) => (one.decision.time < other.decision.time ? -1 : 1));
  const found = new Map();
  const dates = steps.map((each) => Date.parse(day(each.decision.time)));
  for (let date = dates[0]; date <= dates.at(-1); date += DAY) found.set(date, { day: new Date(date).toISOString().slice(0, 10), steps: [] });
  steps.forEach(({ decision, outcome }, index) => {
    const reward = outcome?.reward ?? null;
    const words = [time(decision.time), decision.action ?? "", decision.probability === null ? "" : `probability ${number(decision.probability)}`,
      reward === null ? "no reward" : `reward ${number(reward)}`, ...(decision.rules ?? [])];
    found.get(dates[index]).steps.push({ action: decision.action, reward, text: words.filter(Boolean).join(", ") });
  });
  return [...found.values()];
}

export function contextForm(told) {
  if ($("policy-fields").childElementCount) return;
  const choice = (name, labels, empty) => el("select", { name },
    ...(empty ? [el("option", { value: "" }, "unknown")] : []), ...labels.map((each) => el("option", {}, each)));
  const field = (name, input) => {
    input.id = `context-${$("policy-fields").childElementCount}`;
    $("policy-fields").append(el("div", {}, el("label", { for: input.id }, name), input));
  };
  if (told.context.labels) field("Context", choice("", told.context.labels, false));
  for (const column of told.context.columns ?? []) {
    if (column.labels) field(column.column, choice(column.column, column.labels, true));
    else field(`${column.column} (${column.low} to ${column.high})`, el("input", { name: column.column, type: "number", step: "any" }));
  }
}

export function contextAsked(trial) {
  const fields = [...$("policy-fields").querySelectorAll("input, select")];
  if (trial.context.labels) return fields[0].value;
  return Object.fromEntries(fields.filter((each) => each.value !== "").map((each) =>
    [each.name, each.type === "number" ? Number(each.value) : each.value]));
}

export function showPolicy(told, trial) {
  const chance = (each) => {
    const cell = el("td", { class: "chance" }, number(each));
    cell.style.setProperty("--chance", each);
    return cell;
  };
  const rows = told.policy.flatMap((states, step) => states.map((row, state) => el("tr", {},
    el("td", {}, String(step)), el("td", {}, trial.states[state]), ...row.map(chance))));
  const heads = ["Step", "State", ...trial.actions].map((each) => el("th", { scope: "col" }, each));
  const made = told.source === "plan" ? `the plan's objective is within ${told.certificate.toPrecision(3)}/γ of its optimum, by its certificate`
    : `${told.source}, as there is ${told.cause}`;
  $("policy-table").replaceChildren(
    el("p", {}, `Version ${told.version}; ${made}.`),
    scroll("Policy", el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows))));
}
