"""What all tests share, whatever the process that starts them has set."""

import os
import signal

os.environ.setdefault("LEASTACTION_GUARD", "1")  # guard zones around the arrays of native code (`backends.guarded`)
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with SIGINT ignored
