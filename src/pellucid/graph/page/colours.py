"""The colours, one place for page and SVG: leaves green, constants white, operations blue, the gradient's path orange."""

from __future__ import annotations

__all__ = ["DARK", "LIGHT", "style_sheet"]

LIGHT = {
    "page": "#ffffff",
    "bar": "#f5f7fa",
    "line": "#d5dbe3",
    "text": "#15191f",
    "faint": "#55606e",
    "focus": "#0b57d0",
    "leaf": "#dcf2d8",
    "leaf-line": "#2e7d32",
    "input": "#ffffff",
    "input-line": "#7a8594",
    "operation": "#dceafb",
    "operation-line": "#1f5fa8",
    "plain": "#f1f4f8",
    "plain-line": "#8593a5",
    "module": "#c3dbf8",
    "module-line": "#174a86",
    "frame": "#f4f8fe",
    "frame-line": "#a9c3e4",
    "root": "#174a86",
    "root-line": "#0d2f5a",
    "root-text": "#ffffff",
    "root-faint": "#cfe0f5",
    "gradient": "#e8710a",
    "gradient-text": "#a34a00",
    "constant": "#8c97a5",
    "bad": "#c62828",
    "bad-fill": "#fdeaea",
    "value": "#1d5f23",
}
DARK = {
    "page": "#14181d",
    "bar": "#1c2229",
    "line": "#37414d",
    "text": "#e8ecf1",
    "faint": "#a5b0bd",
    "focus": "#8ab4f8",
    "leaf": "#1d3d22",
    "leaf-line": "#66bb6a",
    "input": "#262c34",
    "input-line": "#9aa5b3",
    "operation": "#17324f",
    "operation-line": "#64a5ec",
    "plain": "#20262d",
    "plain-line": "#6d7a89",
    "module": "#1d4574",
    "module-line": "#8abdf3",
    "frame": "#181f28",
    "frame-line": "#35506f",
    "root": "#a9cdf7",
    "root-line": "#e3f0ff",
    "root-text": "#0d2238",
    "root-faint": "#2f4a68",
    "gradient": "#ff9a3d",
    "gradient-text": "#ffb26b",
    "constant": "#7d8896",
    "bad": "#ff7b72",
    "bad-fill": "#4a1d1d",
    "value": "#8fd694",
}


def style_sheet() -> str:
    """The colours as variables of a style sheet: dark where the reader's system is, or where the page is told to be."""

    def variables(colours: dict[str, str]) -> str:
        return "".join(f"--{name}:{colour};" for name, colour in colours.items())

    return (
        f":root{{color-scheme:light;{variables(LIGHT)}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{variables(DARK)}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{variables(DARK)}}}\n"
    )
