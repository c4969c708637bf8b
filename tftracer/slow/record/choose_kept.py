"""Chooses which slow steps of one run are kept in bounded memory."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

#: Maximum number of slow steps of one run that are kept: the newest, older ones, and the newest older ones whose step was traced,
#: because a trace shows the cause.
MAX_NEWEST, MAX_OLDER, MAX_TRACED = 40, 260, 40
#: Of the older ones, those of each group that are kept whatever the others cost, as long as MAX_OLDER allows: the newest, and
#: the costliest of the rest.
NEWEST_OF_GROUP, COSTLIEST_OF_GROUP = 5, 10


@dataclass
class _Group:
    """The older slow steps of one cause at one line, or at the steps of one cause's periods, that are kept."""

    newest: deque[tuple[float, int]] = field(default_factory=deque)  # (seconds lost, id)
    costliest: list[tuple[float, int]] = field(default_factory=list)  # the others, as a heap

    def __len__(self) -> int:
        return len(self.newest) + len(self.costliest)


@dataclass
class KeptSteps:
    """The slow steps of one run that are kept: either those of cause "machine" (no CPU), or all others.

    Of too many older ones, the cheapest is dropped of all groups that have more than their share. So neither what comes often
    nor short ones of unknown cause replace those that came once.
    """

    newest: deque[int] = field(default_factory=deque)  # ids
    traced: deque[int] = field(default_factory=deque)  # ids of older slow steps whose step was traced
    _groups: dict[Hashable, _Group] = field(default_factory=dict)  # of the other older slow steps

    def ids(self) -> Iterator[int]:
        yield from self.newest
        yield from self.traced
        for group in self._groups.values():
            yield from (stall_id for _, stall_id in (*group.newest, *group.costliest))

    def add_older(self, stall_id: int, lost_s: float, keys: Sequence[Hashable]) -> int | None:
        """Add an older slow step, and return the id of the one to drop if there are too many; else None.

        ``keys``: the groups of its causes; it counts in the one with the fewest steps, of equal ones in the last.
        """
        key = min(reversed(keys), key=lambda each: len(self._groups.get(each, ())))
        group = self._groups.setdefault(key, _Group())
        group.newest.append((lost_s, stall_id))
        if len(group.newest) > NEWEST_OF_GROUP:
            heapq.heappush(group.costliest, group.newest.popleft())
        return self._drop() if sum(map(len, self._groups.values())) > MAX_OLDER else None

    def _drop(self) -> int:
        ample = [key for key, group in self._groups.items() if len(group.costliest) > COSTLIEST_OF_GROUP]
        if ample:
            key = min(ample, key=lambda each: self._groups[each].costliest[0])
        else:
            key = max(self._groups, key=lambda each: len(self._groups[each]))
        group = self._groups[key]
        _, stall_id = heapq.heappop(group.costliest) if group.costliest else group.newest.popleft()
        if not len(group):
            del self._groups[key]
        return stall_id
