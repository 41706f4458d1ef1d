// The numbers of the backward pass: what each edge hands on, worked out from the local derivatives.

const toNumber = (value) => (typeof value !== "string" ? value
  : { nan: NaN, inf: Infinity, "-inf": -Infinity }[value] ?? Number(value));
const toNumbers = (value) => (Array.isArray(value) ? value.flat(Infinity).map(toNumber) : [toNumber(value)]);
const sizeOfShape = (shape) => (shape === null ? null : shape.reduce((size, length) => size * length, 1));

// Gives {handed, seeds}: for each edge the gradient it hands on, as a flat list, null where it is not known; and the
// gradient that backward starts with at each root.
function gradientFlow() {
  const arrived = new Map(), handed = new Map(), seeds = new Map();
  const add = (node, output, gradient) => {
    const key = `${node} ${output}`;
    if (!arrived.has(key)) arrived.set(key, gradient);
    else arrived.set(key, sumOf(arrived.get(key), gradient));
  };
  for (const [node, output] of graph.roots) {
    const size = sizeOfShape(nodes[node].outputs[output]?.shape ?? null);
    const seed = size === null || size > 64 ? null : Array(size).fill(1);
    seeds.set(node, seed);
    add(node, output, seed);
  }
  for (let id = graph.nodes.length - 1; id >= 0; id--) {
    const gradients = nodes[id].outputs.map((_, output) => arrived.get(`${id} ${output}`));
    if (gradients.every((gradient) => gradient === undefined)) continue;
    for (const edge of into[id]) {
      if (edge.kind !== "gradient") continue;
      const part = handOn(gradients, edge);
      handed.set(edge.id, part);
      add(edge.source, edge.output, part);
    }
  }
  return { handed, seeds };
}

function sumOf(a, b) {
  return a === null || b === null || a.length !== b.length ? null : a.map((value, k) => value + b[k]);
}

// The gradient of an operand: that of the results times the local derivative.
function handOn(gradients, { derivative }) {
  if (!derivative) return null;
  if (derivative.kind !== "outputs") return gradients[0] ? timesDerivative(gradients[0], derivative) : null;
  let total = null;
  for (let k = 0; k < gradients.length; k++) {
    if (gradients[k] === undefined) continue;
    const block = derivative.values[k], part = block && gradients[k] ? timesDerivative(gradients[k], block) : null;
    if (part === null) return null;
    total = total === null ? part : sumOf(total, part);
  }
  return total;
}

function timesDerivative(gradient, { kind, values }) {
  if (kind === "scalar") return [gradient[0] * toNumber(values)];
  if (kind === "diagonal") {
    const factors = toNumbers(values);
    return factors.length === gradient.length ? factors.map((factor, k) => gradient[k] * factor) : null;
  }
  const rows = values.map(toNumbers);
  if (rows.length !== gradient.length || !rows.length) return null;
  return rows[0].map((_, column) => rows.reduce((sum, row, k) => sum + gradient[k] * row[column], 0));
}

// A flat list in the shape of a tensor, as text.
function gradientText(gradient, most = 4) {
  return gradient.length === 1 ? numberText(gradient[0]) : valueText(gradient, most);
}
