// Elements, tables and words. Whatever comes from people or the trial file is set as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => child ?? ""));
  return made;
}

export function table(label, heads, rows, nothing = "None.") {
  if (!rows.length) return el("p", {}, nothing);
  const numeric = heads.map((_, place) => rows.every((row) => typeof row[place] === "number"));
  const cell = (tag, each, place) => {
    const made = el(tag, tag === "th" ? { scope: "col" } : {}, each instanceof Node ? each : String(each ?? "–"));
    if (numeric[place]) made.className = "number";
    return made;
  };
  return scroll(label, el("table", { class: heads.at(-1).startsWith("What") ? "sentences" : "" },
    el("thead", {}, el("tr", {}, ...heads.map((each, place) => cell("th", each, place)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((each, place) => cell("td", each, place)))))));
}

// What may be wider or longer than its place: it can be reached by the keyboard, and has a name.
export const scroll = (label, ...inside) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...inside);

export const colour = (severity) => el("span", { class: `colour ${severity}` }, severity);
export const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
export const count = (many, one, more = `${one}s`) => `${many.toLocaleString("en-GB")} ${many === 1 ? one : more}`;
export const share = (part, whole) => `${(100 * part / whole).toFixed(0)} %`;
export const interval = (each, otherwise) => (each.low === null ? otherwise : `${number(each.low)} to ${number(each.high)}`);

let zone;
export const setZone = (name) => { zone = name; };

export function time(text) {
  if (!text) return "–";
  return new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: zone }).format(new Date(text));
}

// The date of a moment by the trial's clock, as 2026-11-02.
export const day = (text) => new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeZone: zone }).format(new Date(text));
