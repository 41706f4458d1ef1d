"""The operators, one family a file, imported when one of their names is first used; `index.py` has the names."""

from pellucid.autograd.registry import announce
from pellucid.ops.index import FAMILIES

for _family, _groups in FAMILIES.items():
    for _places, _names in _groups.items():
        announce(f"pellucid.ops.{_family}", dict.fromkeys(_places.split(), _names))
