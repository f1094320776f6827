// Small charts in SVG, drawn at the width that they have. Every text is a text node, and tables have the same numbers.

const SPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 190, LEFT = 44, BOTTOM = 24, TOP = 10;

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function titled(node, text) {
  node.append(shape("title", {}, text));
  return node;
}

function frame(place, names, low, high, label, digits) {
  const width = Math.max(place.clientWidth, 240);
  const step = (width - LEFT - 8) / names.length;
  const x = (index) => LEFT + (index + 0.5) * step;
  const y = (value) => TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": label });
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(shape("line", { class: "axis", x1: LEFT, x2: width, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(digits)));
  }
  const every = Math.ceil(names.length / Math.max(Math.floor((width - LEFT) / 70), 1));
  names.forEach((name, index) => {
    if (index % every === 0) svg.append(shape("text", { x: x(index), y: HEIGHT - 6, "text-anchor": "middle" }, name));
  });
  place.replaceChildren(svg);
  return { svg, x, y, step };
}

function legend(place, names, mark) {
  const made = document.createElement("ul");
  made.className = "legend";
  names.forEach((name, index) => {
    const item = document.createElement("li");
    item.append(shape("svg", { viewBox: "0 0 20 12", "aria-hidden": "true" }, mark(index)), name);
    made.append(item);
  });
  place.append(made);
}

const dates = (days) => days.map((each) => each.day.slice(5));

// Stacked bars: `values(day)` has one number for each name, `kinds` the colours.
export function bars(place, days, names, values, label, kinds = names.map((_, which) => which % 8)) {
  const most = Math.max(2, ...days.map((each) => values(each).reduce((sum, value) => sum + value, 0)));
  const { svg, x, y, step } = frame(place, dates(days), 0, most + most % 2, label, 0);
  days.forEach((each, index) => {
    let sum = 0;
    values(each).forEach((value, which) => {
      if (!value) return;
      const bar = shape("rect", {
        class: `a${kinds[which]}`, x: x(index) - 0.4 * step, width: 0.8 * step, y: y(sum + value), height: y(sum) - y(sum + value),
      });
      svg.append(titled(bar, `${each.day}: ${names[which]}, ${value}`));
      sum += value;
    });
  });
  legend(place, names, (which) => shape("rect", { class: `a${kinds[which]}`, width: 20, height: 12 }));
}

// One line for each name; `values(day)` is null where there is nothing. `rule` is a level drawn across.
export function lines(place, days, names, values, [low, high], label, rule = null) {
  const { svg, x, y } = frame(place, dates(days), low, high, label, high > 2 ? 0 : 1);
  if (rule) svg.append(shape("line", { class: "rule", x1: x(0), x2: x(days.length - 1), y1: y(rule), y2: y(rule) }));
  const digits = high > 2 ? 0 : 3;
  names.forEach((name, which) => {
    for (const run of runs(days, (each) => values(each)?.[which] ?? null)) {
      svg.append(shape("polyline", { class: `line s${which % 8}`, points: run.map(([i, value]) => `${x(i)},${y(value)}`).join(" ") }));
      for (const [index, value] of run) {
        const dot = shape("circle", { class: `a${which % 8}`, cx: x(index), cy: y(value), r: 3 });
        svg.append(titled(dot, `${days[index].day}: ${name}, ${value.toFixed(digits)}`));
      }
    }
  });
  legend(place, names, (which) => shape("line", { class: `line s${which % 8}`, x1: 0, x2: 20, y1: 6, y2: 6 }));
}

export function means(place, days, [low, high]) {
  const { svg, x, y } = frame(place, dates(days), low, high, "Mean reward of each day, as in the table of days.", 2);
  for (const run of runs(days, (each) => each.reward)) {
    svg.append(shape("polyline", { class: "line s0", points: run.map(([i, each]) => `${x(i)},${y(each.mean)}`).join(" ") }));
    for (const [index, each] of run) whisker(svg, x(index), y, each, `${days[index].day}: ${each.mean.toFixed(3)}, ${each.people} people`);
  }
}

export function shares(place, weeks) {
  const { svg, x, y, step } = frame(place, weeks.map((each) => `week ${each.week}`), 0, 1, "Share of people who took part, as in the table.", 1);
  weeks.forEach((each, index) => {
    const part = each.took_part / each.people;
    const bar = shape("rect", { class: "a0", x: x(index) - 0.4 * step, width: 0.8 * step, y: y(part), height: y(0) - y(part) });
    svg.append(titled(bar, `Week ${each.week}: ${each.took_part} of ${each.people}`));
  });
}

function whisker(svg, x, y, each, text) {
  if (each.low !== null) svg.append(shape("line", { class: "whisker", x1: x, x2: x, y1: y(each.low), y2: y(each.high) }));
  svg.append(titled(shape("circle", { class: "a0", cx: x, cy: y(each.mean), r: 3.5 }), text));
}

// One person: a column for each day, a box for each decision in the colour of its action, filled as high as its reward.
export function strip(place, columns, names, [low, high]) {
  const box = 22, gap = 3, top = 4, most = Math.max(1, ...columns.map((each) => each.steps.length));
  const width = columns.length * (box + gap), height = top + most * (box + gap) + 18;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Days of this person; the tables below have the same." });
  columns.forEach((column, index) => {
    const x = index * (box + gap);
    if (index % 3 === 0) svg.append(shape("text", { x, y: height - 4 }, column.day.slice(5)));
    if (!column.steps.length) svg.append(shape("line", { class: "axis", x1: x, x2: x + box, y1: top + box, y2: top + box }));
    column.steps.forEach((each, row) => {
      const y = top + row * (box + gap), kind = each.action === null ? 7 : names.indexOf(each.action) % 8;
      const known = each.reward !== null, full = known ? Math.max(box * (each.reward - low) / (high - low), 2) : 0;
      const group = shape("g", {}, shape("rect", { class: `box s${kind}`, x: x + 1, y: y + 1, width: box - 2, height: box - 2 }));
      if (known) group.append(shape("rect", { class: `a${kind}`, x, y: y + box - full, width: box, height: full }));
      svg.append(titled(group, each.text));
    });
  });
  place.append(svg);
}

export const colours = (place, names) => legend(place, names, (which) => shape("rect", { class: `a${which % 8}`, width: 20, height: 12 }));

// Days in a row for which there is a value, with their places.
function runs(days, value) {
  const found = [];
  days.forEach((each, index) => {
    const here = value(each);
    if (here === null || here === undefined) return;
    const last = found.at(-1);
    if (last && last.at(-1)[0] === index - 1) last.push([index, here]);
    else found.push([[index, here]]);
  });
  return found;
}
