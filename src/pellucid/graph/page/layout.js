// Where boxes and arrows go: the layered layout of ../layout.py, number for number.

const ORDER_SWEEPS = 8, PLACE_SWEEPS = 16, LEAF_PULL = 0.05, LANE = 10, LANE_GAP = 6, STIFF = 8, STEEPEST = 0.1, WIDEST_GAP = 90;

// sizes: [length, width] of each box. edges: {source, target, leave, enter}. first, last: boxes alone in their layers.
// Gives places [{start, length, middle, width}], and lanes: for each edge the spans {start, end, middle} it passes.
function layOut(sizes, edges, layerGap, boxGap, first, last) {
  const layersOf = layerNumbers(sizes.length, edges, first, last);
  const vertices = sizes.map(([, width], n) => newVertex(width, layersOf[n], boxGap));
  for (const n of [...first, ...last]) vertices[n].gap = LANE_GAP;
  const passing = edges.map((edge) => splitEdge(vertices, edge));
  const layers = orderedLayers(vertices);
  setPulls(vertices, layers);
  placeVertices(vertices, layers);
  const { starts, lengths } = mainAxis(sizes, vertices, layers, layerGap);
  let left = Infinity, right = -Infinity;
  for (const v of vertices) {
    left = Math.min(left, v.middle - v.width / 2);
    right = Math.max(right, v.middle + v.width / 2);
  }
  const places = vertices.slice(0, sizes.length).map((v) => ({
    start: starts[v.layer], length: lengths[v.layer], middle: v.middle - left, width: v.width,
  }));
  const span = (v) => ({ start: starts[v.layer], end: starts[v.layer] + lengths[v.layer], middle: v.middle - left });
  const lanes = passing.map((numbers) => numbers.map((n) => span(vertices[n])));
  const end = layers.length - 1;
  return { places, lanes, length: starts[end] + lengths[end], width: right - left };
}

function newVertex(width, layer, gap, lane = false) {
  return { width, layer, gap, lane, before: [], after: [], middle: 0, pull: LEAF_PULL };
}

function layerNumbers(count, edges, first, last) {
  const targets = Array.from({ length: count }, () => []), sources = Array.from({ length: count }, () => []);
  for (const edge of edges) {
    targets[edge.source].push(edge.target);
    sources[edge.target].push(edge.source);
  }
  const order = inOrder(sources, targets), early = new Set(first), late = new Set(last);
  const layers = Array.from({ length: count }, (_, n) => (early.has(n) || !first.length ? 0 : 1));
  for (const n of order) for (const target of targets[n]) layers[target] = Math.max(layers[target], layers[n] + 1);
  for (const n of order.slice().reverse()) {
    if (targets[n].length && !early.has(n) && sources[n].length <= targets[n].length) {
      layers[n] = targets[n].reduce((least, t) => Math.min(least, layers[t]), Infinity) - 1;
    }
  }
  let end = -1;
  layers.forEach((layer, n) => { if (!late.has(n)) end = Math.max(end, layer); });
  for (const n of last) layers[n] = end + 1;
  const used = [...new Set(layers)].sort((a, b) => a - b), renamed = new Map(used.map((layer, k) => [layer, k]));
  return layers.map((layer) => renamed.get(layer));
}

function inOrder(sources, targets) {
  const waiting = sources.map((found) => found.length);
  const order = [];
  waiting.forEach((count, n) => { if (!count) order.push(n); });
  for (let k = 0; k < order.length; k++) {
    for (const target of targets[order[k]]) if (--waiting[target] === 0) order.push(target);
  }
  if (order.length < sources.length) throw new Error("the edges form a cycle");
  return order;
}

function splitEdge(vertices, edge) {
  const first = vertices[edge.source].layer, last = vertices[edge.target].layer, lanes = [];
  for (let layer = first + 1; layer < last; layer++) {
    lanes.push(vertices.length);
    vertices.push(newVertex(LANE, layer, LANE_GAP, true));
  }
  const chain = [edge.source, ...lanes, edge.target];
  for (let k = 0; k + 1 < chain.length; k++) {
    const leave = chain[k] === edge.source ? edge.leave : 0, enter = chain[k + 1] === edge.target ? edge.enter : 0;
    const before = vertices[chain[k]], after = vertices[chain[k + 1]];
    before.after.push({ other: chain[k + 1], shift: enter - leave, fraction: after.width ? enter / after.width : 0 });
    after.before.push({ other: chain[k], shift: leave - enter, fraction: before.width ? leave / before.width : 0 });
  }
  return lanes;
}

// --- order within layers ---------------------------------------------------------------------------------------------

function orderedLayers(vertices) {
  const layers = [];
  for (const v of vertices) layers[v.layer] = [];
  for (const n of depthFirst(vertices)) layers[vertices[n].layer].push(n);
  let best = layers.map((layer) => layer.slice()), fewest = countCrossings(vertices, layers);
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest; sweep++) {
    const backward = sweep % 2 === 0;
    if (backward) for (let k = layers.length - 2; k >= 0; k--) sortByNeighbours(vertices, layers, k, true);
    else for (let k = 1; k < layers.length; k++) sortByNeighbours(vertices, layers, k, false);
    const crossings = countCrossings(vertices, layers);
    if (crossings < fewest) {
      best = layers.map((layer) => layer.slice());
      fewest = crossings;
    }
  }
  return best;
}

function depthFirst(vertices) {
  const stack = [], seen = new Set(), order = [];
  vertices.forEach((v, n) => { if (!v.after.length) stack.push(n); });
  while (stack.length) {
    const n = stack.pop();
    if (seen.has(n)) continue;
    seen.add(n);
    order.push(n);
    const before = vertices[n].before;
    for (let k = before.length - 1; k >= 0; k--) stack.push(before[k].other);
  }
  return order;
}

function sortByNeighbours(vertices, layers, index, backward) {
  const position = new Map(layers[backward ? index + 1 : index - 1].map((n, spot) => [n, spot]));
  const means = new Map(layers[index].map((n, spot) => {
    const ties = backward ? vertices[n].after : vertices[n].before;
    if (!ties.length) return [n, spot];
    return [n, ties.reduce((sum, tie) => sum + (position.get(tie.other) + tie.fraction), 0) / ties.length];
  }));
  layers[index].sort((a, b) => means.get(a) - means.get(b));
}

function countCrossings(vertices, layers) {
  let total = 0;
  for (let k = 0; k + 1 < layers.length; k++) {
    const position = new Map(layers[k + 1].map((n, spot) => [n, spot])), ends = [];
    for (const n of layers[k]) {
      const spots = vertices[n].after.map((tie) => position.get(tie.other) + tie.fraction).sort((a, b) => a - b);
      for (const spot of spots) total += ends.length - placeIn(ends, spot);
      for (const spot of spots) ends.splice(placeIn(ends, spot), 0, spot);
    }
  }
  return total;
}

// How many of a sorted list's numbers are at most `value`.
function placeIn(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// --- places ----------------------------------------------------------------------------------------------------------

function setPulls(vertices, layers) {
  for (const layer of layers) {
    for (const n of layer) {
      const before = vertices[n].before;
      if (before.length) vertices[n].pull = before.reduce((most, tie) => Math.max(most, 1 + vertices[tie.other].pull), 0);
    }
  }
}

function placeVertices(vertices, layers) {
  for (const layer of layers) spread(vertices, layer, layer.map(() => 0));
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
    const forward = sweep % 2 === 1, both = sweep >= PLACE_SWEEPS - 2;
    for (let k = 0; k < layers.length; k++) {
      const layer = layers[forward ? k : layers.length - 1 - k];
      spread(vertices, layer, layer.map((n) => wantedMiddle(vertices, n, forward, both)));
    }
  }
}

function wantedMiddle(vertices, n, forward, both) {
  const v = vertices[n], near = both ? [...v.before, ...v.after] : forward ? v.before : v.after;
  if (!near.length) return v.middle;
  let total = 0, weights = 0;
  for (const { other, shift } of near) {
    const weight = Math.min(v.pull, vertices[other].pull) * (v.lane && vertices[other].lane ? STIFF : 1);
    total += weight * (vertices[other].middle + shift);
    weights += weight;
  }
  return total / weights;
}

function spread(vertices, layer, wanted) {
  const offsets = [0];
  for (let k = 1; k < layer.length; k++) {
    const near = vertices[layer[k - 1]], far = vertices[layer[k]];
    offsets.push(offsets[k - 1] + (near.width + far.width + near.gap + far.gap) / 2);
  }
  const pools = [];
  layer.forEach((n, k) => {
    let mean = wanted[k] - offsets[k], weight = vertices[n].pull, count = 1;
    while (pools.length && pools[pools.length - 1].mean > mean) {
      const other = pools.pop();
      mean = (mean * weight + other.mean * other.weight) / (weight + other.weight);
      weight += other.weight;
      count += other.count;
    }
    pools.push({ mean, weight, count });
  });
  let k = 0;
  for (const pool of pools) for (let c = 0; c < pool.count; c++, k++) vertices[layer[k]].middle = pool.mean + offsets[k];
}

function mainAxis(sizes, vertices, layers, gap) {
  const starts = [], lengths = [];
  let at = 0;
  layers.forEach((layer, index) => {
    if (index) at += gap + Math.min(STEEPEST * sideways(vertices, layer), WIDEST_GAP);
    starts.push(at);
    lengths.push(layer.reduce((most, n) => (n < sizes.length ? Math.max(most, sizes[n][0]) : most), 0));
    at += lengths[index];
  });
  return { starts, lengths };
}

function sideways(vertices, layer) {
  let most = 0;
  for (const n of layer) {
    for (const tie of vertices[n].before) {
      most = Math.max(most, Math.abs(vertices[tie.other].middle + tie.shift - vertices[n].middle));
    }
  }
  return most;
}
