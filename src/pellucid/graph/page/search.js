// The search box: by name, operator, module or line of the program.

const MOST_HITS = 50;
const search = { hits: [], at: -1, texts: null };

// For each thing the texts it is found by.
function searchTexts() {
  search.texts ??= [
    ...blocks.slice(1).filter((block) => block.kind !== "part").map((block) => [block, textsOfBlock(block)]),
    ...nodes.filter((node) => node.kind !== "constant" && !node.inside).map((node) => [node, textsOfNode(node)]),
  ].map(([thing, found]) => [thing, found.filter(Boolean).map((text) => text.toLowerCase())]);
  return search.texts;
}

function textsOfBlock(block) {
  const call = block.call === null ? null : graph.calls[block.call];
  return call ? [call.path, call.type, call.path.split(".").pop()] : [titleOf(block)];
}

function textsOfNode(node) {
  const call = moduleOf(node), { site } = node;
  return [
    ...node.outputs.map((output) => output.name), node.name, node.operator, `#${node.id}`,
    site && siteText(site), site && String(site.line), site?.function, site?.source, node.call !== null && call ? call.path : "",
  ];
}

function findThings(query) {
  const wanted = query.trim().toLowerCase(), found = [];
  if (!wanted) return found;
  for (const [thing, texts] of searchTexts()) {
    let rank = Infinity;
    texts.forEach((text, k) => {
      const at = text === wanted ? 0 : text.startsWith(wanted) ? 1 : text.includes(wanted) ? 2 : Infinity;
      rank = Math.min(rank, at * 10 + k);
    });
    if (rank < Infinity) found.push([rank, thing]);
  }
  return found.sort((a, b) => a[0] - b[0]).map(([, thing]) => thing);
}

function showHits() {
  const found = findThings($("find").value), list = $("hits");
  search.hits = found.slice(0, MOST_HITS);
  search.at = search.hits.length ? 0 : -1;
  list.replaceChildren(...search.hits.map(hitItem));
  if (!search.hits.length) list.append(h("li", { class: "faint" }, say("found none")));
  else if (found.length > MOST_HITS) list.append(h("li", { class: "faint" }, say("found", { n: found.length })));
  const open = Boolean($("find").value.trim());
  list.hidden = !open;
  $("find").setAttribute("aria-expanded", String(open));
  markHit();
}

function hitItem(thing, k) {
  const call = moduleOf(thing), where = [thing.isBlock ? "" : siteText(thing.site), call?.path ?? ""].filter(Boolean).join(" · ");
  const item = h("li", { id: `hit-${k}`, role: "option", "aria-selected": "false" },
    h("span", { class: `words ${thing.look}` }, titleOf(thing)), h("span", { class: "faint" }, ` ${where}`));
  item.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    chooseHit(k);
  });
  return item;
}

function markHit() {
  search.hits.forEach((_, k) => $(`hit-${k}`).setAttribute("aria-selected", String(k === search.at)));
  if (search.at < 0) $("find").removeAttribute("aria-activedescendant");
  else {
    $("find").setAttribute("aria-activedescendant", `hit-${search.at}`);
    $(`hit-${search.at}`).scrollIntoView({ block: "nearest" });
  }
}

function chooseHit(k) {
  const thing = search.hits[k];
  closeHits();
  if (thing) select(thing, { reveal: true });
}

function closeHits() {
  $("hits").hidden = true;
  $("find").setAttribute("aria-expanded", "false");
  $("find").removeAttribute("aria-activedescendant");
}

function watchSearch() {
  $("find").addEventListener("input", showHits);
  $("find").addEventListener("blur", closeHits);
  $("find").addEventListener("focus", () => { if ($("find").value) showHits(); });
  $("find").addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && search.hits.length) search.at = (search.at + move + search.hits.length) % search.hits.length;
    else if (event.key === "Enter") chooseHit(Math.max(search.at, 0));
    else if (event.key === "Escape") {
      $("find").value = "";
      closeHits();
      canvas.focus();
    } else return;
    event.preventDefault();
    if (move) markHit();
  });
}
