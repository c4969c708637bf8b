"""One process of a job, without TensorFlow: steps until its standard input closes; prints ``URL <url>`` once.

python rank.py RANK SIZE
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from local_jobs import Rank

from tftracer.job.hub import step_request
from tftracer.server import TracingServer

STEP_S = 0.02


def main() -> None:
    number = int(sys.argv[1])
    step_request.ANSWER_S = 60.0  # two cores are shared with the browser
    rank = Rank(TracingServer(server_port=0), number)
    stop = threading.Event()

    def train() -> None:
        while not stop.is_set():
            rank.step(STEP_S)

    training = threading.Thread(target=train, daemon=True)
    training.start()
    print("URL", rank.server.url, flush=True)
    sys.stdin.read()
    stop.set()
    training.join()
    rank.close()


if __name__ == "__main__":
    main()
