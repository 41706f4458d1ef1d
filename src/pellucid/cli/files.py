"""Files that the commands write."""

from __future__ import annotations

from pathlib import Path

from pellucid.cli.errors import UsageError
from pellucid.core.atomic import writing


def write_text(path: Path, content: str) -> None:
    """Write a text file, whole or not at all; UsageError if it cannot be written."""
    try:
        with writing(path) as stream:
            stream.write(content.encode())
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
