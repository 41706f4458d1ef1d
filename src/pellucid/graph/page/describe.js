// Things in words: for people who hear the page, for tooltips, for the outline.

function kindText(thing) {
  if (!thing.isBlock) return say(`kind.${thing.kind}`);
  return say(`kind.${thing.kind}`, { n: thing.items.length });
}

// The rows of a box; not the gradient's, which only keeps room for what the replay writes.
const rowsInWords = (thing) => thing.label.rows.filter(([style]) => style !== "grad").map(([, text]) => text);

function describe(thing) {
  const parts = [kindText(thing), titleOf(thing), ...rowsInWords(thing)];
  if (thing.root) parts.push(say("result"));
  const call = moduleOf(thing);
  if (!thing.isBlock && call) parts.push(`${say("module")} ${call.path}`);
  if (!thing.isBlock && thing.site) parts.push(siteText(thing.site));
  return parts.filter(Boolean).join(say("list"));
}

function describeEdges(carried) {
  const lines = carried.slice(0, 6).map((edge) => {
    const source = nodes[edge.source], output = source.outputs[edge.output];
    const operand = edge.name ? ` (${edge.name})` : "";
    const reason = edge.kind === "cut" ? `: ${say("cut", { reason: edge.reason })} ${siteText(edge.site)}` : "";
    return `${nameOf(source, edge.output)} ${output ? shapeText(output) : ""} → ${nameOf(nodes[edge.target])}${operand}${reason}`;
  });
  if (carried.length > 6) lines.push(say("chain.more", { n: carried.length - 6 }));
  return lines.join("\n");
}

// An operation in one line, with its operands: "y = Mul scalar float32 of a, b".
function inWords(thing) {
  if (thing.isBlock) return `${titleOf(thing)} ${rowsInWords(thing).join(say("list"))}`;
  const operands = into[thing.id].map((edge) => nameOf(nodes[edge.source], edge.output));
  const of = operands.length ? say("outline.of", { operands: operands.join(say("list")) }) : "";
  return `${titleOf(thing)} ${thing.outputs.length ? shapeText(thing.outputs[0]) : ""}${of}`;
}

function derivativeText({ kind, values }) {
  if (kind === "outputs") return "…";
  if (kind === "matrix" && values.length > 1) return say("matrix", { rows: values.length, columns: values[0].length });
  return valueText(kind === "matrix" ? values[0] : values);
}
