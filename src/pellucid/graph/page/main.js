// Ties the parts together: what is opened and selected, and what follows when that changes.

const state = {
  opened: new Set(data.opened), unfolded: new Set(), derivatives: data.learning, scene: null, selected: null, path: new Set(),
};
const MOST_OPENED = 6000; // boxes, beyond which opening all would make the reader wait

// Lays the picture out anew. The thing `anchor` stays where it is on the screen.
function renew(anchor = null) {
  const before = anchor && state.scene ? headOf(anchor) : null;
  state.scene = sceneOf(state.opened, state.unfolded, state.derivatives);
  preparePicture(state.scene);
  const after = before ? headOf(anchor) : null;
  if (after) moveView((before.x - after.x) * view.k, (before.y - after.y) * view.k);
  prepareReplay(state.scene);
  drawSeen();
}

// Where a thing's title is: the middle of a box's upper edge, the start of a frame's heading.
function headOf(thing) {
  const item = itemOf(thing);
  return item && { x: item.type === "frames" ? item.x + item.head + 40 : item.x + item.width / 2, y: item.y };
}

// What a thing is drawn as: itself, or the closed block that it is in; null if it is not in the picture.
function shownAs(thing) {
  if (!thing.isBlock) {
    const number = state.scene.shown.get(thing.id);
    return number === undefined ? null : state.scene.things[number];
  }
  if (state.scene.things.includes(thing)) return thing;
  const inside = operationsIn(thing)[0];
  return inside ? shownAs(inside) : null;
}

function itemOf(thing) {
  const shown = thing && shownAs(thing), number = shown ? state.scene.things.indexOf(shown) : -1;
  return number < 0 ? null : picture.byBox.get(number)?.[0] ?? null;
}

// Selects a thing, or nothing. reveal: open what it is in, and go there.
function select(thing, { reveal = false } = {}) {
  if (thing && reveal) {
    const closed = [...blocksAround(thing)].filter((block) => !state.opened.has(block.id));
    for (const block of closed) state.opened.add(block.id);
    if (closed.length) renew();
  }
  state.selected = thing;
  const item = itemOf(thing);
  if (item && reveal) centreOn(item.type === "frames" ? { ...item, height: Math.min(item.height, 200) } : item);
  else if (item) bringIntoView(item.type === "frames" ? { ...item, height: 40 } : item);
  drawSeen();
  picture.drawn.forEach((element, drawn) => dress(drawn, element));
  if (item) canvas.setAttribute("aria-activedescendant", idOf(item));
  else canvas.removeAttribute("aria-activedescendant");
  showDetails(thing);
  markOutline(thing);
  if (thing) {
    offerToChain(thing);
    $("spoken").textContent = describe(thing);
  }
}

function clickBox(thing) {
  if (thing.isBlock) toggleBlock(thing);
  select(thing);
}

function toggleBlock(block) {
  const open = !state.opened.has(block.id);
  if (open) state.opened.add(block.id);
  else state.opened.delete(block.id);
  renew(block);
  if (state.selected === block) select(block);
  $("spoken").textContent = say(open ? "opened" : "closed", { what: titleOf(block) });
}

function toggleFold(block) {
  if (!state.unfolded.delete(block.id)) state.unfolded.add(block.id);
  renew(block);
}

function openAll(open) {
  state.opened = new Set([0]);
  let boxes = blocks[0].items.length;
  for (const block of open ? blocks.slice(1) : []) {
    if (!state.opened.has(block.parent) || boxes + block.items.length > MOST_OPENED) continue;
    state.opened.add(block.id);
    boxes += block.kind === "fold" ? 1 : block.items.length;
  }
  renew();
  fitAll(true);
}

function fitAll(legibly) {
  const boxes = picture.items.boxes, first = boxes.reduce((best, item) => (item.y < best.y ? item : best), boxes[0]);
  fitView(state.scene.layout.width, state.scene.layout.length, legibly, first);
}

// How an element looks by what is selected, which path is shown, and where the replay is.
function dress(item, element) {
  const isSelected = item.thing && item.thing === (state.selected && shownAs(state.selected));
  if (item.type === "boxes" || item.type === "frames") element.classList.toggle("selected", Boolean(isSelected));
  if (item.type === "lines") {
    const carried = item.arrows.flatMap((number) => state.scene.carried[number]);
    element.classList.toggle("path", carried.some((edge) => state.path.has(edge.id)));
    const touched = (number) => {
      const { source, target } = state.scene.arrows[number];
      return [source, target].some((box) => state.scene.things[box] === state.selected);
    };
    element.classList.toggle("lit", Boolean(state.selected) && item.arrows.some(touched));
  }
  dressForReplay(item, element);
}

// --- around the picture ----------------------------------------------------------------------------------------------

function showCounts() {
  const kinds = (kind) => graph.nodes.filter((_, id) => nodes[id].kind === kind).length, parts = [say("operations", { n: blocks[0].count })];
  parts.push(say("leaves", { n: kinds("leaf") }));
  if (kinds("input")) parts.push(say("inputs", { n: kinds("input") }));
  const cuts = edges.filter((edge) => edge.kind === "cut").length;
  if (cuts) parts.push(say("cuts", { n: cuts }));
  parts.push(graph.freed ? say("freed") : say("saved", { size: bytesText(graph.saved_bytes ?? 0) }));
  if (graph.dropped) parts.push(say("dropped", { n: graph.dropped }));
  $("counts").textContent = $("counts").title = parts.join(" · ");
}

function showLegend() {
  const looks = new Set([...nodes, ...blocks.slice(1)].map((thing) => thing.look)), kinds = new Set(edges.map((edge) => edge.kind));
  const swatch = (look, extra) => h("li", {}, h("span", { class: `swatch ${look}`, "aria-hidden": "true" }), say(`legend.${extra ?? look}`));
  const line = (kind) => h("li", {}, h("span", { class: `stroke ${kind}`, "aria-hidden": "true" }), say(`legend.${kind}`));
  const items = ["leaf", "input", "operation", "plain", "module", "root", "failed"].filter((look) => looks.has(look)).map((look) => swatch(look));
  if (blocks.some((block) => block.kind === "fold")) items.push(swatch("module fold", "fold"));
  items.push(...["gradient", "constant", "cut"].filter((kind) => kinds.has(kind)).map(line));
  $("legend").lastElementChild.replaceChildren(...items);
  if (canvas.clientWidth < 700 || canvas.clientHeight < 420) $("legend").open = false;
}

function showFailure() {
  const { failure } = graph;
  if (!failure) return;
  const operands = (failure.operands ?? []).map((operand, k) => (
    h("li", {}, h("b", {}, failure.names[k]), ` ${shapeText({ ...OUTPUT, ...operand })}`, operand.name ? h("span", { class: "faint" }, ` ${operand.name}`) : null)));
  const button = h("button", { type: "button" }, say("failure.go"));
  button.addEventListener("click", () => select(nodes[failure.node], { reveal: true }));
  const site = typeof failure.site === "number" ? graph.sites[failure.site] : failure.site;
  $("failure").replaceChildren(
    h("h2", {}, say("failure")), h("p", {}, h("b", {}, `${failure.error}: `), failure.message ?? ""), h("ul", {}, ...operands),
    site ? siteBlock(site) : null, failure.node == null ? null : button);
  $("failure").hidden = false;
}

function showSide(show) {
  document.body.classList.toggle("no-side", !show);
  $("panel").setAttribute("aria-pressed", String(show));
  drawSeen();
}

function remembered(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* a page in a frame may keep nothing */ }
  return null;
}

function watchTools() {
  const root = document.documentElement, click = (id, action) => $(id).addEventListener("click", action);
  const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  if (remembered("pellucid-theme")) root.dataset.theme = remembered("pellucid-theme");
  click("theme", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remembered("pellucid-theme", root.dataset.theme);
  });
  click("larger", () => zoomView(1.25));
  click("smaller", () => zoomView(0.8));
  click("fit", () => fitAll(false));
  click("open-all", () => openAll(true));
  click("close-all", () => openAll(false));
  click("panel", () => showSide(document.body.classList.contains("no-side")));
  click("play", play);
  click("step-back", () => { pause(); setStep(replay.at - 1); });
  click("step-on", () => { pause(); setStep(replay.at + 1); });
  $("step").addEventListener("input", () => { pause(); setStep(Number($("step").value)); });
  $("derivatives").hidden = !data.learning;
  click("derivatives", () => {
    state.derivatives = !state.derivatives;
    $("derivatives").setAttribute("aria-pressed", String(state.derivatives));
    renew();
  });
}

function start() {
  $("picture").prepend(svg("defs", {}, ...markers()));
  let waiting = false;
  view.onChange = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawSeen(); });
  };
  if (window.innerWidth < 900) document.body.classList.add("no-side");
  showCounts();
  showLegend();
  showFailure();
  watchTools();
  watchPointer();
  watchKeys();
  watchSearch();
  renew();
  fitAll(true);
  drawSeen();
  prepareChain();
  prepareOutline();
  showDetails(null);
  if (graph.failure?.node != null) select(nodes[graph.failure.node], { reveal: true });
  new ResizeObserver(() => drawSeen()).observe(canvas);
}

start();
// For programs that hold the page: what is in it, and a way to steer it.
window.pellucid = {
  data, nodes, blocks, state, replay, view, select, findThings, setStep, openAll, toggleBlock, sceneOf, chainOf, gradientAt,
};
