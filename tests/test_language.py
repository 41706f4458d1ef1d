"""Messages in two languages: which one is on, and that the catalogue has what the source says, and nothing else."""

import ast
import os
import string
import subprocess
import sys
from pathlib import Path

import pytest

import pellucid
from pellucid.core import language
from pellucid.core.catalogue_zh import CATALOGUE
from pellucid.graph.page.texts import TEXTS

SOURCE = Path(pellucid.__file__).parent
TAKES_TEXTS = {"say": 1, "counted": 2, "template": 1}  # how many of a function's first arguments are texts


@pytest.fixture
def fresh():
    """The environment is asked anew, before and after."""
    language.set_language(None)
    yield
    language.set_language(None)


@pytest.fixture
def chinese():
    language.set_language("zh")
    yield
    language.set_language(None)


# --- which language ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"PELLUCID_LANG": "zh"}, "zh"),
        ({"PELLUCID_LANG": "zh_CN"}, "zh"),
        ({"PELLUCID_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"PELLUCID_LANG": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ({"PELLUCID_LANG": "fr", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh-Hans"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_MESSAGES": "en_US", "LANG": "zh_CN"}, "en"),
        ({"LANGUAGE": "zh_CN:en", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANGUAGE": "de:zh:en", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANGUAGE": "zh_CN:en", "LANG": "C"}, "en"),
        ({"LANGUAGE": "en", "LANG": "zh_CN"}, "en"),
    ],
)
def test_the_environment_chooses(monkeypatch, fresh, variables, expected):
    for name in ("PELLUCID_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language.language() == expected


def test_it_is_read_once(monkeypatch, fresh):
    monkeypatch.setenv("PELLUCID_LANG", "zh")
    assert language.language() == "zh"
    monkeypatch.setenv("PELLUCID_LANG", "en")
    assert language.language() == "zh"


def test_a_program_chooses(fresh):
    language.set_language("zh_CN")
    assert language.language() == "zh"
    language.set_language("en")
    assert language.language() == "en"


def test_a_language_that_is_not_there_is_refused(fresh):
    with pytest.raises(ValueError, match=r"set_language\(\): expected one of en, zh or None, got 'fr'"):
        language.set_language("fr")


# --- what is said -----------------------------------------------------------------------------------------------------


def test_english_is_the_template_filled_in(fresh):
    assert language.say(" at {site}", site="train.py:3") == " at train.py:3"


def test_chinese_comes_from_the_catalogue(chinese):
    assert language.say(" at {site}", site="train.py:3") == "（train.py:3）"  # noqa: RUF001


def test_a_text_without_a_translation_stays_english(chinese):
    assert language.say("{name} sleeps", name="w") == "w sleeps"


def test_counts_have_two_forms(fresh):
    assert language.counted("{n} leaf", "{n} leaves", 1) == "1 leaf"
    assert language.counted("{n} leaf", "{n} leaves", 0) == "0 leaves"


def test_sentences_are_joined_as_the_language_does(fresh):
    language.set_language("en")
    assert language.sentences("One.", "", "Two.") == "One. Two."
    language.set_language("zh")
    assert language.sentences("一。", "", "二。") == "一。二。"


def test_the_first_line_of_a_message_stays(chinese):
    assert language.message("grad was lost", language.say(" at {site}", site="a.py:1"), "") == "grad was lost\n（a.py:1）"  # noqa: RUF001


def test_english_programs_do_not_load_the_catalogue():
    code = (
        "import sys, pellucid; from pellucid.core.language import say; say(' or '); "
        "print([name for name in sys.modules if 'catalogue' in name])"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


# --- the catalogue and the source -------------------------------------------------------------------------------------


def texts_of(tree):
    """The texts that a module says: (line, text), or (line, None) where it is put together and so cannot be looked up."""
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "pellucid.core.language"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = imported.get(called.id) if isinstance(called, ast.Name) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "language":
            name = called.attr
        for argument in node.args[: TAKES_TEXTS.get(name, 0)]:
            for each in (argument.body, argument.orelse) if isinstance(argument, ast.IfExp) else (argument,):
                if isinstance(each, ast.Constant):
                    yield node.lineno, each.value
                elif not is_marked(each):
                    yield node.lineno, None


def is_marked(argument):
    """Whether it is a name or a look-up in a table: what these hold was marked by `template` where it stands."""
    looks_up = isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and argument.func.attr == "get"
    return looks_up or isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript))


def said():
    """All texts of the library, each with where it is said; texts put together in the call have the key None."""
    found = {text: "graph/page/texts.py" for text in TEXTS.values()}
    for path in SOURCE.rglob("*.py"):
        if path.name == "language.py" and path.parent.name == "core":
            continue
        for line, text in texts_of(ast.parse(path.read_text(encoding="utf-8"))):
            found[text] = f"{path.relative_to(SOURCE)}:{line}"
    return found


def fields(text):
    return sorted(f"{name}!{conversion}:{spec}" for _, name, spec, conversion in string.Formatter().parse(text) if name is not None)


def test_the_scan_sees_what_is_said():
    tree = ast.parse(
        "from pellucid.core.language import counted, say as tell, template\n"
        "from pellucid.core import language\n"
        "tell('a'); counted('b', 'c', 2); X = template('d'); tell(X); tell('e' if x else 'f'); language.say('g')\n"
        "tell(f'{x}'); say('no'); other.say('no')\n"
    )
    assert [text for _, text in texts_of(tree)] == ["a", "b", "c", "d", "e", "f", "g", None]


def test_texts_are_literals():
    assert None not in said(), said()[None]


def test_every_text_has_a_translation():
    assert {text: place for text, place in said().items() if text not in CATALOGUE} == {}


def test_every_translation_is_said():
    known, joints = said(), {" ", ", ", "; ", " or ", " and "}
    assert [text for text in CATALOGUE if text not in known and text not in joints] == []


@pytest.mark.parametrize("text", CATALOGUE, ids=lambda text: text[:50])
def test_a_translation_has_the_fields_of_its_text(text):
    assert fields(CATALOGUE[text]) == fields(text)


@pytest.mark.parametrize("topic", sorted((SOURCE / "core" / "catalogue_zh").glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_topics_do_not_share_texts(topic):
    """A key that stands twice would say one thing in one file, and another in the other."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in topic.parent.glob("[a-z]*.py")}
    keys = {
        path: [key.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if isinstance(key, ast.Constant)]
        for path, tree in trees.items()
    }
    own = keys[topic]
    assert len(own) == len(set(own))
    assert not set(own) & {key for path, others in keys.items() if path != topic for key in others}
