// The data of the page, and what can be asked of it: nodes, edges, blocks, texts.

const data = JSON.parse(document.getElementById("data").textContent);
const graph = data.graph;

function say(key, values = {}) {
  const filled = { ...values };
  const text = data.texts[key] ?? data.texts[`${key}|${values.n === 1 ? "one" : "many"}`];
  if (typeof filled.n === "number") filled.n = filled.n.toLocaleString("en-US");
  return text.replace(/\{(\w+)\}/g, (_, name) => filled[name]);
}

// What is left out of the data because it is empty.
const NODE = {
  operator: "", outputs: [], saved: [], attributes: {}, site: null, call: null, sequence: null, phase: "forward",
  inside: "", flops: null, inplace: false,
};
const OUTPUT = { shape: null, dtype: "", name: "", requires_grad: false, value: null, gradient: null };

function revived(raw, id) {
  const node = { ...NODE, ...raw, id };
  node.outputs = node.outputs.map((output) => ({ ...OUTPUT, ...output }));
  node.site = node.site === null ? null : graph.sites[node.site];
  return node;
}

const nodes = graph.nodes.map(revived);
data.constants.forEach(([, name, text]) => {
  const output = { ...OUTPUT, shape: [], value: Number(text), name: text };
  nodes.push({ ...NODE, id: nodes.length, kind: "constant", name, outputs: [output] });
});
const edges = data.edges.map(([source, output, target, input, name, kind, reason, site, derivative], id) => ({
  id, source, output, target, input, name, kind, reason: reason ?? "", derivative: derivative ?? null,
  site: site == null ? null : graph.sites[site],
}));
const into = nodes.map(() => []), outOf = nodes.map(() => []);
for (const edge of edges) {
  into[edge.target].push(edge);
  outOf[edge.source].push(edge);
}
for (const found of into) found.sort((a, b) => a.input - b.input);

// A block: {id, kind, parent, items, leaves, call, first, last, count, look, label, size, root}; of items, a number below
// zero is block -1 - number. Boxes have `label`: {name, what, rows: [[style, text]]}.
const labelOf = ([name, what, rows]) => ({ name, what, rows });
const blocks = data.blocks.map((raw, id) => ({
  ...raw, id, isBlock: true, label: labelOf(raw.label), items: raw.items.map((item) => item), parent: raw.parent ?? -1,
}));
for (const block of blocks) block.items = block.items.map((item) => (item < 0 ? blocks[-1 - item] : nodes[item]));
nodes.forEach((node, id) => {
  const [look, label, size, root] = data.boxes[id];
  Object.assign(node, { isBlock: false, look, label: labelOf(label), size, root: Boolean(root), home: blocks[0] });
});
for (const block of blocks) {
  block.leaves = block.leaves.map((id) => nodes[id]);
  for (const item of [...block.items, ...block.leaves]) if (!item.isBlock) item.home = block;
}

// All operations in a block, in order.
function operationsIn(block) {
  const found = [], stack = [block];
  while (stack.length) {
    const item = stack.pop();
    if (!item.isBlock) found.push(item);
    else for (let k = item.items.length - 1; k >= 0; k--) stack.push(item.items[k]);
  }
  return found;
}

// All nodes in a block, leaves too.
function nodesIn(block) {
  const found = [], stack = [block];
  while (stack.length) {
    const item = stack.pop();
    if (item.isBlock) stack.push(...item.items, ...item.leaves);
    else found.push(item);
  }
  return found;
}

const parentOf = (thing) => (thing.isBlock ? blocks[thing.parent] : thing.home);

function* blocksAround(thing) {
  for (let block = parentOf(thing); block && block.id !== 0; block = parentOf(block)) yield block;
}

function moduleOf(thing) {
  if (!thing.isBlock && thing.call !== null) return graph.calls[thing.call];
  for (const block of thing.isBlock ? [thing, ...blocksAround(thing)] : blocksAround(thing)) {
    if (block.call !== null) return graph.calls[block.call];
  }
  return null;
}

// What a node's result is called: its name in the program, else its number.
const nameOf = (node, output = 0) => node.outputs[output]?.name || `#${node.id}`;
const titleOf = (thing) => [thing.label.name, thing.label.what].filter(Boolean).join(" ");
const fileOf = (path) => path.split(/[\\/]/).pop();
const siteText = (site) => (site ? `${fileOf(site.file)}:${site.line}` : "");

function shapeText(output) {
  const shape = output.shape === null ? say("unknown shape") : output.shape.length ? `[${output.shape.join(", ")}]` : say("scalar");
  return `${shape} ${output.dtype}`.trim();
}

function numberText(value) {
  if (typeof value === "string") return Number.isNaN(Number(value)) ? value : numberText(Number(value));
  if (typeof value !== "number") return String(value);
  const text = value.toPrecision(4);
  return text.includes("e") ? text.replace(/\.?0+e/, "e") : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function valueText(value, most = 4) {
  if (!Array.isArray(value)) return numberText(value);
  const shown = value.slice(0, most).map((item) => valueText(item, most));
  return `[${shown.join(", ")}${value.length > most ? ", …" : ""}]`;
}

function bytesText(count) {
  let size = count, unit = "B";
  for (const larger of ["kB", "MB", "GB", "TB"]) {
    if (size < 1000) break;
    size /= 1000;
    unit = larger;
  }
  return unit === "B" ? `${count} B` : `${Number(size.toPrecision(3))} ${unit}`;
}

const countText = (count) => count.toLocaleString("en-US");
