// The page of a trial: the token, the pages, and what is asked of the service.

import { $, el, setZone, time } from "./dom.js";
import { PAGES } from "./pages.js";
import { contextAsked, contextForm, showPerson, showPolicy } from "./questions.js";

const KEY = "omg-trial token";
const EVERY = 60_000;
let shown = null;

const UNKNOWN = "The service does not know this token. It may be mistyped, expired or revoked.";

class Denied extends Error {
  constructor(message, status) { super(message); this.status = status; }
}

async function ask(path, body, key) {
  const options = { headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    if (key) options.headers["Idempotency-Key"] = key;
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const told = await answer.json().catch(() => ({ error: `the service answered with status ${answer.status}` }));
  if (answer.status === 401 || answer.status === 403) throw new Denied(told.error, answer.status);
  if (!answer.ok) throw new Error(told.error);
  return told;
}

// Show what went wrong where it was asked for; without a right to look, ask for the token.
async function guarded(task, place) {
  try {
    await task();
  } catch (error) {
    if (error instanceof Denied && !place) return askForToken(error.status === 401 ? UNKNOWN : error.message);
    const message = error instanceof TypeError ? "The service does not answer." : error.message;
    if (place) place.replaceChildren(el("p", { class: "red" }, message));
    else $("notice").textContent = message;
  }
}

function askForToken(message = "") {
  sessionStorage.removeItem(KEY);
  shown = null;
  $("notice").textContent = message;
  $("pages").hidden = $("buttons").hidden = $("blind").hidden = true;
  for (const each of document.querySelectorAll("main .fill, #policy-fields, #summary, #story, #column")) each.replaceChildren();
  for (const each of document.querySelectorAll(".page")) each.hidden = true;
  document.title = $("trial").textContent = "Trial";
  $("as-of").textContent = $("person-name").value = "";
  $("token-form").hidden = false;
  $("token").focus();
}

const current = () => (location.hash.slice(1) in PAGES ? location.hash.slice(1) : "overview");

// Show the page that the address names, and draw it at the width that it has.
function draw() {
  if (!shown) return;
  const page = current();
  for (const name of Object.keys(PAGES)) $(`page-${name}`).hidden = name !== page;
  for (const link of $("pages").querySelectorAll("a")) {
    if (link.hash === `#${page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${$(`title-${page}`).textContent} · ${shown.trial}`;
  PAGES[page](shown, personButton, acknowledgement);
}

function refresh() {
  return guarded(async () => {
    shown = await ask("v1/overview");
    setZone(shown.zone);
    $("notice").textContent = "";
    $("token-form").hidden = true;
    $("pages").hidden = $("buttons").hidden = false;
    $("blind").hidden = !shown.blinded;
    for (const each of document.querySelectorAll(".open")) each.hidden = shown.blinded;
    $("trial").textContent = shown.trial;
    $("as-of").textContent = `${time(shown.time)}, times of ${shown.zone}`;
    contextForm(shown);
    draw();
  });
}

function personButton(name) {
  const button = el("button", { type: "button", class: "link" }, name);
  button.addEventListener("click", () => {
    $("person-name").value = name;
    location.hash = "people";
    draw();
    person();
    $("person-name").focus();
  });
  return button;
}

// A form for the note of an incident, for administrators.
function acknowledgement({ number, check }) {
  const field = el("input", { "aria-label": `Note on ${check}, event ${number}`, maxlength: "500", required: "" });
  const told = el("span", { role: "status" });
  const form = el("form", { class: "note" }, field, el("button", { type: "submit" }, "Acknowledge"), told);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const key = `page-acknowledge-${number}-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
    guarded(async () => { await ask(`v1/incidents/${number}/acknowledge`, { note: field.value }, key); await refresh(); }, told);
  });
  return form;
}

const person = () => guarded(
  async () => showPerson(await ask(`v1/people/${encodeURIComponent($("person-name").value)}`), shown), $("person-history"));

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("token").value.trim());
  $("token").value = "";
  refresh();
});
$("refresh").addEventListener("click", refresh);
$("forget").addEventListener("click", () => askForToken());
$("skip").addEventListener("click", (event) => { event.preventDefault(); $("main").focus(); });
$("column").addEventListener("change", draw);
$("column-form").addEventListener("submit", (event) => event.preventDefault());
$("person-form").addEventListener("submit", (event) => { event.preventDefault(); person(); });
$("policy-form").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => showPolicy(await ask("v1/policy", { context: contextAsked(shown) }), shown), $("policy-table"));
});
window.addEventListener("hashchange", () => {
  draw();
  if (shown && document.activeElement.closest("nav")) $(`title-${current()}`).focus();
});
let waiting;
window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(draw, 150); });
// Not under the hands of somebody who is in a table.
setInterval(() => { if (shown && !document.hidden && !document.activeElement.closest(".fill, form")) refresh(); }, EVERY);
if (sessionStorage.getItem(KEY)) refresh();
else askForToken();
