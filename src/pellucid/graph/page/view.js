// Where the reader looks: moving and zooming the picture.

const $ = (id) => document.getElementById(id);
const canvas = $("canvas"), embedded = document.documentElement.classList.contains("embedded");
const LEAST_ZOOM = 0.002, MOST_ZOOM = 4, MARGIN = 24, LEGIBLE = 0.55, LARGEST_AT_FIRST = 1.25;
const view = { x: 0, y: 0, k: 1, onChange: () => {} };

function moveView(dx, dy) {
  setView(view.x + dx, view.y + dy, view.k);
}

function setView(x, y, k) {
  Object.assign(view, { x, y, k });
  $("world").setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
  view.onChange();
}

// Zooms by a factor; the point (x, y) of the canvas stays where it is.
function zoomView(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const k = Math.min(Math.max(view.k * factor, LEAST_ZOOM), MOST_ZOOM), by = k / view.k;
  setView(x - (x - view.x) * by, y - (y - view.y) * by, k);
}

// The rectangle of the picture that can be seen.
const seen = () => ({
  left: -view.x / view.k, top: -view.y / view.k,
  right: (canvas.clientWidth - view.x) / view.k, bottom: (canvas.clientHeight - view.y) / view.k,
});

// Shows all of a picture. legibly: not smaller than one can read; then its beginning, the box `first`. Where there is
// room it stands beside the legend.
function fitView(width, height, legibly, first) {
  const room = Math.min((canvas.clientWidth - 2 * MARGIN) / width, (canvas.clientHeight - 2 * MARGIN) / height);
  const k = Math.max(Math.min(room, LARGEST_AT_FIRST), legibly ? LEGIBLE : LEAST_ZOOM);
  const fits = width * k <= canvas.clientWidth, middle = fits || !first ? width / 2 : first.x + first.width / 2;
  const y = Math.max((canvas.clientHeight - height * k) / 2, MARGIN);
  const legend = $("legend").open ? $("legend").offsetLeft + $("legend").offsetWidth + MARGIN / 2 : 0;
  const x = canvas.clientWidth / 2 - middle * k, aside = Math.min(legend, canvas.clientWidth - width * k - MARGIN);
  setView(fits ? Math.max(x, aside) : x, y, k);
}

// Moves the picture so that a rectangle is in the middle, large enough to read.
function centreOn({ x, y, width, height }) {
  const k = Math.max(view.k, LEGIBLE);
  setView(canvas.clientWidth / 2 - (x + width / 2) * k, canvas.clientHeight / 2 - (y + height / 2) * k, k);
}

// Moves the picture as little as needed for a rectangle to be seen.
function bringIntoView({ x, y, width, height }) {
  const { left, top, right, bottom } = seen(), edge = MARGIN / view.k;
  let dx = 0, dy = 0;
  if (x - edge < left) dx = left - x + edge;
  else if (x + width + edge > right) dx = right - x - width - edge;
  if (y - edge < top) dy = top - y + edge;
  else if (y + height + edge > bottom) dy = bottom - y - height - edge;
  if (dx || dy) moveView(dx * view.k, dy * view.k);
}

function watchPointer() {
  const pointers = new Map();
  let dragged = 0;
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  const at = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 1) return;
    if (!pointers.size) dragged = 0;
    pointers.set(event.pointerId, at(event));
  });
  window.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = at(event), earlier = pointers.size === 2 ? spread() : null;
    pointers.set(event.pointerId, now);
    dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (earlier) {
      const later = spread();
      zoomView(later.distance / (earlier.distance || 1), later.x, later.y);
      moveView(later.x - earlier.x, later.y - earlier.y);
    } else if (dragged > 4) {
      moveView(now.x - before.x, now.y - before.y);
      canvas.classList.add("dragging");
    }
  });
  const release = (event) => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("dragging");
  };
  window.addEventListener("pointerup", release);
  window.addEventListener("pointercancel", release);
  // A drag that ends on a box is no click on it.
  canvas.addEventListener("click", (event) => { if (dragged > 4) event.stopPropagation(); }, true);
  canvas.addEventListener("wheel", (event) => {
    if (embedded && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { x, y } = at(event), scale = event.deltaMode === 1 ? 30 : 1;
    if (event.ctrlKey || event.metaKey) zoomView(Math.exp(-event.deltaY * scale * (event.deltaMode ? 0.004 : 0.008)), x, y);
    else if (event.shiftKey && !event.deltaX) moveView(-event.deltaY * scale, 0);
    else moveView(-event.deltaX * scale, -event.deltaY * scale);
  }, { passive: false });
}
