"""Handlers that answer about slow steps and the time between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tftracer.contract.encoding import encode
from tftracer.web.handlers import OK, ApiHandler


class SlowHandler(ApiHandler):
    """Sends what the session answers, read on a worker thread: it takes the session's lock, and may read the disk."""

    async def send_answer(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        packed, encoding = self.wants_msgpack(), self.accepted_encoding()
        await self.services.rate_limit.answer()
        await self.send_body(await self.quickly(lambda: encode(ask(), packed, encoding)))


class RunStallsHandler(SlowHandler):
    async def get(self, run: str) -> None:
        run_id = self.number(run, "run")
        await self.send_answer(lambda: self.services.source.run_stalls(run_id))


class StallsHandler(SlowHandler):
    async def get(self) -> None:
        await self.send_answer(self.services.source.all_stalls)


class StallHandler(SlowHandler):
    async def get(self, stall: str) -> None:
        stall_id = self.number(stall, "slow step")
        await self.send_answer(lambda: self.services.source.stall(stall_id))


class GapsHandler(SlowHandler):
    """The lines of the time between steps, and sampling them again."""

    async def get(self, run: str) -> None:
        run_id = self.number(run, "run")
        await self.send_answer(lambda: self.services.source.gaps(run_id))

    async def post(self, run: str) -> None:
        await self.quickly(self.services.source.sample_gaps, self.number(run, "run"))
        self.send_json(OK)
