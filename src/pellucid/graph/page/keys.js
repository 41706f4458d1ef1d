// The picture under the keyboard: arrows go from box to box along the edges, Enter opens, plus and minus zoom.

const STEP = 80;

function watchKeys() {
  canvas.addEventListener("keydown", canvasKey);
  canvas.addEventListener("focus", () => { if (!state.selected && canvas.matches(":focus-visible")) selectFirst(); });
  window.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    $("find").focus();
    $("find").select();
  });
}

function selectFirst() {
  const root = graph.roots.length ? shownAs(nodes[graph.roots[0][0]]) : null;
  select(root ?? state.scene.things[0] ?? null);
}

function canvasKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
  if (dx !== undefined) {
    if (event.shiftKey || !state.selected) moveView(-dx * STEP, -dy * STEP);
    else walk(dx, dy);
  } else if (event.key === "Enter") enterSelected();
  else if (event.key === "Escape") leaveSelected();
  else if (event.key === " ") play();
  else if (event.key === "+" || event.key === "=") zoomView(1.25);
  else if (event.key === "-") zoomView(0.8);
  else if (event.key === "0") fitAll(false);
  else return;
  event.preventDefault();
}

function enterSelected() {
  if (!state.selected) selectFirst();
  else if (state.selected.isBlock) toggleBlock(state.selected);
  else showSide(true);
}

// Closes the block that the selected box is in; at the outermost level, selects nothing.
function leaveSelected() {
  const around = state.selected ? [...blocksAround(state.selected)].find((block) => isFrame(block)) : null;
  if (around) {
    toggleBlock(around);
    select(around);
  } else select(null);
}

const isFrame = (block) => state.scene.boxes.some((box, n) => box.opened && state.scene.things[n] === block);

// To the nearest box in a direction; upwards to the first operand, downwards to the nearest user, if there are any.
function walk(dx, dy) {
  const from = itemOf(state.selected);
  if (!from) {
    selectFirst();
    return;
  }
  const joined = dy ? joinedBoxes(from.number, dy) : [];
  let best = null, least = Infinity;
  for (const item of [...picture.items.boxes, ...picture.items.frames]) {
    if (item.thing === state.selected || (joined.length && !joined.includes(item.number))) continue;
    const far = distance(from, item, dx, dy);
    if (far < least) [best, least] = [item, far];
  }
  if (best) select(best.thing);
}

function joinedBoxes(number, dy) {
  const found = state.scene.arrows.filter(({ source, target }) => (dy > 0 ? source : target) === number);
  if (dy > 0) return found.map((arrow) => arrow.target);
  const first = found.reduce((least, arrow) => Math.min(least, arrow.port), Infinity);
  const operands = found.filter((arrow) => arrow.port === first), computed = operands.filter((arrow) => arrow.track === "gradient");
  return (computed.length ? computed : operands).map((arrow) => arrow.source);
}

// How far an item is in a direction; infinite if it is not in that direction.
function distance(from, to, dx, dy) {
  const anchor = (item) => ({ x: item.x + item.width / 2, y: item.y + (item.type === "frames" ? 13 : item.height / 2) });
  const a = anchor(from), b = anchor(to), along = (b.x - a.x) * dx + (b.y - a.y) * dy, across = Math.abs((b.x - a.x) * dy + (b.y - a.y) * dx);
  return along > 1 ? along + 2 * across : Infinity;
}
