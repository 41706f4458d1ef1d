"""A user's mistake, as opposed to a fault of the program: told in one line, without a traceback."""

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # what shells report for a program ended by Ctrl-C


class UsageError(Exception):
    """Arguments, a file or a device that cannot be used. Its text is the one line that the user reads."""
