// The replay: the forward pass, then the backward pass, box by box, as far as the slider is pushed.

const SECONDS = 1.1, SHORTEST = 0.12;
// steps: {phase: "start" | "forward" | "seed" | "backward" | "all", box}; at: the step shown; given: boxes that have
// handed their gradient on by then.
const replay = { steps: [], at: 0, timer: null, flow: null, given: new Set(), computed: null };

// The steps for a scene. Where the reader was is kept.
function prepareReplay(scene) {
  const atEnd = !replay.steps.length || replay.at >= replay.steps.length - 1, before = replay.steps[replay.at];
  const thing = before?.box === undefined ? null : before.thing;
  const boxes = scene.boxes.map((_, n) => n).filter((n) => !scene.boxes[n].opened && !scene.boxes[n].source);
  const reached = reachedBoxes(scene), withThing = (phase) => (box) => ({ phase, box, thing: scene.things[box] });
  const backward = boxes.filter((n) => reached.has(n)).reverse();
  replay.steps = [{ phase: "start" }, ...boxes.map(withThing("forward"))];
  if (backward.length) replay.steps.push({ phase: "seed" }, ...backward.map(withThing("backward")));
  replay.steps.push({ phase: "all" });
  replay.flow ??= data.learning ? gradientFlow() : null;
  const same = replay.steps.findIndex((step) => before && step.phase === before.phase && step.thing === (thing ?? undefined));
  const at = atEnd ? replay.steps.length - 1 : same >= 0 ? same : Math.min(replay.at, replay.steps.length - 1);
  const slider = $("step");
  slider.max = replay.steps.length - 1;
  const share = boxes.length / Math.max(replay.steps.length - 1, 1);
  $("passes").style.gridTemplateColumns = backward.length ? `${share}fr ${1 - share}fr` : "1fr";
  $("passes").lastElementChild.hidden = !backward.length;
  $("replay").hidden = boxes.length < 2;
  setStep(at);
}

// The boxes that a gradient reaches in backward.
function reachedBoxes(scene) {
  const sources = new Map(), found = new Set(), stack = [];
  scene.carried.forEach((carried, number) => {
    if (carried[0].kind !== "gradient") return;
    const arrow = scene.arrows[number], back = scene.backward.has(number);
    const [from, to] = back ? [arrow.target, arrow.source] : [arrow.source, arrow.target];
    if (!sources.has(to)) sources.set(to, []);
    sources.get(to).push(from);
  });
  for (const [node, output] of graph.roots) {
    if (nodes[node].outputs[output]?.requires_grad && scene.shown.has(node)) stack.push(scene.shown.get(node));
  }
  while (stack.length) {
    const box = stack.pop();
    if (found.has(box)) continue;
    found.add(box);
    stack.push(...(sources.get(box) ?? []));
  }
  return found;
}

function setStep(at) {
  replay.at = Math.max(0, Math.min(at, replay.steps.length - 1));
  const step = replay.steps[replay.at], first = replay.steps.findIndex(({ phase }) => phase === "seed" || phase === "all");
  replay.computed = replay.at >= first ? null : new Set(replay.steps.slice(1, replay.at + 1).map(({ box }) => box));
  const given = step.phase === "all" ? replay.steps : replay.steps.slice(0, replay.at + 1);
  replay.given = new Set(given.filter(({ phase }) => phase === "backward").map(({ box }) => box));
  const caption = captionOf(step);
  $("caption").textContent = caption;
  $("step").value = replay.at;
  $("step").setAttribute("aria-valuetext", say("replay.position", { step: replay.at, steps: replay.steps.length - 1, caption }));
  picture.drawn.forEach((element, item) => dressForReplay(item, element));
  if (step.box !== undefined && picture.byBox.has(step.box)) bringIntoView(picture.byBox.get(step.box)[0]);
}

function play() {
  if (replay.timer !== null) {
    pause();
    return;
  }
  if (replay.at >= replay.steps.length - 1) setStep(0);
  showPlaying(true);
  const next = () => {
    setStep(replay.at + 1);
    if (replay.at >= replay.steps.length - 1) pause();
    else replay.timer = setTimeout(next, Math.max(SECONDS * Math.min(1, 40 / replay.steps.length), SHORTEST) * 1000);
  };
  replay.timer = setTimeout(next, 400);
}

function pause() {
  clearTimeout(replay.timer);
  replay.timer = null;
  showPlaying(false);
}

function showPlaying(playing) {
  const words = say(playing ? "replay.pause" : "replay.play"), button = $("play");
  button.classList.toggle("playing", playing);
  button.title = words;
  button.setAttribute("aria-label", words);
}

// --- what is said ----------------------------------------------------------------------------------------------------

function captionOf(step) {
  if (step.phase === "all") return say("replay.all");
  if (step.phase === "start") {
    const names = state.scene.things.filter((t) => !t.isBlock && t.kind === "leaf").map((leaf) => titleOf(leaf));
    return names.length && names.length <= 6 ? say("replay.leaves", { names: names.join(say("list")) }) : say("replay.start");
  }
  if (step.phase === "seed") return seedCaption();
  return step.phase === "forward" ? forwardCaption(step.thing) : backwardCaption(step.box, step.thing);
}

function forwardCaption(thing) {
  const value = thing.isBlock ? null : thing.outputs[0]?.value ?? null, what = titleOf(thing);
  if (value === null) return say("replay.computes", { what });
  const key = what.includes(" = ") ? "replay.computes.formula" : "replay.computes.value";
  return say(key, { what, name: nameOf(thing), value: valueText(value) });
}

function seedCaption() {
  const [node, output] = graph.roots[0], name = nameOf(nodes[node], output);
  const size = sizeOfShape(nodes[node].outputs[output]?.shape ?? null);
  return say(size === 1 ? "replay.seed" : "replay.seed.many", { name });
}

function backwardCaption(box, thing) {
  const found = thing.isBlock ? nodesIn(thing).flatMap((node) => into[node.id]) : into[thing.id];
  const handing = found.filter((edge) => edge.kind === "gradient" && state.scene.shown.get(edge.source) !== box);
  const names = [...new Set(handing.map((edge) => nameOf(nodes[edge.source], edge.output)))];
  const known = !thing.isBlock && replay.flow && handing.every((edge) => replay.flow.handed.get(edge.id));
  if (!known || !handing.length) {
    const shown = names.length > 4 ? [...names.slice(0, 4), "…"] : names;
    return say("replay.gives.unknown", { what: titleOf(thing), names: shown.join(say("list")) });
  }
  const gradient = gradientAt(thing), parts = handing.map((edge) => handedText(edge, gradient)).join(say("list"));
  return say("replay.gives", { what: nameOf(thing), grad: gradient ? gradientText(gradient) : "", parts }) + sumsText(handing);
}

function handedText(edge, gradient) {
  const name = nameOf(nodes[edge.source], edge.output), product = gradientText(replay.flow.handed.get(edge.id));
  if (edge.derivative.kind !== "scalar" || !gradient) return say("replay.part.plain", { name, product });
  return say("replay.part", { name, grad: gradientText(gradient), factor: derivativeText(edge.derivative), product });
}

// How gradients add up in the leaves that an operation has just given to.
function sumsText(handing) {
  let text = "";
  for (const leaf of new Set(handing.map((edge) => nodes[edge.source]).filter((node) => node.kind === "leaf"))) {
    const parts = partsAt(leaf).filter(Boolean);
    if (parts.length < 2) continue;
    const total = gradientText(parts.reduce(sumOf));
    text += say("replay.sum", { name: nameOf(leaf), parts: parts.map(gradientText).join(" + "), total });
  }
  return text;
}

// The gradients that have come to a node so far, one for each edge; the first output's.
function partsAt(node) {
  const parts = replay.flow.seeds.has(node.id) ? [replay.flow.seeds.get(node.id)] : [];
  for (const edge of outOf[node.id]) {
    if (edge.output === 0 && replay.given.has(state.scene.shown.get(edge.target))) {
      const part = replay.flow.handed.get(edge.id);
      if (part !== undefined) parts.push(part);
    }
  }
  return parts;
}

function gradientAt(node) {
  const parts = partsAt(node);
  return parts.length ? parts.reduce(sumOf) : null;
}

// --- how it looks ----------------------------------------------------------------------------------------------------

function dressForReplay(item, element) {
  const step = replay.steps[replay.at], phase = step?.phase;
  if (!phase) return;
  const { computed } = replay, isIn = (box) => computed === null || computed.has(box) || state.scene.boxes[box].source;
  if (item.type === "boxes") {
    element.classList.toggle("dim", !isIn(item.number));
    element.classList.toggle("now", step.box === item.number);
    element.classList.toggle("given", phase !== "all" && replay.given.has(item.number));
    dressGradient(item, element, phase);
  } else if (item.type === "lines") {
    const on = item.arrows.some((number) => isIn(targetOf(number)));
    const now = step.box !== undefined && item.arrows.some((number) => targetOf(number) === step.box);
    element.classList.toggle("dim", !on);
    element.classList.toggle("flow", now && (phase === "forward" || item.look === "gradient"));
    element.classList.toggle("back", phase === "backward");
  } else if (item.type === "labels") {
    dressLabel(item, element, phase, isIn);
  }
}

function targetOf(number) {
  const arrow = state.scene.arrows[number];
  return state.scene.backward.has(number) ? arrow.source : arrow.target;
}

// The row of a box in which its gradient stands.
function dressGradient({ thing, width }, element, phase) {
  const row = element.querySelector(".row.grad");
  if (!row || thing.isBlock) return;
  const passed = ["seed", "backward", "all"].includes(phase), gradient = passed && replay.flow ? gradientAt(thing) : null;
  const measured = phase === "all" ? thing.outputs[0]?.gradient : null;
  if (gradient) row.textContent = cutTo(say("grad", { value: gradientText(gradient, 3) }), width);
  else row.textContent = measured ? cutTo(say("gradient norm", { norm: numberText(measured.norm) }), width) : "";
  element.classList.toggle("has-grad", Boolean(gradient));
}

// The row of an edge's label in which the value stands that flows along it, or the gradient that flows back.
function dressLabel(item, element, phase, isIn) {
  const target = targetOf(item.number), [edge] = state.scene.carried[item.number], row = element.querySelector(".carried");
  element.classList.toggle("dim", !isIn(target));
  if (!row) return;
  const value = nodes[edge.source].outputs[edge.output]?.value ?? null, part = replay.flow?.handed.get(edge.id);
  const back = replay.given.has(target) && part;
  row.classList.toggle("back", Boolean(back));
  const name = nameOf(nodes[edge.source], edge.output);
  const text = back ? say("grad", { value: gradientText(part, 3) })
    : value !== null && isIn(target) && phase !== "start" ? say("carries", { name, value: valueText(value, 3) }) : "";
  row.textContent = cutTo(text, item.width + 8);
}

// A text that fits into a box of a width.
function cutTo(text, width) {
  const most = Math.floor((width - 16) / (CHARACTER * NOTE_FONT));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
