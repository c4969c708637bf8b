"""A slow network: a TCP proxy that lets bytes of the server through at a limited rate."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

CHUNK = 1 << 15


class ThrottledProxy:
    """Listens on ``port`` and passes everything on to another port of this machine; answers at ``rate`` bytes a second."""

    def __init__(self, to_port: int, rate: float) -> None:
        self.to_port, self.rate = to_port, rate
        self.closed = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets: list[socket.socket] = [self.listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError):
            server = self._connected()
            self.sockets += [client, server]
            threading.Thread(target=self._pump, args=(client, server, 0.0), daemon=True).start()
            self._pump(server, client, self.rate)
        client.close()

    def _connected(self) -> socket.socket:
        """Waits until the server is up: a connection that is closed at once would fail its session."""
        while not self.closed.wait(0.05):
            with suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", self.to_port))
        raise OSError("closed before the server was up")

    def _pump(self, source: socket.socket, to: socket.socket, rate: float) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if rate:
                    self.closed.wait(len(data) / rate)
                to.sendall(data)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.closed.set()
        for each in self.sockets:
            each.close()
