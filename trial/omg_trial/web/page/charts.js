// Small charts in SVG, drawn at the width that they have. Every text is a text node.

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

function frame(place, days, low, high, label, digits) {
  const width = Math.max(place.clientWidth, 240);
  const x = (index) => LEFT + (index + 0.5) * (width - LEFT - 8) / days.length;
  const y = (value) => TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": label });
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(shape("line", { class: "axis", x1: LEFT, x2: width, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(digits)));
  }
  const every = Math.ceil(days.length / Math.max(Math.floor((width - LEFT) / 70), 1));
  days.forEach((day, index) => {
    if (index % every) return;
    svg.append(shape("text", { x: x(index), y: HEIGHT - 6, "text-anchor": "middle" }, day.day.slice(5)));
  });
  place.replaceChildren(svg);
  return { svg, x, y, step: (width - LEFT - 8) / days.length };
}

export function bars(place, days, names) {
  const most = Math.max(2, ...days.map((day) => day.decisions));
  const high = most + most % 2;
  const { svg, x, y, step } = frame(place, days, 0, high, "Decisions of each day by action; the table below has the numbers.", 0);
  days.forEach((day, index) => {
    let sum = 0;
    day.actions.forEach((count, action) => {
      if (!count) return;
      const bar = shape("rect", {
        class: `a${action % 8}`, x: x(index) - 0.4 * step, width: 0.8 * step,
        y: y(sum + count), height: y(sum) - y(sum + count),
      });
      svg.append(titled(bar, `${day.day}: ${names[action]}, ${count} of ${day.decisions}`));
      sum += count;
    });
  });
  const legend = document.createElement("ul");
  legend.className = "legend";
  names.forEach((name, action) => {
    const item = document.createElement("li");
    item.append(
      shape("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" },
        shape("rect", { class: `a${action % 8}`, width: 12, height: 12 })), name);
    legend.append(item);
  });
  place.append(legend);
}

export function band(place, days) {
  const { svg, x, y } = frame(place, days, 0, 1, "Probabilities of what was done; the table below has the numbers.", 1);
  for (const run of runs(days, (day) => day.probability)) {
    const upper = run.map(([index, [, , high]]) => `${x(index)},${y(high)}`);
    const lower = run.map(([index, [low]]) => `${x(index)},${y(low)}`).reverse();
    svg.append(shape("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
    svg.append(shape("polyline", { class: "line", points: run.map(([i, [, mid]]) => `${x(i)},${y(mid)}`).join(" ") }));
    for (const [index, [low, mid, high]] of run) {
      const text = `${days[index].day}: median ${mid.toFixed(3)}, from ${low.toFixed(3)} to ${high.toFixed(3)}`;
      if (run.length === 1) svg.append(shape("line", { class: "whisker", x1: x(index), x2: x(index), y1: y(low), y2: y(high) }));
      svg.append(titled(shape("circle", { class: "dot", cx: x(index), cy: y(mid), r: 3 }), text));
    }
  }
}

export function means(place, days, [low, high]) {
  const { svg, x, y } = frame(place, days, low, high, "Mean reward of each day; the table below has the numbers.", 2);
  for (const run of runs(days, (day) => day.reward)) {
    svg.append(shape("polyline", { class: "line", points: run.map(([i, each]) => `${x(i)},${y(each.mean)}`).join(" ") }));
    for (const [index, each] of run) {
      if (each.low !== null) {
        svg.append(shape("line", { class: "whisker", x1: x(index), x2: x(index), y1: y(each.low), y2: y(each.high) }));
      }
      const text = `${days[index].day}: ${each.mean.toFixed(3)}, ${each.people} people`;
      svg.append(titled(shape("circle", { class: "dot", cx: x(index), cy: y(each.mean), r: 3.5 }), text));
    }
  }
}

export function intervals(place, rows, [low, high]) {
  const width = Math.max(place.clientWidth, 240), left = 8, height = 46 * rows.length + 26;
  const x = (value) => left + (value - low) / (high - low) * (width - 2 * left);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Values with their intervals, as in the table." });
  rows.forEach(([name, each], index) => {
    const y = 46 * index + 34;
    svg.append(shape("text", { x: left, y: y - 16 }, name));
    svg.append(shape("line", { class: "axis", x1: x(low), x2: x(high), y1: y, y2: y }));
    if (each.low !== null) svg.append(shape("line", { class: "whisker", x1: x(each.low), x2: x(each.high), y1: y, y2: y, "stroke-width": 6 }));
    svg.append(shape("circle", { class: "dot", cx: x(each.value), cy: y, r: 5 }));
  });
  for (const [value, anchor] of [[low, "start"], [high, "end"]]) {
    svg.append(shape("text", { x: x(value), y: height - 4, "text-anchor": anchor }, value.toFixed(2)));
  }
  place.replaceChildren(svg);
}

// Days in a row for which there is a value, with their places.
function runs(days, value) {
  const found = [];
  days.forEach((day, index) => {
    const each = value(day);
    if (each === null) return;
    const last = found.at(-1);
    if (last && last.at(-1)[0] === index - 1) last.push([index, each]);
    else found.push([[index, each]]);
  });
  return found;
}
