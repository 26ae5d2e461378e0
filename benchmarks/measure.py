"""Wall time, CPU time and peak memory of a command: ``python measure.py COMMAND...`` prints JSON.

A process of its own that imports little: the peak of a child counts from that of its parent.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time


def main() -> None:
    start = time.perf_counter()
    code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
    wall = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    json.dump({"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": peak}, sys.stdout)
    sys.exit(code)


if __name__ == "__main__":
    main()
