"""Ctrl-C while the command line runs."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class Interrupts:
    """Counts the Ctrl-C since it was made, each of which raises KeyboardInterrupt as ever."""

    def __init__(self) -> None:
        self.count = 0
        self.hook = sys.unraisablehook
        self.own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            if self.own:
                signal.signal(signal.SIGINT, self._interrupt)
                sys.unraisablehook = self._unraisable
        except ValueError:
            # Only the main thread may; another one is not interrupted either.
            self.own = False

    def stop(self) -> None:
        """Leave Ctrl-C as it was."""
        if self.own:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = self.hook

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1
        raise KeyboardInterrupt

    def _unraisable(self, event: sys.UnraisableHookArgs) -> None:
        """Interrupt again, shortly, what was interrupted where Python raises nothing."""
        if not issubclass(event.exc_type, KeyboardInterrupt):
            self.hook(event)
            return
        from threading import Timer

        timer = Timer(0.02, signal.raise_signal, (signal.SIGINT,))
        timer.daemon = True
        timer.start()
