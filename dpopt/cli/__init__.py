"""The command line; what it exits with stands at the end of ``dpopt --help``."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from dpopt.cli.group import cli

__all__ = ["cli", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    interrupts = _Interrupts()
    try:
        # All is loaded in here, for that is when impatient users press Ctrl-C.
        from dpopt.cli.group import run

        code, sentence = run(arguments)
    except BaseException as error:
        # Libraries that are interrupted while they load may turn it into errors of their own.
        if not (isinstance(error, KeyboardInterrupt) or interrupts.count):
            raise
        code, sentence = 130, "interrupted."
    finally:
        interrupts.stop()
    if sentence and sys.stderr is not None:
        try:
            sys.stderr.write(f"{sentence}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            # The exit code still says it.
            sys.stderr = None
    sys.exit(code)


def __getattr__(name: str) -> object:
    if name == "cli":
        from dpopt.cli.group import loaded

        return loaded()
    raise AttributeError(f"module 'dpopt.cli' has no attribute {name!r}")


class _Interrupts:
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
