"""Handlers that answer about slow steps, the time between steps, and where all of the time went."""

from __future__ import annotations

from tftracer.web.handlers import OK, ApiHandler


class RunStallsHandler(ApiHandler):
    async def get(self, run: str) -> None:
        run_id = self.number(run, "run")
        await self.send_encoded(lambda: self.services.source.run_stalls(run_id), self.wants_msgpack())


class StallsHandler(ApiHandler):
    async def get(self) -> None:
        await self.send_encoded(self.services.source.all_stalls, self.wants_msgpack())


class StallHandler(ApiHandler):
    async def get(self, stall: str) -> None:
        stall_id = self.number(stall, "slow step")
        await self.send_encoded(lambda: self.services.source.stall(stall_id), self.wants_msgpack())


class LedgerHandler(ApiHandler):
    async def get(self) -> None:
        await self.send_encoded(self.services.source.ledger, self.wants_msgpack())


class InputPipelinesHandler(ApiHandler):
    async def get(self) -> None:
        await self.send_encoded(self.services.source.input_pipelines, self.wants_msgpack())


class MemoryGrowthHandler(ApiHandler):
    async def get(self) -> None:
        await self.send_encoded(self.services.source.memory_growth, self.wants_msgpack())


class GapsHandler(ApiHandler):
    """The lines of the time between steps, and sampling them again."""

    async def get(self, run: str) -> None:
        run_id = self.number(run, "run")
        await self.send_encoded(lambda: self.services.source.gaps(run_id), self.wants_msgpack())

    async def post(self, run: str) -> None:
        await self.quickly(self.services.source.sample_gaps, self.number(run, "run"))
        self.send_json(OK)
