"""The Chinese of what the library explains: English text -> Simplified Chinese, by topic, in the words of Chinese tutorials."""

from pellucid.core.catalogue_zh.autograd import AUTOGRAD
from pellucid.core.catalogue_zh.failures import FAILURES
from pellucid.core.catalogue_zh.general import GENERAL
from pellucid.core.catalogue_zh.graph import GRAPH
from pellucid.core.catalogue_zh.page import PAGE
from pellucid.core.catalogue_zh.training import TRAINING

CATALOGUE = {**GENERAL, **AUTOGRAD, **FAILURES, **GRAPH, **PAGE, **TRAINING}
