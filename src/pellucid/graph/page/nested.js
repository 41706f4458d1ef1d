// Boxes within boxes: the nested layout of ../layout_nested.py, number for number.

const LAYER_GAP = 22, BOX_GAP = 20, PADDING = 14, WAY_OUT = 2, HEADING = 26, BEND = 18, WIDENED = 90, PORT_ROOM = 26, CORNER = 12, REACH = 3;

// boxes: {parent, length, width, opened, head, source}; arrows: {source, target, port, track, label: [length, width] | null}.
// Gives places (for each box its rectangles {main, cross, length, width}), labels, heads, lines, length and width.
function layOutNested(boxes, arrows, copies) {
  const levels = new Levels(boxes, arrows), solved = new Map();
  for (let n = boxes.length - 1; n >= -1; n--) {
    if (n >= 0 && !boxes[n].opened) continue;
    const level = levels.of.get(n), inside = solveLevel(levels, level, solved, copies);
    solved.set(n, n < 0 ? inside : headedFirst(levels, level, inside, boxes[n].head));
  }
  return gathered(levels, solved);
}

function gathered(levels, solved) {
  const outermost = solved.get(-1);
  const made = {
    places: levels.boxes.map(() => []), labels: levels.arrows.map(() => null), heads: new Map(), lines: [],
    length: outermost.length, width: outermost.width,
  };
  const stack = [[-1, 0, 0]];
  while (stack.length) {
    const [number, main, cross] = stack.pop(), level = solved.get(number);
    for (const [thing, rect] of level.rects) {
      const placed = { ...rect, main: rect.main + main, cross: rect.cross + cross };
      if (thing.kind === "label") {
        made.labels[thing.number] = placed;
        continue;
      }
      made.places[thing.number].push(placed);
      if (levels.boxes[thing.number].opened) {
        made.heads.set(thing.number, placed.cross + solved.get(thing.number).head);
        stack.push([thing.number, placed.main, placed.cross]);
      }
    }
    for (const line of movedLines(level.lines, main, cross)) made.lines.push(line);
  }
  return made;
}

// --- arrows in pieces, one for each level they run in; -1 is the outermost -------------------------------------------

const thingOf = (kind, number, copy = 0) => ({ kind, number, copy, key: `${kind} ${number} ${copy}` });
const partOf = (arrow, part) => (arrow.label ? part : "");

class Levels {
  constructor(boxes, arrows) {
    Object.assign(this, { boxes, arrows, of: new Map(), through: [], ports: new Map(), ties: new Map() });
    const level = () => ({ things: [], inward: [], outward: [], ties: [] });
    this.of.set(-1, level());
    boxes.forEach((box, n) => {
      this.of.get(box.parent).things.push(thingOf("box", n));
      if (box.opened) this.of.set(n, level());
    });
    arrows.forEach((_, n) => this.add(n));
  }

  add(number) {
    const arrow = this.arrows[number], { left, common, entered } = this.between(arrow.source, arrow.target);
    let at = thingOf("box", arrow.source), leave = null, level = common;
    for (const frame of left) {
      const port = this.port(frame, "outward", number);
      const part = partOf(arrow, "before");
      this.tie(frame, { source: at, target: thingOf("port", port), leave, enter: null, order: 0, arrows: [number], part });
      at = thingOf("box", frame);
      leave = port;
    }
    for (const frame of entered) {
      const port = this.port(frame, "inward", number);
      const tie = { source: at, target: thingOf("box", frame), leave, enter: port, order: 0, arrows: [number], part: "" };
      this.join(level, tie, level === common);
      at = thingOf("port", port);
      leave = null;
      level = frame;
    }
    const target = thingOf("box", arrow.target);
    const tie = { source: at, target, leave, enter: null, order: arrow.port, arrows: [number], part: "" };
    this.join(level, tie, level === common);
  }

  between(source, target) {
    const left = this.around(source), entered = this.around(target);
    let common = -1;
    while (left.length && entered.length && left[left.length - 1] === entered[entered.length - 1]) {
      common = left.pop();
      entered.pop();
    }
    return { left, common, entered: entered.reverse() };
  }

  around(number) {
    const found = [];
    for (let at = this.boxes[number].parent; at >= 0; at = this.boxes[at].parent) found.push(at);
    return found;
  }

  port(frame, way, number) {
    const arrow = this.arrows[number], key = `${frame} ${way} ${arrow.source} ${arrow.track}`;
    if (!this.ports.has(key)) {
      this.ports.set(key, this.through.length);
      this.through.push([]);
      this.of.get(frame)[way].push(this.ports.get(key));
    }
    this.through[this.ports.get(key)].push(number);
    return this.ports.get(key);
  }

  join(at, tie, outermost) {
    const number = tie.arrows[0], arrow = this.arrows[number];
    if (!outermost || !arrow.label) {
      this.tie(at, { ...tie, part: partOf(arrow, "after") });
      return;
    }
    const label = thingOf("label", number), level = this.of.get(at);
    level.things.push(label);
    level.ties.push({ ...tie, target: label, enter: null, order: 0, part: "before" });
    level.ties.push({ ...tie, source: label, leave: null, part: "after" });
  }

  tie(at, tie) {
    const track = this.arrows[tie.arrows[0]].track;
    const key = `${at}|${tie.source.key}|${tie.target.key}|${tie.leave}|${tie.enter}|${tie.order}|${track}`;
    const known = this.ties.get(key);
    if (known) {
      known.arrows.push(...tie.arrows);
      return;
    }
    this.ties.set(key, tie);
    this.of.get(at).ties.push(tie);
  }
}

// --- one level -------------------------------------------------------------------------------------------------------

const portsOf = (level) => [...level.inward, ...level.outward].map((port) => thingOf("port", port));

function solveLevel(levels, level, solved, copies) {
  const used = copies ? withCopies(levels, level) : level;
  const things = [...used.things, ...portsOf(level)], ties = used.ties;
  if (!things.length) return { length: 0, width: 0, rects: [], lines: [], doors: new Map(), head: PADDING };
  const numbers = new Map(things.map((thing, n) => [thing.key, n]));
  const sizes = things.map((thing) => sizeOf(levels, solved, thing));
  const edges = edgesOf(ties, numbers, sizes, solved);
  const placeOf = (port) => numbers.get(thingOf("port", port).key);
  const layout = layOut(sizes, edges, LAYER_GAP, BOX_GAP, level.inward.map(placeOf), level.outward.map(placeOf));
  const rects = things.map((thing, n) => {
    const { start, length, middle, width } = layout.places[n], room = length - sizes[n][0];
    const source = thing.kind === "box" && levels.boxes[thing.number].source;
    return { main: start + (source ? room : room / 2), cross: middle - width / 2, length: sizes[n][0], width: sizes[n][1] };
  });
  const lines = ties.map((tie, k) => ({
    spans: spansOf(layout, rects, edges[k], k), arrows: tie.arrows, part: tie.part,
    head: tie.target.kind === "box" && tie.enter === null,
  }));
  const placed = things.map((thing, n) => [thing, rects[n]]), doors = new Map();
  for (const [thing, rect] of placed) if (thing.kind === "port") doors.set(thing.number, rect.cross + rect.width / 2);
  const drawn = placed.filter(([thing]) => thing.kind !== "port");
  return { length: layout.length, width: layout.width, rects: drawn, lines, doors, head: PADDING };
}

function sizeOf(levels, solved, thing) {
  if (thing.kind === "port") return [0, LANE];
  if (thing.kind === "label") return levels.arrows[thing.number].label;
  const box = levels.boxes[thing.number], inside = box.opened ? solved.get(thing.number) : box;
  return [inside.length, inside.width];
}

function edgesOf(ties, numbers, sizes, solved) {
  const orders = new Map();
  for (const tie of ties) {
    if (!orders.has(tie.target.key)) orders.set(tie.target.key, new Set());
    orders.get(tie.target.key).add(tie.order);
  }
  return ties.map((tie) => {
    const source = numbers.get(tie.source.key), target = numbers.get(tie.target.key);
    const leave = tie.leave === null ? 0 : doorOf(solved, tie.source, tie.leave);
    const among = [...orders.get(tie.target.key)].sort((a, b) => a - b);
    const enter = tie.enter !== null ? doorOf(solved, tie.target, tie.enter) : beside(tie.order, among, sizes[target][1]);
    return { source, target, leave, enter };
  });
}

function doorOf(solved, box, port) {
  const inside = solved.get(box.number);
  return inside.doors.get(port) - inside.width / 2;
}

function beside(order, orders, width) {
  if (orders.length === 1) return 0;
  const room = Math.max(Math.min(width - 2 * CORNER, PORT_ROOM * (orders.length - 1)), 0);
  return room * (orders.indexOf(order) / (orders.length - 1) - 0.5);
}

function spansOf(layout, rects, edge, number) {
  const source = rects[edge.source], target = rects[edge.target];
  const leave = layout.places[edge.source], enter = layout.places[edge.target];
  return [
    { start: source.main + source.length, end: leave.start + leave.length, middle: leave.middle + edge.leave },
    ...layout.lanes[number],
    { start: enter.start, end: target.main, middle: enter.middle + edge.enter },
  ];
}

function withCopies(levels, level) {
  const isSource = (thing) => thing.kind === "box" && levels.boxes[thing.number].source;
  const rest = [...level.things.filter((thing) => !isSource(thing)), ...portsOf(level)];
  const numbers = new Map(rest.map((thing, n) => [thing.key, n]));
  const edges = level.ties.filter((tie) => !isSource(tie.source))
    .map((tie) => ({ source: numbers.get(tie.source.key), target: numbers.get(tie.target.key) }));
  const first = level.inward.map((port) => numbers.get(thingOf("port", port).key));
  const layers = layerNumbers(rest.length, edges, first, []);
  const begun = new Map(), ties = level.ties.slice(), made = new Map(level.things.map((thing) => [thing.key, thing]));
  const layerOf = (k) => layers[numbers.get(ties[k].target.key)];
  const users = ties.map((_, k) => k).filter((k) => isSource(ties[k].source)).sort((a, b) => layerOf(a) - layerOf(b));
  for (const k of users) {
    const tie = ties[k], layer = layerOf(k);
    let [start, copy] = begun.get(tie.source.key) ?? [layer, 0];
    if (layer - start > REACH) [start, copy] = [layer, copy + 1];
    begun.set(tie.source.key, [start, copy]);
    const source = thingOf("box", tie.source.number, copy);
    made.set(source.key, source);
    ties[k] = { ...tie, source };
  }
  return { things: [...made.values()], ties };
}

// --- the border of an opened box -------------------------------------------------------------------------------------

function headedFirst(levels, level, inside, head) {
  let width = Math.max(inside.width + 2 * PADDING, head + 2 * PADDING + (LANE + LANE_GAP) * level.inward.length);
  let { doors, start, outer } = besideHeading(level, inside, head, width);
  const missing = 2 * (rightOf(head) - Math.min(...level.inward.map((port) => doors.get(port))));
  if (outer.size && missing <= WIDENED) {
    width += missing;
    ({ doors, start, outer } = besideHeading(level, inside, head, width));
  }
  const aside = (width - inside.width) / 2;
  const top = HEADING + (outer.size ? BEND : 0), end = top + inside.length;
  const length = end + (level.outward.length ? WAY_OUT : PADDING);
  const lines = movedLines(inside.lines, top, aside);
  const border = (port, spans, part) => {
    const arrows = levels.through[port];
    lines.push({ spans, arrows, head: false, part: partOf(levels.arrows[arrows[0]], part) });
  };
  for (const port of level.inward) {
    const at = doors.get(port), middle = outer.get(port) ?? at;
    border(port, [{ start: 0, end: HEADING, middle }, { start: top, end: top, middle: at }], "after");
  }
  for (const port of level.outward) border(port, [{ start: end, end: length, middle: doors.get(port) }], "before");
  const rects = inside.rects.map(([thing, rect]) => [thing, { ...rect, main: rect.main + top, cross: rect.cross + aside }]);
  return { length, width, rects, lines, doors: new Map([...doors, ...outer]), head: start };
}

function besideHeading(level, inside, head, width) {
  const aside = (width - inside.width) / 2, doors = new Map();
  for (const [port, at] of inside.doors) doors.set(port, at + aside);
  return { doors, ...clearOfHeading(level.inward.map((port) => [doors.get(port), port]), head, width) };
}

const rightOf = (head) => PADDING + head + (LANE + LANE_GAP) / 2;

function clearOfHeading(ports, head, width) {
  const step = LANE + LANE_GAP, sorted = ports.slice().sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let start = PADDING;
  for (const [at] of [...sorted, [width - PADDING + step / 2, -1]]) {
    if (start + head + step / 2 <= at) return { start, outer: new Map() };
    start = Math.max(start, at + step / 2);
  }
  const outer = new Map(sorted.map(([at, port], place) => [port, Math.max(at, rightOf(head) + place * step)]));
  return { start: PADDING, outer };
}

function movedLines(lines, main, cross) {
  const moved = (s) => ({ start: s.start + main, end: s.end + main, middle: s.middle + cross });
  return lines.map((line) => ({ ...line, spans: line.spans.map(moved) }));
}
