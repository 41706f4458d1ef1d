// The panel with everything that is known of the selected thing.

// An element with attributes and children; attributes that are null are left out.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function showDetails(thing) {
  const box = $("details").lastElementChild;
  if (!thing) {
    box.replaceChildren(h("p", { class: "faint" }, say("nothing selected")));
    return;
  }
  const rows = (thing.isBlock ? blockRows(thing) : nodeRows(thing)).filter(([, value]) => value !== null);
  const list = h("dl", {});
  for (const [key, value, style] of rows) list.append(h("dt", {}, say(key)), h("dd", { class: style ?? null }, value));
  const children = [h("h3", { class: thing.look }, titleOf(thing)), list];
  if (thing.isBlock) {
    const opened = state.opened.has(thing.id), words = opened ? foldButton(thing, state.unfolded) : "";
    children.splice(1, 0, h("p", {}, actionButton(say(opened ? "close it" : "open it"), () => toggleBlock(thing)), " ",
      words ? actionButton(words, () => { toggleFold(thing); showDetails(thing); }) : null));
  }
  box.replaceChildren(...children);
}

function actionButton(words, action) {
  const button = h("button", { type: "button" }, words);
  button.addEventListener("click", action);
  return button;
}

function nodeRows(node) {
  const output = node.outputs[0], call = moduleOf(node);
  return [
    ["kind", `${kindText(node)}${node.root ? `${say("list")}${say("result")}` : ""}`],
    ["name", node.outputs.map((each) => each.name).filter(Boolean).join(", ") || null],
    ["type", node.kind === "operation" ? node.name : null],
    ...(node.outputs.length > 1 ? [["outputs", node.outputs.map(shapeText).join("\n")]] : []),
    ["shape", output && node.outputs.length === 1 ? shapeText(output) : null],
    ["value of", output && output.value !== null ? valueText(output.value, 8) : null, "number"],
    ["module", call && node.kind !== "constant" ? `${call.path} (${call.type})` : null],
    ["line", node.site ? siteBlock(node.site) : null],
    ["operands", operandList(node)],
    ["used by", userList(node)],
    ["attributes", attributeText(node)],
    ["flops", node.kind === "operation" ? node.flops === null ? say("unknown") : countText(node.flops) : null],
    ["bytes saved", node.kind === "operation" ? savedText([node]) : null],
    ["saved values", savedList(node)],
    ["gradient", gradientBlock(node)],
    ["needs gradient", output ? say(node.outputs.some((each) => each.requires_grad) ? "yes" : "no") : null],
    ["inplace", node.inplace ? say("yes") : null],
    ["phase", node.phase === "backward" ? say("phase.backward") : null],
    ["alike", foldText(node)],
  ];
}

function blockRows(block) {
  const call = block.call === null ? null : graph.calls[block.call], inside = nodesIn(block);
  const operations = inside.filter((node) => node.kind === "operation"), counted = operations.filter((node) => node.flops !== null);
  const bad = operations.filter((node) => node.outputs.some((output) => output.gradient && (output.gradient.nan || output.gradient.inf)));
  return [
    ["kind", kindText(block)],
    ["path", call ? call.path : null],
    ["type", call ? call.type : null],
    ["shape", block.label.rows.find(([style]) => style === "type")?.[1] ?? null],
    ["contains", block.label.rows.find(([style]) => style === "facts")?.[1] ?? null],
    ["flops", counted.length ? countText(counted.reduce((sum, node) => sum + node.flops, 0)) : say("unknown")],
    ["bytes saved", savedText(operations)],
    ["gradient", bad.length ? h("ul", {}, ...bad.slice(0, 8).map((node) => h("li", {}, thingLink(node, titleOf(node))))) : null, "bad"],
    ["alike", foldText(block)],
  ];
}

function siteBlock(site) {
  return h("div", {}, h("div", { title: site.file }, siteText(site), h("span", { class: "faint" }, ` ${site.function}`)),
    site.source ? h("code", {}, site.source) : null);
}

function thingLink(thing, text) {
  const link = h("a", { class: "link", href: `#${thing.isBlock ? "block" : "node"}-${thing.id}` }, text);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    select(thing, { reveal: true });
  });
  return link;
}

function operandList(node) {
  if (!into[node.id].length) return null;
  return h("ul", {}, ...into[node.id].map((edge) => {
    const source = nodes[edge.source], output = source.outputs[edge.output];
    const notes = [output ? shapeText(output) : ""];
    if (edge.kind === "cut") notes.push(`${say("cut", { reason: edge.reason })} ${siteText(edge.site)}`);
    if (edge.derivative) notes.push(`∂ = ${derivativeText(edge.derivative)}`);
    const text = `${edge.name ? `${edge.name}: ` : ""}${nameOf(source, edge.output)}`;
    return h("li", { class: edge.kind === "cut" ? "bad" : null }, thingLink(source, text), ` ${notes.filter(Boolean).join(", ")}`);
  }));
}

function userList(node) {
  const users = [...new Set(outOf[node.id].map((edge) => edge.target))];
  if (!users.length) return null;
  const list = h("ul", {}, ...users.slice(0, 8).map((id) => h("li", {}, thingLink(nodes[id], titleOf(nodes[id])))));
  if (users.length > 8) list.append(h("li", { class: "faint" }, say("chain.more", { n: users.length - 8 })));
  return list;
}

function attributeText(node) {
  const pairs = Object.entries(node.attributes).map(([name, text]) => `${name} = ${text}`);
  return pairs.length ? pairs.join("\n") : null;
}

// Bytes saved for backward: each storage once, leaves not counted, which live anyway.
function savedText(operations) {
  if (graph.freed && !operations.some((node) => node.saved.length)) return say("freed");
  const used = new Set(operations.flatMap((node) => node.saved.map((saved) => saved.storage)));
  let sum = 0;
  for (const number of used) if (graph.storages[number].kind === "activation") sum += graph.storages[number].bytes;
  return bytesText(sum);
}

function savedList(node) {
  if (!node.saved.length) return null;
  return h("ul", {}, ...node.saved.map((saved) => {
    const kind = graph.storages[saved.storage].kind, note = kind === "activation" ? "" : `${say("list")}${say(`kind.${kind}`)}`;
    return h("li", {}, `${saved.name} ${shapeText({ shape: saved.shape ?? [], dtype: saved.dtype ?? "" })}, ${bytesText(saved.bytes ?? 0)}${note}`);
  }));
}

function gradientBlock(node) {
  if (!node.outputs.some((output) => output.requires_grad)) return null;
  const found = node.outputs.map((output) => output.gradient).filter(Boolean);
  if (!found.length) return say("gradient.none");
  return h("ul", {}, ...found.map((gradient) => {
    const item = h("li", {}, `${say("gradient.norm", { norm: numberText(gradient.norm) })}${say("list")}`);
    item.append(say("gradient.zeros", { share: `${Math.round(100 * toNumber(gradient.zeros))}%` }), say("list"));
    const bad = [gradient.nan ? say("nan", { n: gradient.nan }) : "", gradient.inf ? say("inf", { n: gradient.inf }) : ""];
    const text = bad.filter(Boolean).join(say("list"));
    item.append(text ? h("strong", { class: "bad" }, text) : say("gradient.good"));
    return item;
  }));
}

// Whether it is in one of several equal blocks.
function foldText(thing) {
  for (const block of blocksAround(thing)) {
    if (block.kind !== "fold") continue;
    const paths = block.items.map((item) => (item.isBlock && item.call !== null ? graph.calls[item.call].path : "")).filter(Boolean);
    const shown = paths.length > 3 ? `${paths[0]}, …, ${paths[paths.length - 1]}` : paths.join(say("list"));
    return say("one of", { n: block.items.length, paths: shown });
  }
  return null;
}
