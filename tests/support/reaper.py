"""Kills what a test run started if the run itself is killed before it can clean up."""

import subprocess
from functools import cache

# Reads "+pid" and "-pid" lines; when the pipe closes, because this process is gone for whatever
# reason, it kills every process still on its list.
_SCRIPT = """
pids=""
while read -r line; do
  pid="${line#?}"
  case "$line" in
    +*) pids="$pids $pid" ;;
    -*) kept=""
        for each in $pids; do [ "$each" = "$pid" ] || kept="$kept $each"; done
        pids="$kept" ;;
  esac
done
for each in $pids; do kill -9 "$each" 2>/dev/null; done
"""


class Reaper:
    """A small shell process that outlives this one just long enough to kill its servers."""

    def __init__(self) -> None:
        # A session of its own: a signal to our process group must not stop it first.
        self._shell = subprocess.Popen(
            ["sh", "-c", _SCRIPT], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def watch(self, pid: int) -> None:
        """Kill that process when this one ends."""
        self._say(f"+{pid}")

    def forget(self, pid: int) -> None:
        """That process has ended; its number may belong to another soon."""
        self._say(f"-{pid}")

    def close(self) -> None:
        """End as if this process had ended: what is still watched is killed."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(timeout=60)

    def _say(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(line + "\n")
        self._shell.stdin.flush()


@cache
def shared_reaper() -> Reaper:
    """Give the one reaper of this process."""
    return Reaper()
