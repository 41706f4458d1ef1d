// The graph in words, as a tree that opens and closes: everything the picture says, for readers who cannot see it.

const MOST_IN_OUTLINE = 400;

function prepareOutline() {
  const tree = $("outline");
  tree.replaceChildren(...outlineItems(blocks[0], 1));
  const first = tree.querySelector("[role=treeitem]");
  if (first) first.tabIndex = 0;
  tree.addEventListener("keydown", outlineKey);
}

function outlineItems(block, level) {
  const things = [...block.leaves, ...block.items], shown = things.slice(0, MOST_IN_OUTLINE).map((thing) => outlineItem(thing, level));
  if (things.length > MOST_IN_OUTLINE) {
    shown.push(h("li", { role: "none", class: "faint" }, say("chain.more", { n: things.length - MOST_IN_OUTLINE })));
  }
  return shown;
}

function outlineItem(thing, level) {
  const opens = thing.isBlock && thing.items.length, item = h("li", {
    role: "treeitem", tabindex: "-1", "aria-level": level, "aria-selected": "false", "aria-expanded": opens ? "false" : null,
  });
  const words = h("span", { class: `words ${thing.look}` }, inWords(thing));
  const sign = h("span", { class: "twist", "aria-hidden": "true" }, opens ? "▸" : "");
  item.append(h("div", {}, sign, words));
  item.thing = thing;
  item.firstElementChild.addEventListener("click", (event) => {
    event.stopPropagation();
    focusOutline(item);
    if (event.target === sign && opens) toggleOutline(item);
    else select(thing, { reveal: true });
  });
  return item;
}

function toggleOutline(item, open = item.getAttribute("aria-expanded") !== "true") {
  if (!item.hasAttribute("aria-expanded")) return;
  item.setAttribute("aria-expanded", String(open));
  item.querySelector(".twist").textContent = open ? "▾" : "▸";
  const list = item.querySelector(":scope > ul");
  if (!open) list?.remove();
  else if (!list) item.append(h("ul", { role: "group" }, ...outlineItems(item.thing, Number(item.getAttribute("aria-level")) + 1)));
}

function focusOutline(item) {
  for (const other of $("outline").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

function outlineKey(event) {
  const items = [...$("outline").querySelectorAll("[role=treeitem]")], item = document.activeElement, at = items.indexOf(item);
  if (at < 0) return;
  const open = item.getAttribute("aria-expanded") === "true", go = (other) => { if (other) focusOutline(other); };
  const actions = {
    ArrowDown: () => go(items[at + 1]),
    ArrowUp: () => go(items[at - 1]),
    Home: () => go(items[0]),
    End: () => go(items[items.length - 1]),
    ArrowRight: () => (open ? go(items[at + 1]) : toggleOutline(item, true)),
    ArrowLeft: () => (open ? toggleOutline(item, false) : go(item.parentElement.closest("[role=treeitem]"))),
    Enter: () => select(item.thing, { reveal: true }),
    " ": () => select(item.thing, { reveal: true }),
  };
  if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  actions[event.key]();
}

// Marks the selected thing, where the outline shows it.
function markOutline(thing) {
  for (const item of $("outline").querySelectorAll("[role=treeitem]")) {
    item.setAttribute("aria-selected", String(item.thing === thing));
  }
}
