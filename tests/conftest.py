"""What holds for all tests."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So does a shell start what it puts into the background; whatever the tests start and interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
