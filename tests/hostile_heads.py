"""Request heads that a stranger sends to hold the training's process, and a server of its own that gets them all.

Run as a program: it serves, sends each head through a real socket and reads the answer. The kernel kills it once one head has
taken more than a second or two of processor time; its last line of output is the head that did.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import sys
import time
from collections.abc import Callable

from web_client import serving

from tftracer.web.flood_limit import MAX_HEAD_BYTES


def _one_line(start: str, piece: str, end: str = "x") -> Callable[[int], str]:
    return lambda size: f"GET / HTTP/1.1\r\n{start}{piece * ((size - len(start) - 40) // len(piece))}{end}"


def _target(start: str, piece: str) -> Callable[[int], str]:
    return lambda size: f"GET {start}{piece * ((size - len(start) - 40) // len(piece))} HTTP/1.1"


#: Each makes a head of about the given size, without its blank line.
HEADS: dict[str, Callable[[int], str]] = {
    "a bearer of blanks, then another line": _one_line("Authorization: bearer", " ", "\rx"),
    "a bearer of blanks and tabs": _one_line("Authorization: bearer", " \t", "\rx"),
    "a bearer of carriage returns": _one_line("Authorization: bearer ", "\r"),
    "many bearers": _one_line("", "Authorization: bearer x\r\n", "a: b"),
    "many bearers of blanks": _one_line("", "Authorization: bearer          \r\r\n", "a: b"),
    "an agent of blanks": _one_line("Authorization: tftracer-agent", " ", "\rx"),
    "an agent of words": _one_line("Authorization: tftracer-agent ", "a ", "\rx"),
    "many agents": _one_line("", "Authorization: tftracer-agent a b\r\n", "a: b"),
    "a cookie of semicolons": _one_line("Cookie: ", ";"),
    "a cookie of names": _one_line("Cookie: ", "tftracer-1-=;"),
    "a cookie of equals signs": _one_line("Cookie: ", "="),
    "a quoted cookie of backslashes": _one_line('Cookie: a="', "\\", '"'),
    "many cookies": _one_line("", "Cookie: a\r\n", "a: b"),
    "many short lines": _one_line("", "a:\r\n", "a: b"),
    "many names": lambda size: "GET / HTTP/1.1\r\n" + "\r\n".join(f"a{n}:" for n in range(size // 9)),
    "folded lines": _one_line("a: b\r\n", " c\r\n", "a: b"),
    "bare carriage returns": _one_line("a: ", "\r"),
    "a name without end": _one_line("", "a", ": b"),
    "a target of question marks": _target("/?", "?"),
    "a target of ampersands": _target("/?", "&"),
    "a target of tokens": _target("/?", "token=&"),
    "a token of percent signs": _target("/?token=", "%"),
    "a token of escapes": _target("/?token=", "%e4"),
    "a target of slashes": _target("/", "/"),
    "a path of dots": _target("/", "../"),
    "a forwarded path": _one_line("X-Forwarded-For: ", "1,"),
    "origins": _one_line("Origin: http://", "a."),
    "a host of dots": _one_line("Host: ", "."),
    "a host of brackets": _one_line("Host: ", "["),
    "subprotocols": _one_line("Sec-WebSocket-Protocol: ", "key.,"),
    "encodings": _one_line("Accept-Encoding: ", "gzip;q=0,"),
    "ranges": _one_line("Range: bytes=", "0-,"),
    "a length of digits": lambda size: f"POST /login HTTP/1.1\r\nContent-Length: {'9' * (size - 60)}",
    "a superscript length": lambda size: "POST /login HTTP/1.1\r\nContent-Length: \xb2",
    "a form's boundary": lambda size: (
        "POST /login HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=" + "a;" * (size // 2 - 50)
    ),
    "no method": lambda size: " " * (size - 50),
    "zeros": lambda size: "\0" * (size - 50),
}


def answer_to(port: int, head: str) -> bytes:
    """What comes back until the server closes; nothing where it closes at once."""
    received = b""
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=600) as one:
        host = "" if "\nHost:" in head else f"\r\nHost: 127.0.0.1:{port}"
        one.sendall(f"{head}{host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        while data := one.recv(1 << 16):
            received += data
    return received


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for name, head in HEADS.items():
        with serving() as client:  # each its own: one server makes strangers with such heads wait
            for size in (1_300, MAX_HEAD_BYTES // 2, MAX_HEAD_BYTES - 200):
                before = time.process_time()
                resource.setrlimit(resource.RLIMIT_CPU, (int(before) + 2, hard))
                print(name, size, end=" ", flush=True)
                answer = answer_to(client.server.port, head(size))
                status = answer.partition(b"\r\n")[0].decode()
                print(f"{status!r} after {time.process_time() - before:.3f} s of CPU", flush=True)
                if b" 500 " in answer[:20]:
                    sys.exit(f"{name}: the server failed")


if __name__ == "__main__":
    main()
