"""What all tests share: they read English messages, whatever the language of the machine."""

import os

os.environ["PELLUCID_LANG"] = "en"  # for the programs that tests start, too
