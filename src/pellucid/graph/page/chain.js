// The chain rule on the graph: the paths from one value to another, the product along each, and their sum.

const MOST_PATHS = 20, MOST_STEPS = 20000, MOST_FACTORS = 8, MOST_ENTRIES = 6, MOST_CHOICES = 200, FEW_WITHOUT_NUMBERS = 12;

// Gives {count, paths: [{edges, factors, product}], total}: count is a BigInt; factors, product and total are matrices
// (lists of rows), null where a local derivative is not known.
function chainOf(end, start) {
  const counts = pathCounts(end, start);
  const count = end === start ? 1n : counts.get(end) ?? 0n;
  const paths = listPaths(end, start, counts).map((found) => {
    const factors = found.map((edge) => (edge.derivative ? asMatrix(edge.derivative) : null));
    const product = factors.length && factors.every(Boolean) ? factors.reduce(timesMatrix) : null;
    return { edges: found, factors, product };
  });
  return { count, paths, total: count ? chainTotal(end, start, counts) : [[0]] };
}

function pathCounts(end, start) {
  const counts = new Map([[start, 1n]]);
  for (let id = start + 1; id <= end; id++) {
    let found = 0n;
    for (const edge of into[id]) if (edge.kind === "gradient") found += counts.get(edge.source) ?? 0n;
    if (found) counts.set(id, found);
  }
  return counts;
}

function listPaths(end, start, counts) {
  const found = [], stack = counts.has(end) && end !== start ? [[end, null]] : [];
  let steps = 0;
  while (stack.length && found.length < MOST_PATHS && steps < MOST_STEPS) {
    const [id, trail] = stack.pop();
    if (id === start) {
      const path = [];
      for (let at = trail; at; at = at.before) path.push(at.edge);
      found.push(path.reverse());
      steps += path.length;
      continue;
    }
    for (const edge of into[id].slice().reverse()) {
      if (edge.kind === "gradient" && counts.has(edge.source)) stack.push([edge.source, { edge, before: trail }]);
    }
  }
  return found;
}

// The sum over all paths: from the result back, each node once.
function chainTotal(end, start, counts) {
  if (end === start) return [[1]];
  const sums = new Map([[end, "identity"]]);
  for (let id = end; id > start; id--) {
    const arrived = sums.get(id);
    if (arrived === undefined) continue;
    for (const edge of into[id]) {
      if (edge.kind !== "gradient" || !counts.has(edge.source)) continue;
      const factor = edge.derivative ? asMatrix(edge.derivative) : null;
      if (!factor) return null;
      const part = arrived === "identity" ? factor : timesMatrix(arrived, factor), known = sums.get(edge.source);
      if (!part) return null;
      sums.set(edge.source, known ? known.map((row, i) => row.map((value, j) => value + part[i][j])) : part);
    }
  }
  return sums.get(start) ?? null;
}

function asMatrix({ kind, values }) {
  if (kind === "outputs") return values.length === 1 && values[0] ? asMatrix(values[0]) : null;
  if (kind === "scalar") return [[toNumber(values)]];
  if (kind === "matrix") return values.map(toNumbers);
  const diagonal = toNumbers(values);
  return diagonal.map((value, i) => diagonal.map((_, j) => (i === j ? value : 0)));
}

function timesMatrix(a, b) {
  if (!a || !b || a[0].length !== b.length) return null;
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, value, k) => sum + value * b[k][j], 0)));
}

function matrixText(matrix) {
  if (matrix.length === 1 && matrix[0].length === 1) return numberText(matrix[0][0]);
  if (matrix.length * matrix[0].length > MOST_ENTRIES) return say("matrix", { rows: matrix.length, columns: matrix[0].length });
  const rows = matrix.map((row) => valueText(row, MOST_ENTRIES));
  return rows.length === 1 ? rows[0] : `[${rows.join(", ")}]`;
}

// --- the panel -------------------------------------------------------------------------------------------------------

const chainChoice = { of: null, by: null };

function prepareChain() {
  const inPath = nodes.filter((node) => node.kind !== "constant" && node.outputs.some((output) => output.requires_grad));
  const named = inPath.filter((node) => node.outputs[0].name || node.kind === "leaf");
  const offered = (inPath.length <= MOST_CHOICES ? inPath : named).slice(0, MOST_CHOICES);
  const results = offered.filter((node) => node.kind === "operation"), leaves = offered.filter((node) => node.kind === "leaf");
  if (!results.length || !leaves.length || !(data.learning || blocks[0].count <= FEW_WITHOUT_NUMBERS)) return;
  const root = graph.roots.map(([node]) => node).find((node) => nodes[node].outputs[0]?.requires_grad);
  chainChoice.of = root ?? results[results.length - 1].id;
  chainChoice.by = leaves[0].id;
  if (!results.some((node) => node.id === chainChoice.of)) results.push(nodes[chainChoice.of]);
  fillChoice($("chain-of"), results.slice().reverse(), "of");
  fillChoice($("chain-by"), [...leaves, ...results], "by");
  $("chain").hidden = false;
  showChain();
}

function fillChoice(select, offered, role) {
  select.append(...offered.map((node) => h("option", { value: node.id, selected: node.id === chainChoice[role] || null }, nameOf(node))));
  select.addEventListener("change", () => {
    chainChoice[role] = Number(select.value);
    showChain();
  });
}

// A click on a leaf asks for the derivative by it.
function offerToChain(thing) {
  if ($("chain").hidden || thing.isBlock || thing.kind !== "leaf") return;
  if (![...$("chain-by").options].some((option) => Number(option.value) === thing.id)) return;
  chainChoice.by = thing.id;
  $("chain-by").value = thing.id;
  showChain();
}

function showChain() {
  const end = nodes[chainChoice.of], start = nodes[chainChoice.by], names = { result: nameOf(end), variable: nameOf(start) };
  const { count, paths, total } = chainOf(end.id, start.id), box = $("chain-result");
  showPath([]);
  if (!count) {
    box.replaceChildren(h("p", {}, say("chain.none", names)));
    return;
  }
  const words = say("chain.paths", { n: count === 1n ? 1 : count.toLocaleString("en-US") });
  const list = h("ol", {}, ...paths.map((path) => h("li", {}, pathButton(end, path))));
  if (count > BigInt(paths.length) && paths.length) {
    list.append(h("li", { class: "faint" }, say("chain.more", { n: (count - BigInt(paths.length)).toLocaleString("en-US") })));
  }
  const all = count === BigInt(paths.length), sum = total ? sumText(paths, total, all) : say("chain.unknown");
  box.replaceChildren(h("p", { class: "formula" }, say("chain.head", { ...names, n: words })), list, h("p", { class: "sum" }, sum));
}

function sumText(paths, total, all) {
  const parts = paths.map((path) => path.product).filter(Boolean).map(matrixText);
  const shown = all && parts.length > 1 && parts.length <= MOST_FACTORS ? `${parts.join(" + ")} = ` : "";
  return `${say("chain.total")} = ${shown}${matrixText(total)}`;
}

function pathButton(end, { edges: path, factors, product }) {
  const names = [nameOf(end), ...path.map((edge) => nameOf(nodes[edge.source], edge.output))];
  const steps = shortProduct(names.slice(1).map((name, k) => `∂${names[k]}/∂${name}`), " · ");
  const numbers = product ? ` = ${shortProduct(factors.map(matrixText), " × ")}${factors.length > 1 ? ` = ${matrixText(product)}` : ""}` : "";
  const button = h("button", { type: "button", title: say("chain.show") }, `${steps}${numbers}`);
  button.addEventListener("click", () => showPath(path));
  button.addEventListener("focus", () => showPath(path));
  button.addEventListener("mouseenter", () => showPath(path));
  button.addEventListener("mouseleave", () => { if (document.activeElement !== button) showPath([]); });
  button.addEventListener("blur", () => showPath([]));
  return button;
}

function shortProduct(parts, sign) {
  if (parts.length > MOST_FACTORS) return [...parts.slice(0, 3), "…", ...parts.slice(-2)].join(sign);
  return parts.join(sign);
}

function showPath(path) {
  state.path = new Set(path.map((edge) => edge.id));
  picture.drawn.forEach((element, item) => dress(item, element));
}
