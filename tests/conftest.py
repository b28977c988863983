"""What all tests share, whatever the process that starts them has set."""

import os
import signal
from pathlib import Path

os.environ.setdefault("LEASTACTION_GUARD", "1")  # guard zones around the arrays of native code (`backends.guarded`)
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with SIGINT ignored

# Processes that tests start find the helpers, as tests do (`pythonpath` in pyproject.toml).
HELPERS = str(Path(__file__).parent / "helpers")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HELPERS, os.environ.get("PYTHONPATH")]))
