// What each page shows of the overview that the service sent.

import { bars, lines, means, shares } from "./charts.js";
import { $, colour, count, el, interval, number, share, table, time } from "./dom.js";

const ORDER = { red: 0, yellow: 1, green: 2 };
const put = (id, ...children) => $(id).replaceChildren(...children);

export const PAGES = {
  overview(told, show) {
    const bad = told.checks.filter((each) => each.severity !== "green");
    const red = bad.filter((each) => each.severity === "red").length;
    const state = red ? `${count(red, "check is", "checks are")} red: act today.`
      : bad.length ? `${count(bad.length, "check is", "checks are")} yellow: find out why.` : "All checks are green.";
    put("story",
      ...halts(told),
      el("p", {}, `${count(told.people, "person is", "people are")} enrolled; ${told.people_this_week} had a decision in the last seven days, and ${told.withdrawn} withdrew.`),
      ...(told.waiting ? [el("p", {}, `Version ${told.waiting.version} of the model waits until somebody publishes it.`)] : []),
      el("p", {}, told.rewards_due ? `Of the rewards that were due this week, ${share(told.rewards_overdue, told.rewards_due)} are missing.` : "No reward is due yet this week."),
      el("p", { class: red ? "red" : bad.length ? "yellow" : "green" }, state));
    tiles(told, red, bad);
    put("attention", bad.length ? findings(bad) : el("p", {}, "Nothing stands out."));
    people(told);
  },
  people(told, show) {
    put("arms", told.arms ? Object.entries(told.arms).map(([arm, many]) => `${many} in the ${arm} arm`).join(", ") + `; ${told.paused} paused.` : "");
    if (told.retention.length) {
      shares($("chart-retention"), told.retention);
      $("chart-retention").append(details("As a table", table("Who stays", ["Week", "People", "Took part"],
        told.retention.map((each) => [each.week, each.people, each.took_part]))));
    } else put("chart-retention", el("p", {}, "Nobody has been in the trial for a week."));
    put("under-way", table("Under way", ["Person", "Episode", "Since", "Last call", "Steps", "Version", "Source"],
      told.under_way.map((each) => [show(each.person), each.episode, time(each.opened), time(each.touched), `${each.steps} of ${told.horizon}`, each.version, each.source]),
      "Nobody."));
  },
  decisions(told) {
    if (!told.days.length) return empty(["chart-actions", "chart-chances", "chart-rules", "days"]);
    if (!told.blinded) {
      bars($("chart-actions"), told.days, told.actions, (day) => day.actions, "Decisions of each day by action, as in the table of days.");
      lines($("chart-chances"), told.days, told.actions, (day) => day.chances, [0, 1], "Probability of each action, as in the table of days.", told.floor);
      put("budgets", told.budgets.length ? table("Budgets of an episode", ["Budget", "Expected cost, mean", "At most", "Episodes"],
        told.budgets.map((each) => [each.name, number(each.planned), each.most, each.episodes])) : "");
      rules(told);
      put("floor", told.floor ? `The thin dotted line is the floor of the trial file, ${told.floor}.` : "The trial file sets no floor.");
    }
    days(told);
  },
  outcomes(told, show) {
    if (!told.days.length) return empty(["chart-missing", "chart-rewards", "by-action", "lost", "overdue"]);
    bars($("chart-missing"), told.days, ["known", "may still come", "overdue"],
      (day) => [day.decisions - day.waiting - day.missing, day.waiting, day.missing], "Rewards that are known, awaited or overdue; the table of days has the numbers.", [0, 7, 5]);
    put("overdue", table("Overdue rewards", ["Person", "Episode", "Step", "Decided", ...(told.blinded ? [] : ["Action"])],
      told.overdue.map((each) => [show(each.person), each.episode, each.step, time(each.time), ...(told.blinded ? [] : [each.action])]), "None is overdue."));
    if (told.blinded) return;
    means($("chart-rewards"), told.days, told.reward_range);
    byAction(told);
    put("lost", el("p", { class: "hint" }, told.lost ?? "Nothing is known yet."));
  },
  checks(told, show, acknowledge) {
    const sorted = [...told.checks].sort((one, other) => ORDER[one.severity] - ORDER[other.severity]);
    const bad = sorted.filter((each) => each.severity !== "green"), good = sorted.filter((each) => each.severity === "green");
    const more = details(`${good.length} checks are green`, findings(good), $("checks").querySelector("details")?.open);
    put("checks", bad.length ? findings(bad) : el("p", {}, "Nothing stands out."), more);
    const note = (each) => (each.note !== null ? each.note : each.severity === "green" ? "–" : acknowledge(each));
    put("incidents", table("Incidents", ["When", "Colour", "Check", "Note", "What"],
      told.incidents.map((each) => [time(each.time), colour(each.severity), each.check, note(each), each.message]), "None."));
  },
  model(told) {
    const why = (each) => ({
      published: "published: finite, within its bounds, with certified plans",
      waiting: each.version === told.waiting?.version ? "passed its checks, and waits until somebody publishes it" : "passed its checks",
      refused: `not published: ${each.cause}`,
      "rolled back to": "in use again, by an administrator",
    })[each.verdict];
    put("versions", table("Versions", ["Version", "When", "Learned from", "What became of it"],
      told.versions.map((each) => [each.version, time(each.time), each.episodes === null ? null : count(each.episodes, "episode"), why(each)]), "Nothing was learned yet: version 0 knows nothing."));
  },
};

function halts(told) {
  const one = (what, halt) => el("p", { class: "red" }, `${what} has been ${halt.kind} since ${time(halt.time)}: ${halt.cause}`);
  return [...(told.halted ? [one("The trial", told.halted)] : []), ...Object.entries(told.halted_actions).map(([name, halt]) => one(`The action ${name}`, halt))];
}

const details = (title, inside, open = false) => {
  const made = el("details", {}, el("summary", {}, title), inside);
  made.open = Boolean(open);
  return made;
};
const findings = (those) => table("Checks", ["Colour", "Check", "Finding"], those.map((each) => [colour(each.severity), each.check, each.message]));
const empty = (places) => places.forEach((place) => put(place, el("p", {}, "No decisions yet.")));

function tiles(told, red, bad) {
  const all = [
    ["Status", colour(red ? "red" : bad.length ? "yellow" : "green")], ["People", told.people], ["Withdrawn", told.withdrawn], ["Paused", told.paused],
    ["Episodes", told.episodes], ["Under way", told.episodes_under_way], ["Overdue rewards", told.rewards_overdue],
    ["Model in use", `version ${told.version}`],
  ];
  put("summary", ...all.map(([name, each]) => el("div", {}, el("dt", {}, name), el("dd", {}, each instanceof Node ? each : String(each)))));
}

function people(told) {
  if (!told.days.length) return empty(["chart-people"]);
  const most = Math.max(2, told.people);
  lines($("chart-people"), told.days, ["enrolled", "had a decision that day"], (day) => [day.enrolled, day.people], [0, most + most % 2], "People who are enrolled, and who had a decision, as in the table of days.");
}

function rules(told) {
  const counts = (day) => [day.rules, day.fallbacks, day.unavailable], most = Math.max(...told.days.flatMap(counts));
  if (!most) put("chart-rules", el("p", {}, "None on these days."));
  else lines($("chart-rules"), told.days, ["changed by a rule", "without a fresh plan", "not available"], counts, [0, Math.max(4, most + most % 2)], "Decisions changed by rules, made without a plan, or without a draw, as in the table of days.");
}

function days(told) {
  const seen = (day) => [
    day.unavailable, day.rules, day.fallbacks,
    ...day.actions, ...(day.chances ?? told.actions.map(() => null)).map((each) => number(each, 2)),
    number(day.reward?.mean), day.reward ? interval(day.reward, "–") : "–",
  ];
  const heads = ["Day", "Enrolled", "People", "Decisions", "Reward missing"];
  const more = told.blinded ? [] : ["Not available", "By a rule", "No fresh plan", ...told.actions, ...told.actions.map((each) => `P(${each})`), "Reward", "Interval"];
  put("days", table("Days", [...heads, ...more], [...told.days].reverse().map((day) => [
    day.day, day.enrolled, day.people, day.decisions, day.missing, ...(told.blinded ? [] : seen(day)),
  ])));
}

function byAction(told) {
  const columns = [...new Set(told.rewards.map((each) => each.column))];
  if ($("column").childElementCount !== columns.length) {
    put("column", ...columns.map((each) => el("option", { value: each }, each || "everybody together")));
  }
  const cell = (each) => (each ? `${number(each.mean)} (${interval(each, "few people")}; ${count(each.decisions, "decision")})` : "–");
  const rows = told.rewards.filter((each) => each.column === $("column").value);
  put("by-action", table("Reward by action", [$("column").value || "People", ...told.actions], rows.map((each) => [each.value || "everybody", ...each.actions.map(cell)])));
}
