"""Makes the pictures in this folder: `python docs/pictures/make.py`. It needs Chromium for the PNGs; with names of
pictures as arguments it makes those only, with `--pages FOLDER` it leaves the pages there too."""

from __future__ import annotations

import argparse
import base64
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "graph"))

from models import GPT, LeNet, ResNet18  # noqa: E402
from page_browser import Tab, opened_browser  # noqa: E402
from page_graphs import bad, cut, shared, textbook  # noqa: E402

import pellucid  # noqa: E402
import pellucid.nn.functional as F  # noqa: E402
from pellucid import graph  # noqa: E402
from pellucid.graph import Graph  # noqa: E402

# --- graphs -----------------------------------------------------------------------------------------------------------


def trained(net, inputs, labels) -> Graph:
    with graph.record() as g:
        logits = net(inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), labels)
        loss.backward()
    return g


def lenet() -> Graph:
    return trained(LeNet(), pellucid.randn(4, 1, 28, 28), pellucid.randint(0, 10, (4,)))


def resnet18() -> Graph:
    return trained(ResNet18(), pellucid.randn(2, 3, 64, 64), pellucid.randint(0, 1000, (2,)))


def gpt() -> Graph:
    return trained(GPT(), pellucid.randint(0, 65, (2, 16)), pellucid.randint(0, 65, (32,)))


def failing() -> Graph:
    net = LeNet(flat=256)  # as many as without the padding
    try:
        with graph.record() as g:
            net(pellucid.randn(2, 1, 28, 28))
    except RuntimeError:
        pass
    return g


# --- files ------------------------------------------------------------------------------------------------------------

PIXELS = """(async () => {{
  const image = new Image();
  image.src = "data:image/png;base64,{}";
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return [image.width, image.height, btoa(text)];
}})()"""


def with_palette(tab: Tab, path: Path) -> None:
    """Write a PNG anew with a palette of 256 colours: a third of the size, and nobody sees a difference."""
    width, height, text = tab.run(PIXELS.format(base64.b64encode(path.read_bytes()).decode()))
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, 4)[:, :3].astype(np.int64)
    colours, numbers, counts = np.unique(pixels @ [65536, 256, 1], return_inverse=True, return_counts=True)
    colours = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1)
    palette = colours[np.argsort(-counts, kind="stable")[:256]]
    nearest = ((colours[:, None] - palette) ** 2).sum(2).argmin(1)
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with 0: no filter
    rows[:, 1:] = nearest[numbers.ravel()].reshape(height, width)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    data = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)


# --- pictures ---------------------------------------------------------------------------------------------------------


def at_once(tab: Tab) -> None:
    """As the page opens."""


def at_step(step: int) -> Callable[[Tab], None]:
    return lambda tab: tab.run(f"pellucid.setStep({step})")


def first_leaf(tab: Tab) -> None:
    tab.click(".box.leaf")


def with_path(tab: Tab) -> None:
    tab.click("#chain-result li button")


def basic_block(tab: Tab) -> None:
    tab.click(".box.module", text="layer2 Sequential")
    tab.click(".box.module", text="0 BasicBlock")


def search(tab: Tab) -> None:
    tab.key("/")
    tab.type("softmax")
    tab.key("Enter")
    tab.run("document.getElementById('legend').open = false")


# name: the graph, what is done before the picture is taken, width, height, dark
SCREENSHOTS: dict[str, tuple[Callable[[], Graph], Callable[[Tab], None], int, int, bool]] = {
    "textbook": (textbook, at_once, 1200, 720, False),
    "textbook-backward": (textbook, at_step(7), 1200, 720, False),
    "chain-rule": (shared, with_path, 1200, 760, False),
    "cut": (cut, at_once, 1200, 760, False),
    "not-a-number": (bad, first_leaf, 1200, 760, False),
    "lenet": (lenet, at_once, 1200, 800, False),
    "resnet18": (resnet18, at_once, 1200, 800, False),
    "resnet18-block": (resnet18, basic_block, 1200, 800, False),
    "gpt": (gpt, at_once, 1200, 800, False),
    "gpt-search": (gpt, search, 1200, 800, False),
    "failing": (failing, at_once, 1200, 720, False),
    "dark": (shared, at_step(7), 1200, 760, True),
}
STILLS: dict[str, tuple[Callable[[], Graph], dict]] = {
    "textbook": (textbook, {}),
    "lenet": (lenet, {}),
    "gpt": (gpt, {"expand": 2}),
    "failing": (failing, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *{**SCREENSHOTS, **STILLS}], metavar="NAME")
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    wanted = options.names or {**SCREENSHOTS, **STILLS}
    pellucid.manual_seed(0)
    for name in wanted:
        if name in STILLS:
            make, arguments = STILLS[name]
            (HERE / f"{name}.svg").write_text(make().svg(**arguments), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, opened_browser() as browser:
        pages = options.pages or Path(folder)
        pages.mkdir(exist_ok=True)
        for name in wanted:
            if name in SCREENSHOTS:
                make, act, width, height, dark = SCREENSHOTS[name]
                page = pages / f"{name}.html"
                make().html(page)
                tab = browser.open(page.resolve().as_uri(), width=width, height=height, dark=dark)
                act(tab)
                tab.picture(HERE / f"{name}.png")
                with_palette(tab, HERE / f"{name}.png")
                print(f"{name}.png {(HERE / f'{name}.png').stat().st_size:,} bytes, {name}.html {page.stat().st_size:,} bytes")
                for complaint in tab.complaints():
                    print(f"  {complaint}")
                tab.close()


if __name__ == "__main__":
    main()
