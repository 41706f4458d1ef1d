// Which boxes and arrows the picture has, given which blocks are opened: as scene.py, and for each box what it stands for.

const FEW_OPERATIONS = 40, CHARACTER = 0.62, FONT = 13, NOTE_FONT = 11, ROW_LINE = 15, BUTTON = 30;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;

function textWidth(text, size) {
  let cells = 0;
  for (const character of text) cells += WIDE.test(character) ? 2 : 1;
  return cells * CHARACTER * size;
}

// opened: ids of blocks. unfolded: ids of folds of which all members are shown, not the first for all.
function sceneOf(opened, unfolded, derivatives) {
  const scene = {
    things: [], boxes: [], arrows: [], carried: [], backward: new Set(), shown: new Map(), order: new Map(), rows: [],
  };
  enterBlock(scene, blocks[0], -1, opened, unfolded);
  connectBoxes(scene, derivatives);
  scene.layout = layOutNested(scene.boxes, scene.arrows, blocks[0].count > FEW_OPERATIONS);
  return scene;
}

function enterBlock(scene, block, box, opened, unfolded) {
  for (const leaf of block.leaves) scene.shown.set(leaf.id, addBox(scene, leaf, sizedBox(leaf, box, true)));
  if (block.kind !== "fold" || unfolded.has(block.id)) {
    for (const item of block.items) addItem(scene, item, box, opened, unfolded);
    return;
  }
  const [first, ...others] = block.items;
  if (first.isBlock) enterBlock(scene, first, box, opened, unfolded);
  else addItem(scene, first, box, opened, unfolded);
  const names = first.isBlock ? operationsIn(first) : [first];
  for (const other of others) {
    (other.isBlock ? operationsIn(other) : [other]).forEach((node, k) => {
      scene.shown.set(node.id, scene.shown.get(names[k].id));
      scene.order.set(node.id, scene.order.get(names[k].id));
    });
  }
}

function addItem(scene, item, box, opened, unfolded) {
  if (!item.isBlock) {
    scene.shown.set(item.id, addBox(scene, item, sizedBox(item, box, false)));
    scene.order.set(item.id, item.id);
  } else if (opened.has(item.id) && item.items.length) {
    const head = textWidth(titleOf(item), FONT) + BUTTON + foldButtonWidth(item, unfolded);
    const frame = addBox(scene, item, { parent: box, length: 0, width: 0, opened: true, head, source: false });
    enterBlock(scene, item, frame, opened, unfolded);
  } else {
    const closed = addBox(scene, item, sizedBox(item, box, false));
    for (const node of nodesIn(item)) {
      scene.shown.set(node.id, closed);
      if (node.kind === "operation") scene.order.set(node.id, node.id);
    }
  }
}

// The words of the button in a fold's heading, by which all its members are shown, or one for all.
function foldButton(block, unfolded) {
  if (block.kind !== "fold" || block.items.length > data.most_unfolded) return "";
  return unfolded.has(block.id) ? say("show one") : say("show each", { n: block.items.length });
}

function foldButtonWidth(block, unfolded) {
  const text = foldButton(block, unfolded);
  return text ? textWidth(text, NOTE_FONT) + 26 : 0;
}

const sizedBox = (thing, parent, source) => ({
  parent, length: thing.size[0], width: thing.size[1], opened: false, head: 0, source,
});

function addBox(scene, thing, box) {
  scene.things.push(thing);
  scene.boxes.push(box);
  return scene.boxes.length - 1;
}

function connectBoxes(scene, derivatives) {
  const found = new Map();
  for (const edge of edges) {
    const source = scene.shown.get(edge.source), target = scene.shown.get(edge.target);
    if (source === undefined || target === undefined || source === target || repeats(scene, edge)) continue;
    const port = scene.things[target].isBlock ? 0 : edge.input, key = `${source} ${target} ${edge.kind} ${port}`;
    const known = found.get(key);
    if (known) known.edges.push(edge);
    else found.set(key, { source, target, kind: edge.kind, port, edges: [edge] });
  }
  const depths = [];
  for (const box of scene.boxes) depths.push(box.parent < 0 ? 0 : depths[box.parent] + 1);
  for (const arrow of found.values()) {
    const number = scene.carried.length, rows = arrowRows(arrow.edges, derivatives);
    scene.carried.push(arrow.edges);
    scene.rows.push(rows);
    let { source, target, kind } = arrow;
    if (against(scene, source, target, depths)) {
      scene.backward.add(number);
      [source, target, kind] = [target, source, `${kind} back`];
    }
    scene.arrows.push({ source, target, port: arrow.port, track: kind, label: rowsSize(rows, arrow.edges[0]) });
  }
}

function repeats(scene, edge) {
  const source = scene.order.get(edge.source), target = scene.order.get(edge.target);
  return source !== undefined && target !== undefined && source >= target;
}

function against(scene, source, target, depths) {
  if (scene.boxes[source].source) return false;
  while (scene.boxes[source].parent !== scene.boxes[target].parent) {
    if (depths[source] >= depths[target]) source = scene.boxes[source].parent;
    else target = scene.boxes[target].parent;
  }
  return source > target;
}

// What stands on an arrow: rows of [style, text].
function arrowRows(carried, derivatives) {
  const known = data.labels[carried[0].id];
  if (carried[0].kind === "cut") {
    const reasons = [...new Set(carried.map((edge) => edge.reason).filter(Boolean))];
    if (carried.length === 1 || reasons.length < 2) return known ?? [];
    return [["bad", say("cut", { reason: reasons.join(say("list")) })], ...(known ?? []).slice(1)];
  }
  return derivatives && carried.length === 1 && known ? known : [];
}

function rowsSize(rows, edge) {
  if (!rows.length) return null;
  const texts = rows.map(([, text]) => text);
  if (edge.kind === "gradient") texts.push("x".repeat(data.grad_characters));
  return [ROW_LINE * texts.length + 4, Math.max(...texts.map((text) => textWidth(text, NOTE_FONT))) + 8];
}
