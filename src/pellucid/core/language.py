"""In which language the library explains: English, or Chinese where the environment asks for it.

As in gettext the English text is the key: `say("{name} is a leaf", name="w")`. Chinese texts are in
`core/catalogue_zh/`, loaded when the first is wanted; a text that is not there stays English. Exceptions begin with
PyTorch's English line in every language, since programs match on it (`message`); only what explains it is translated.
"""

from __future__ import annotations

import os

__all__ = ["LANGUAGES", "counted", "language", "message", "say", "sentences", "set_language", "template", "translated"]

LANGUAGES = ("en", "zh")

_chosen: str | None = None
_catalogue: dict[str, str] | None = None


def language() -> str:
    """ "en" or "zh": what `set_language` was given, else what the environment says when this is first asked.

    `PELLUCID_LANG` comes first ("zh", "zh_CN", "en"), then what gettext reads: the locale of LC_ALL, LC_MESSAGES or LANG, the
    first that is set, and, where that is not C, the list in LANGUAGE before it. What is neither English nor Chinese counts as English.
    """
    global _chosen
    if _chosen is None:
        _chosen = _of_environment()
    return _chosen


def set_language(code: str | None) -> None:
    """Explain in a language from here on: "en", "zh" or a locale of one such as "zh_CN"; None asks the environment again.

    Raises:
        ValueError: another language.
    """
    global _chosen
    if code is not None and _base(code) not in LANGUAGES:
        raise ValueError(f"set_language(): expected one of {', '.join(LANGUAGES)} or None, got {code!r}")
    _chosen = None if code is None else _base(code)


def say(template: str, /, **values: object) -> str:
    """A text in the language that is on, its fields filled in as by `str.format`.

    template: the English text, a literal, since a test compares these with the catalogue; or what `template` marked.
    """
    return translated(template).format(**values)


def counted(one: str, many: str, n: int, **values: object) -> str:
    """`say` for a text that depends on a number: `one` for 1, else `many`; both may name {n}, "1,200"."""
    return say(one if n == 1 else many, n=f"{n:,}", **values)


def template(text: str) -> str:
    """Mark a text that is said later, where it stands in a constant or a table; returns it as it is."""
    return text


def sentences(*parts: str) -> str:
    """Sentences or clauses one behind the other, empty ones left out: with a space between them in English."""
    return say(" ").join(part for part in parts if part)


def message(first: str, *explanation: str) -> str:
    """The text of an exception or warning: the English line that programs match on, then what explains it, line by line."""
    return "\n".join([first, *(line for line in explanation if line)])


def _of_environment() -> str:
    own = os.environ.get("PELLUCID_LANG")
    if own:
        return _known(own)
    locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "C")
    if _base(locale) in ("c", "posix"):
        return "en"
    return _known(*os.environ.get("LANGUAGE", "").split(":"), locale)


def _known(*codes: str) -> str:
    """The first of the languages that there are."""
    return next((_base(code) for code in codes if _base(code) in LANGUAGES), "en")


def _base(code: str) -> str:
    """The language of a locale: "zh" of "zh_CN.UTF-8"."""
    return code.partition(".")[0].partition("_")[0].partition("-")[0].partition("@")[0].lower()


def translated(text: str) -> str:
    """A template in the language that is on, its fields left as they are."""
    global _catalogue
    if language() == "en":
        return text
    if _catalogue is None:
        from pellucid.core.catalogue_zh import CATALOGUE

        _catalogue = CATALOGUE
    return _catalogue.get(text, text)
