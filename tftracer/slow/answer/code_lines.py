"""Converts sampled stacks to lines of code with their shares of the time, and to a tree for a flame graph. No side effects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from tftracer.contract.stalls import CodeKind, CodeLine, StackFrame, StallStacks
from tftracer.slow.watch_results import FoldedStack, Frame

#: Maximum number of lines in a list, and of nodes in a tree. Samples for which the tree has no room are only counted.
MAX_LINES, MAX_NODES = 30, 4000
#: Folders of installed packages; the path after them is shown.
_ROOTS = ("/site-packages/", "/dist-packages/")


def code_lines(stacks: Sequence[FoldedStack], whole_s: float | None = None) -> list[CodeLine]:
    """Return the innermost line of the script in each stack, by descending share of ``whole_s`` seconds.

    All lines of one hook or callback are one entry. ``whole_s``: by default the sum of the stacks' seconds.
    """
    whole = whole_s or sum(stack.seconds for stack in stacks)
    groups: dict[tuple[str, str, int], list[tuple[FoldedStack, int]]] = {}
    for stack in stacks:
        if stack.frames:
            position = _script_position(stack.frames)
            groups.setdefault(_key(stack.frames[position]), []).append((stack, position))
    lines = [_line(group, whole) for group in groups.values() if whole > 0]
    return sorted(lines, key=lambda line: -line["share"])[:MAX_LINES]


def _script_position(frames: tuple[Frame, ...]) -> int:
    """Return the position of the innermost frame of the script, a hook or a callback; if there is none, the last position."""
    positions = [position for position, frame in enumerate(frames) if frame.owner or not frame.is_library]
    return positions[-1] if positions else len(frames) - 1


def _key(frame: Frame) -> tuple[str, str, int]:
    """Return the key by which lines are grouped: the class of the hook or callback if there is one, else file and line."""
    return (frame.owner, "", 0) if frame.owner else ("", frame.file, frame.line)


def _line(group: list[tuple[FoldedStack, int]], whole_s: float) -> CodeLine:
    """Return the entry for a group of stacks, each with the position of its script's frame (``_script_position``).

    ``whole_s``: the seconds of which the entry has a share.
    """
    seconds, seconds_of_called, seconds_of_frame = 0.0, dict[str, float](), dict[Frame, float]()
    for stack, position in group:
        seconds += stack.seconds
        frame, innermost = stack.frames[position], stack.frames[-1]
        seconds_of_frame[frame] = seconds_of_frame.get(frame, 0.0) + stack.seconds
        called = called_text(innermost) if position < len(stack.frames) - 1 else ""
        seconds_of_called[called] = seconds_of_called.get(called, 0.0) + stack.seconds
    frame = max(seconds_of_frame, key=lambda each: seconds_of_frame[each])
    return {
        "file": frame.file,
        "line": frame.line,
        "function": frame.function,
        "kind": kind_of(frame),
        "owner": frame.owner,
        "calls": max(seconds_of_called, key=lambda each: seconds_of_called[each]),
        "share": min(seconds / whole_s, 1.0),
        "doubtful": 0.0,
    }


def kind_of(frame: Frame) -> CodeKind:
    if frame.owner:
        return "hook"
    return "library" if frame.is_library else "script"


def called_text(frame: Frame) -> str:
    """Return the function and its file: "sort (numpy/_core/fromnumeric.py)"."""
    path = frame.file.replace("\\", "/")
    root = next((root for root in _ROOTS if root in path), None)
    short = path.rpartition(root)[2] if root else PurePosixPath(path).name
    return f"{frame.function} ({short})" if short else frame.function


def stack_tree(stacks: Sequence[FoldedStack]) -> StallStacks:
    """Return the stacks as a tree of at most MAX_NODES nodes: a root for each thread, and below it the frames."""
    tree = _Tree()
    for stack in stacks:
        tree.add(stack)
    return tree.stacks


class _Tree:
    def __init__(self) -> None:
        self.stacks: StallStacks = {"frames": [], "parent": [], "frame": [], "seconds": [], "samples": [], "samples_left_out": 0}
        self._frames: dict[Frame | str, int] = {}  # frame, or name of a thread -> its index in "frames"
        self._nodes: dict[tuple[int, int], int] = {}  # (index of the parent node, index of the frame) -> index of the node

    def add(self, stack: FoldedStack) -> None:
        """Add a stack. If the tree has no room for it, its samples are counted as left out."""
        if len(self.stacks["parent"]) + len(stack.frames) + 1 > MAX_NODES:
            self.stacks["samples_left_out"] += stack.samples
            return
        node = self._node(-1, stack.thread, _thread_frame(stack.thread))
        for frame in stack.frames:
            node = self._node(node, frame, _stack_frame(frame))
        self.stacks["seconds"][node] += stack.seconds
        self.stacks["samples"][node] += stack.samples

    def _node(self, parent: int, key: Frame | str, frame: StackFrame) -> int:
        """Return the index of the node of a frame below a parent (-1: none). Add the node and the frame if they are new."""
        number = self._frames.setdefault(key, len(self.stacks["frames"]))
        if number == len(self.stacks["frames"]):
            self.stacks["frames"].append(frame)
        node = self._nodes.setdefault((parent, number), len(self.stacks["parent"]))
        if node == len(self.stacks["parent"]):
            for name, value in (("parent", parent), ("frame", number), ("seconds", 0.0), ("samples", 0)):
                self.stacks[name].append(value)  # type: ignore[literal-required]
        return node


def _thread_frame(name: str) -> StackFrame:
    return {"file": "", "line": 0, "function": name, "kind": "thread", "owner": "", "source": ""}


def _stack_frame(frame: Frame) -> StackFrame:
    kind = kind_of(frame)
    return {"file": frame.file, "line": frame.line, "function": frame.function, "kind": kind, "owner": frame.owner, "source": ""}
