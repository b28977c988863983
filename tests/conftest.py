"""What all tests share, whatever the process that starts them has set."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with SIGINT ignored
