"""What all tests share: English messages, whatever the language of the machine, and the same kernels from the first run on."""

import os

os.environ["PELLUCID_LANG"] = "en"  # for the programs that tests start, too
os.environ["PELLUCID_KERNELS"] = "wait"
