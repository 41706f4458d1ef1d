"""The Chinese of what the library explains: English text -> Simplified Chinese, by topic, in the words of Chinese tutorials."""

from pellucid.core.catalogue_zh.general import GENERAL
from pellucid.core.catalogue_zh.page import PAGE

CATALOGUE = {**GENERAL, **PAGE}
