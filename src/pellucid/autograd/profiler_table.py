"""How a profile is printed: one column a fact, in PyTorch's layout."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = ["build_table", "format_memory", "format_time"]

WIDTH = 12
GAP = "  "


def format_time(microseconds: float, unit: str | None = None) -> str:
    """A time with its unit, the largest that leaves a number above one unless one is given."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / {'s': 1e6, 'ms': 1e3, 'us': 1}[unit]:.3f}{unit}"


def format_memory(count: int) -> str:
    """A number of bytes with its unit."""
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


class Column(NamedTuple):
    """A column: its title, its width, how it shows an event, and whether it is set to the left."""

    title: str
    width: int
    cell: Any
    left: bool = False

    def text(self, value) -> str:
        """A cell, filled up to the width."""
        return f"{value:<{self.width}}" if self.left else f"{value:>{self.width}}"


def build_table(events, *, sort_by, row_limit, header, top_level_only, widths, time_unit, with_memory, with_flops) -> str:
    """The table of a list of events or averages; see EventList.table."""
    if not events:
        return ""
    if sort_by is not None:
        key = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        events = sorted(events, key=lambda event: getattr(event, key), reverse=True)
    total = sum(event.self_cpu_time_total for event in events)
    columns = _columns(events, total, time_unit, with_memory, with_flops, widths)
    line = GAP.join("-" * column.width for column in columns) + GAP
    double = "=" * (len(line) - len(GAP))
    lines = [double, header] if header is not None else []
    if top_level_only:
        lines += [double, "This report only display top-level ops statistics"]
    lines += [line, "".join(column.text(column.title) + GAP for column in columns), line]
    shown = [event for event in events if not (top_level_only and event.cpu_parent is not None)]
    for event in shown if row_limit < 0 else shown[:row_limit]:
        lines.append("".join(column.text(column.cell(event)) + GAP for column in columns))
        if columns[-1].left:
            lines += _further_stack(event, columns)
    lines += [line, f"Self CPU time total: {format_time(total, time_unit)}"]
    return "\n".join(lines) + "\n"


def _columns(events, total: float, unit: str | None, with_memory: bool, with_flops: bool, widths) -> list[Column]:
    name_limit, shapes_limit, source_limit = widths

    def share(part) -> str:
        return f"{part * 100 / total:.2f}%" if total else "NaN"

    columns = [
        Column("Name", _width([e.key for e in events], name_limit), lambda e: _cut(e.key, name_limit)),
        Column("Self CPU %", WIDTH, lambda e: share(e.self_cpu_time_total)),
        Column("Self CPU", WIDTH, lambda e: format_time(e.self_cpu_time_total, unit)),
        Column("CPU total %", WIDTH, lambda e: 0 if e.is_async else share(e.cpu_time_total)),
        Column("CPU total", WIDTH, lambda e: format_time(e.cpu_time_total, unit)),
        Column("CPU time avg", WIDTH, lambda e: format_time(e.cpu_time, unit)),
    ]
    if with_memory:
        columns += [
            Column("CPU Mem", WIDTH, lambda e: format_memory(e.cpu_memory_usage)),
            Column("Self CPU Mem", WIDTH, lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
    columns.append(Column("# of Calls", WIDTH, lambda e: e.count))
    if any(e.node_id != -1 for e in events):
        columns.append(Column("Node ID", WIDTH, lambda e: e.node_id))
    if any(e.input_shapes for e in events):
        width = _width([str(e.input_shapes) for e in events], shapes_limit)
        columns.append(Column("Input Shapes", width, lambda e: str(e.input_shapes)[:width]))
    counted = [e.flops for e in events if e.flops]
    if with_flops and counted:
        columns.append(_flops_column(min(counted)))
    stacks = [entry for e in events for entry in e.stack or ()]
    if stacks:
        columns.append(_source_column(_width(stacks, source_limit)))
    return columns


def _width(texts: list[str], limit: int | None) -> int:
    width = max(len(text) for text in texts) + 4
    return width if limit is None else min(width, limit)


def _cut(name: str, limit: int | None) -> str:
    return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."


def _flops_column(smallest: int) -> Column:
    """Floating-point operations, in the unit that suits the smallest of them."""
    step = min(int(math.log10(smallest) / 3), 5) if smallest > 1 else 0
    title = f"Total {('', 'K', 'M', 'G', 'T', 'P')[step]}FLOPs"
    return Column(title, WIDTH, lambda e: f"{e.flops / 1000**step:8.3f}" if e.flops else "--")


def _source_column(width: int) -> Column:
    def cell(event) -> str:
        return _end(event.stack[0], width) if event.stack else ""

    return Column("Source Location", width, cell, left=True)


def _end(text: str, width: int) -> str:
    """The end of a path that is too long: what tells paths apart."""
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def _further_stack(event, columns: list[Column]) -> list[str]:
    """The lines of a stack below its first, and an empty one."""
    blank = "".join(" " * column.width + GAP for column in columns[:-1])
    entries = [*(event.stack or [])[1:], ""]
    return [blank + columns[-1].text(_end(entry, columns[-1].width)) + GAP for entry in entries]
