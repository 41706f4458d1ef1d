"""Joints that all texts share: how lines are named, how sentences and lists are joined."""

# ruff: noqa: RUF001 (Chinese punctuation is meant)

__all__ = ["GENERAL"]

GENERAL = {
    " ": "",
    ", ": "、",
    "; ": "；",
    " or ": " 或 ",
    " and ": " 和 ",
    " at {site}": "（{site}）",
}
