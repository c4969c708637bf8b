"""Reopening a saved session from Python. From a terminal, ``tftracer session.tftrace`` does the same. Needs no TensorFlow.

python examples/load_session.py session.tftrace
"""

import argparse

from tftracer import TracingServer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("session_file")
    parser.add_argument("--no-wait", action="store_true", help="end at once")
    options = parser.parse_args()

    server = TracingServer()
    server.load_session(options.session_file)
    print(f"{options.session_file} is open at {server.url}", flush=True)
    if not options.no_wait:
        server.join()


if __name__ == "__main__":
    main()
