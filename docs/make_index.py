"""Write `index.py` of `src/pellucid/ops` and of `src/pellucid/functions`: which family makes which names.

    python docs/make_index.py [--check]

`--check` compares instead of writing, and fails where an index is out of date. Each family is imported, and what was
entered or attached meanwhile, and not by a family that it imports itself, is its own.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import sys
import textwrap
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
ROOMS = ("ops", "functions")
PREFIXES = tuple(f"pellucid.{room}." for room in ROOMS)
WIDTH = 130
HEADER = '''"""Which family of `{room}/` makes which names. Written by `docs/make_index.py`; a test compares.

`import pellucid` reads this instead of importing the families; each is imported when one of its names is first used. Names
stand under the places where they are found: "operators" (by formulas), "Tensor" (its methods), public modules.
"""

FAMILIES: dict[str, dict[str, str]] = {{
'''


class Watch:
    """Attributes names to the families that make them, while those are being imported."""

    def __init__(self):
        self.owners: dict[tuple[str, str], str] = {}
        self.depth: list[set] = []
        self.plain = importlib.machinery.SourceFileLoader.exec_module

    def exec_module(self, loader, module) -> None:
        """Run a module; note what it changed."""
        family = module.__name__.removeprefix("pellucid.")  # "ops.views"
        if not module.__name__.startswith(PREFIXES) or family.endswith(".index"):
            self.plain(loader, module)
            return
        before = held()
        self.depth.append(set())
        self.plain(loader, module)
        nested = self.depth.pop()
        changed = {key for key, value in held().items() if before.get(key) != value}
        for key in changed - nested:
            self.owners[key] = family
        for key in nested & set(self.owners):
            if self.depth:
                self.depth[-1].add(key)
        if self.depth:
            self.depth[-1] |= changed


def held() -> dict[tuple[str, str], int]:
    """Everything that is attached or entered at this moment: (where, name) -> identity."""
    registry = sys.modules.get("pellucid.autograd.registry")
    if registry is None:
        return {}
    later = registry._Later
    found = {("Tensor", name): id(value) for name, value in vars(registry.Tensor).items() if type(value) is not later}
    tables = {"operators": registry.OPERATORS, **registry.PUBLIC}
    found |= {(where, name): id(dict.__getitem__(table, name)) for where, table in tables.items() for name in dict.keys(table)}
    return found


def indexes() -> dict[Path, str]:
    """The texts of the indexes by the files in which they belong."""
    watch = Watch()
    importlib.machinery.SourceFileLoader.exec_module = lambda loader, module: watch.exec_module(loader, module)
    sys.path.insert(0, str(SOURCE))
    for room in ROOMS:
        for path in sorted((SOURCE / "pellucid" / room).glob("*.py")):
            if path.stem not in ("__init__", "index"):
                importlib.import_module(f"pellucid.{room}.{path.stem}")
    families: dict[str, dict[str, dict[str, list[str]]]] = {room: {} for room in ROOMS}
    for (where, name), family in sorted(watch.owners.items()):
        if name not in ("__doc__", "__abstractmethods__"):
            room, module = family.split(".")
            families[room].setdefault(module, {}).setdefault(where, []).append(name)
    return {SOURCE / "pellucid" / room / "index.py": _index(room, made) for room, made in families.items()}


def _index(room: str, families: dict[str, dict[str, list[str]]]) -> str:
    return HEADER.format(room=room) + "".join(_family(name, families[name]) for name in sorted(families)) + "}\n"


def _family(name: str, tables: dict[str, list[str]]) -> str:
    """The names of one family, those that are entered in the same places together."""
    places: dict[str, list[str]] = {}
    for where, names in tables.items():
        for each in names:
            places.setdefault(each, []).append(where)
    groups: dict[str, list[str]] = {}
    for each, found in sorted(places.items()):
        groups.setdefault(" ".join(found), []).append(each)
    lines = [f'    "{name}": {{']
    for where, names in sorted(groups.items()):
        text = f'        "{where}": """{" ".join(names)}""",'
        text = text.replace('"""', '"') if len(text) < WIDTH else text
        lines += textwrap.wrap(text, WIDTH, subsequent_indent=" " * 12, drop_whitespace=True, break_on_hyphens=False)
        lines[-1] = lines[-1].rstrip()
    return "\n".join([*lines, "    },\n"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    texts = indexes()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    if check and stale:
        sys.exit(f"{', '.join(map(str, stale))} is out of date: run python docs/make_index.py")
    for path in stale:
        path.write_text(texts[path])
