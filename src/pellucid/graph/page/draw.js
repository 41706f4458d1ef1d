// The picture: boxes, frames, lines and labels as elements of an SVG, made for what can be seen only.

const ARROW = 5, STACK = 6, TITLE_LINE = 18, FAR = 0.3, MOST_ELEMENTS = 1500;
const layers = { frames: $("frames"), lines: $("lines"), boxes: $("boxes"), labels: $("labels") };
// items: all that can be drawn, by layer; drawn: the elements that there are, by item.
const picture = { items: { frames: [], lines: [], boxes: [], labels: [] }, drawn: new Map(), far: false, byBox: new Map() };

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== "") element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const rectOf = ({ main, cross, length, width }) => ({ x: cross, y: main, width, height: length });

// Works out what there is to draw in a scene.
function preparePicture(scene) {
  const { places, labels, lines, heads } = scene.layout, items = { frames: [], lines: [], boxes: [], labels: [] };
  picture.byBox = new Map();
  scene.things.forEach((thing, number) => {
    places[number].forEach((place, copy) => {
      const opened = scene.boxes[number].opened, item = { type: opened ? "frames" : "boxes", thing, number, copy, ...rectOf(place) };
      if (opened) item.head = heads.get(number) - item.x;
      items[item.type].push(item);
      if (!picture.byBox.has(number)) picture.byBox.set(number, []);
      picture.byBox.get(number).push(item);
    });
  });
  for (const line of lines) items.lines.push(lineItem(scene, line));
  labels.forEach((place, number) => {
    if (place) items.labels.push({ type: "labels", number, arrow: number, ...rectOf(place) });
  });
  picture.items = items;
  for (const layer of Object.values(layers)) layer.replaceChildren();
  picture.drawn.clear();
  picture.far = null;
}

function lineItem(scene, { spans, arrows, head, part }) {
  const number = arrows[0], kind = scene.carried[number][0].kind, back = scene.backward.has(number);
  const off = kind === "cut" && (part === "after") !== back;
  const pointed = head && !back, last = spans[spans.length - 1], drawn = spans.slice();
  if (pointed) drawn[drawn.length - 1] = { ...last, start: Math.min(last.start, last.end - ARROW), end: last.end - 1 };
  let left = Infinity, right = -Infinity;
  for (const span of spans) {
    left = Math.min(left, span.middle);
    right = Math.max(right, span.middle);
  }
  return {
    type: "lines", arrows, path: pathOf(drawn), look: kind === "constant" || off ? "constant" : "gradient", off, pointed,
    broken: kind === "cut" && part === "before" ? last : null,
    x: left - 4, width: right - left + 8, y: spans[0].start - 4, height: last.end - spans[0].start + 8,
  };
}

function pathOf(spans) {
  const at = (middle, main) => `${middle.toFixed(1)},${main.toFixed(1)}`;
  let path = `M${at(spans[0].middle, spans[0].start)}`;
  if (spans[0].end > spans[0].start) path += `L${at(spans[0].middle, spans[0].end)}`;
  for (let k = 1; k < spans.length; k++) {
    const before = spans[k - 1], after = spans[k], half = (before.end + after.start) / 2;
    path += `C${at(before.middle, half)} ${at(after.middle, half)} ${at(after.middle, after.start)}`;
    if (after.end > after.start) path += `L${at(after.middle, after.end)}`;
  }
  return path;
}

// Makes the elements of what has come into view, and drops those of what has left it.
function drawSeen() {
  const { left, top, right, bottom } = seen(), slack = 200 / view.k;
  const isSeen = (item) => item.x < right + slack && item.x + item.width > left - slack
    && item.y < bottom + slack && item.y + item.height > top - slack;
  const wanted = {};
  let count = 0;
  for (const [name, items] of Object.entries(picture.items)) {
    wanted[name] = items.filter(isSeen);
    count += wanted[name].length;
  }
  const far = view.k < FAR && count > MOST_ELEMENTS / 3 || count > MOST_ELEMENTS;
  if (far) drawFar(wanted);
  else if (picture.far) for (const name of ["lines", "boxes", "labels"]) layers[name].replaceChildren();
  if (far !== picture.far) picture.drawn.forEach((_, item) => { if (far || item.type !== "frames") picture.drawn.delete(item); });
  picture.far = far;
  drawNear(far ? { frames: wanted.frames } : wanted);
  canvas.classList.toggle("far", view.k < FAR);
}

function drawNear(wanted) {
  const keep = new Set(Object.values(wanted).flat());
  picture.drawn.forEach((element, item) => {
    if (keep.has(item)) return;
    element.remove();
    picture.drawn.delete(item);
  });
  for (const [name, items] of Object.entries(wanted)) {
    for (const item of items) {
      if (picture.drawn.has(item)) continue;
      const element = { frames: frameElement, lines: lineElement, boxes: boxElement, labels: labelElement }[name](item);
      picture.drawn.set(item, element);
      layers[name].append(element);
      dress(item, element);
    }
  }
}

// From far away, or of very many boxes, one path for all of a look: no texts, and quick.
function drawFar(wanted) {
  const paths = new Map(), add = (key, path) => paths.set(key, (paths.get(key) ?? "") + path);
  for (const item of wanted.lines) add(`lines line ${item.look}${item.off ? " off" : ""}`, item.path);
  for (const { thing, x, y, width, height } of wanted.boxes) {
    add(`boxes far-box ${thing.look}`, `M${x.toFixed(1)},${y.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h${(-width).toFixed(1)}z`);
  }
  for (const name of ["lines", "boxes", "labels"]) layers[name].replaceChildren();
  paths.forEach((path, key) => {
    const [layer, ...classes] = key.split(" ");
    layers[layer].append(svg("path", { class: classes.join(" "), d: path }));
  });
  for (const item of wanted.boxes) {
    if (item.thing !== state.selected) continue;
    const element = boxElement(item);
    layers.boxes.append(element);
    dress(item, element);
  }
}

// --- elements --------------------------------------------------------------------------------------------------------

const idOf = (item) => `box-${item.number}-${item.copy}`;

function boxElement(item) {
  const { thing, x, y } = item, fold = thing.isBlock && thing.kind === "fold";
  const width = item.width - (fold ? STACK : 0), height = item.height - (fold ? STACK : 0);
  const corner = ["leaf", "input", "constant"].includes(thing.kind) ? height / 2 : 6;
  const element = svg("g", {
    class: `box ${thing.look}${thing.root ? " has-root" : ""}`, id: idOf(item), role: "button", transform: `translate(${x} ${y})`,
    "aria-label": describe(thing), "aria-expanded": thing.isBlock ? "false" : null,
  });
  element.append(svg("title", {}, describe(thing)));
  if (fold) for (const d of [STACK, STACK / 2]) element.append(svg("rect", { x: d, y: d, width, height, rx: 6 }));
  element.append(svg("rect", { width, height, rx: corner }));
  const rows = thing.label.rows, block = TITLE_LINE + ROW_LINE * rows.length;
  let at = (height - block) / 2 + TITLE_LINE - 5;
  const middle = width / 2 + (thing.isBlock ? 8 : 0);
  element.append(titleElement(thing.label, middle, at, "middle"));
  if (thing.isBlock) element.append(signElement(16, at - 5, true));
  for (const [style, text] of rows) {
    at += ROW_LINE;
    element.append(svg("text", { class: `row ${style}`, x: width / 2, y: at, "text-anchor": "middle" }, style === "grad" ? "" : text));
  }
  element.addEventListener("click", () => clickBox(thing));
  return element;
}

function titleElement({ name, what }, x, y, anchor) {
  const text = svg("text", { class: "heading", x, y, "text-anchor": anchor });
  if (name) text.append(svg("tspan", { class: "name" }, name));
  if (what) text.append(svg("tspan", { class: name ? "what" : "name plain-name" }, (name ? " " : "") + what));
  return text;
}

// The mark of what opens (a plus) or closes (a minus).
function signElement(x, y, plus) {
  const sign = svg("g", { class: "sign", transform: `translate(${x} ${y})` });
  sign.append(svg("rect", { x: -6, y: -6, width: 12, height: 12, rx: 3 }), svg("path", { d: plus ? "M-3,0h6M0,-3v6" : "M-3,0h6" }));
  return sign;
}

function frameElement(item) {
  const { thing, x, y, width, height, head } = item, element = svg("g", { class: "frame", transform: `translate(${x} ${y})` });
  if (thing.kind === "fold") element.append(svg("rect", { class: "border", x: 5, y: 5, width, height, rx: 9 }));
  element.append(svg("rect", { class: "border", width, height, rx: 9 }));
  const title = titleOf(thing), wide = textWidth(title, FONT);
  const button = svg("g", {
    class: "close", id: idOf(item), role: "button", "aria-expanded": "true", "aria-label": describe(thing),
    transform: `translate(${head} 0)`,
  });
  button.append(svg("title", {}, `${describe(thing)}, ${say("close it")}`));
  button.append(svg("rect", { class: "hit", x: -6, y: 2, width: wide + 34, height: 22, rx: 5 }));
  button.append(signElement(7, 13, false), titleElement(thing.label, 20, 18, "start"));
  button.addEventListener("click", () => toggleBlock(thing));
  element.append(button);
  const words = foldButton(thing, state.unfolded);
  if (words) element.append(unfoldElement(thing, words, head + wide + 36));
  return element;
}

function unfoldElement(block, words, x) {
  const button = svg("g", { class: "unfold", role: "button", "aria-label": words, transform: `translate(${x} 4)` });
  button.append(svg("rect", { width: textWidth(words, NOTE_FONT) + 14, height: 18, rx: 9 }));
  button.append(svg("text", { class: "row", x: 7, y: 13 }, words));
  button.addEventListener("click", () => toggleFold(block));
  return button;
}

function lineElement(item) {
  const element = svg("g", { class: "arrow" });
  const path = svg("path", { class: `line ${item.look}${item.off ? " off" : ""}`, d: item.path });
  if (item.pointed) path.setAttribute("marker-end", `url(#head-${item.look})`);
  element.append(path);
  if (item.broken) {
    const { end, middle } = item.broken, stroke = (back) => `M${middle - 6},${end - back + 2}L${middle + 6},${end - back - 2}`;
    element.append(svg("path", { class: "break", d: stroke(3) + stroke(7) }));
  }
  const carried = item.arrows.flatMap((number) => state.scene.carried[number]);
  element.append(svg("title", {}, describeEdges(carried)));
  return element;
}

function labelElement(item) {
  const rows = state.scene.rows[item.number], element = svg("g", { class: "label" });
  const live = state.scene.carried[item.number][0].kind === "gradient", count = rows.length + live;
  const row = (style, text, place) => svg("text", {
    class: `row ${style}`, x: item.x + item.width / 2, "text-anchor": "middle",
    y: item.y + item.height / 2 + (place - (count - 1) / 2) * ROW_LINE + NOTE_FONT * 0.36,
  }, text);
  rows.forEach(([style, text], place) => element.append(row(style, text, place)));
  if (live) element.append(row("carried", "", rows.length));
  return element;
}

function markers() {
  return ["gradient", "constant"].map((look) => svg("marker", {
    id: `head-${look}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto",
    markerUnits: "userSpaceOnUse",
  }, svg("path", { class: `head ${look}`, d: "M0,0.5L8,4L0,7.5z" })));
}
