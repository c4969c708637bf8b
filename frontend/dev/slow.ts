/** Made-up slow steps, for developing the page and for its tests. Not shipped. */
import type {
  CodeLine,
  GapProfile,
  GroupPeriod,
  RunStalls,
  SlowGroup,
  Stall,
  StallDetail,
  StallStacks,
} from "@/client/messages";

const START = 1_790_000_000;
const LIBRARY = "/usr/lib/python3/site-packages";

export function fakeLine(change: Partial<CodeLine> = {}): CodeLine {
  return {
    file: "/home/me/train.py",
    line: 88,
    function: "load_batch",
    kind: "script",
    owner: "",
    calls: "sort (numpy/_core/fromnumeric.py)",
    share: 0.83,
    doubtful: 0.08,
    ...change,
  };
}

export const saverLine = fakeLine({
  file: `${LIBRARY}/tensorflow/python/training/basic_session_run_hooks.py`,
  line: 620,
  function: "after_run",
  kind: "hook",
  owner: "CheckpointSaverHook",
  calls: "save (tensorflow/python/training/saver.py)",
  share: 0.17,
  doubtful: 0,
});

export function fakeStall(id: number, change: Partial<Stall> = {}): Stall {
  return {
    id,
    run_id: 1,
    step: 97 * id,
    call: 97 * id,
    step_text: `step ${97 * id}`,
    where: "between",
    started_at: START + id * 4,
    duration_s: 0.31,
    expected_s: 0.0012,
    cause: "hook",
    without_cpu: "",
    place: "CheckpointSaverHook (basic_session_run_hooks.py:620)",
    text: "The hook CheckpointSaverHook (basic_session_run_hooks.py:620)",
    evidence: ["The evidence for this cause covers 83% of the time."],
    uncertainty: "",
    lines: [saverLine],
    other_lines: [],
    parts: [
      { kind: "disk", duration_s: 0.25, usual_s: 0, what: "" },
      { kind: "python", duration_s: 0.059, usual_s: 0.0002, what: "" },
      { kind: "tensorflow", duration_s: 0.001, usual_s: 0.001, what: "" },
    ],
    others: [],
    samples: 60,
    trace_id: null,
    every: 97,
    ...change,
  };
}

export const fakePeriod: GroupPeriod = {
  run_id: 1,
  every: 97,
  where: "between",
  tolerance: 0,
  times: 3,
  duration_s: 0.31,
  cause: "hook",
  place: "CheckpointSaverHook (basic_session_run_hooks.py:620)",
  first_step: 97,
  last_step: 291,
  last_call: 291,
  next_step: 388,
  last_text: "step 291",
  next_text: "step 388",
  text: "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)",
};

export function fakeGroup(change: Partial<SlowGroup> = {}): SlowGroup {
  return {
    run_id: 1,
    cause: "hook",
    place: "CheckpointSaverHook (basic_session_run_hooks.py:620)",
    where: "between",
    times: 3,
    lost_s: 0.926,
    longest_s: 0.31,
    last_step: 291,
    last_call: 291,
    last_text: "step 291",
    periods: [fakePeriod],
    ended: false,
    stalls: [1, 3],
    trace_id: null,
    text: "Every 97th step: the hook CheckpointSaverHook (basic_session_run_hooks.py:620)",
    ...change,
  };
}

export function fakeRunStalls(change: Partial<RunStalls> = {}): RunStalls {
  return {
    run_id: 1,
    stalls: [
      fakeStall(1),
      fakeStall(2, {
        where: "inside",
        cause: "python",
        place: "load_batch() (train.py:88)",
        lines: [fakeLine()],
        trace_id: 2,
        every: null,
        step: 150,
        call: 150,
        step_text: "step 150",
      }),
      fakeStall(3),
    ],
    groups: [
      fakeGroup(),
      fakeGroup({
        cause: "python",
        place: "load_batch() (train.py:88)",
        where: "inside",
        times: 1,
        lost_s: 0.3088,
        last_step: 150,
        last_call: 150,
        last_text: "step 150",
        periods: [],
        stalls: [2],
        text: "Python code at load_batch() (train.py:88)",
      }),
    ],
    count: 3,
    periods: [fakePeriod],
    marks: [
      { kind: "gc", at: START + 5, duration_s: 0.012, step: 120, text: "Garbage collection of generation 2, 12 ms" },
      {
        kind: "host",
        at: START + 9,
        duration_s: 3,
        step: 210,
        text: "The training's thread had no CPU for 88% of the time",
      },
    ],
    changes: [{ step: 5001, before_s: 0.0412, after_s: 0.055 }],
    drift: null,
    median_s: 0.0412,
    p99_s: 0.0502,
    max_s: 0.213,
    ...change,
  };
}

/** main calls load_batch, which calls sort, which calls load_batch; a hook; another thread. */
export function fakeStacks(): StallStacks {
  const frame = (
    function_: string,
    file: string,
    kind: CodeLine["kind"],
    owner = "",
  ): StallStacks["frames"][number] => ({
    file,
    line: file ? 10 : 0,
    function: function_,
    kind,
    owner,
    source: function_ === "load_batch" ? "x = np.sort(load(path))" : "",
  });
  return {
    frames: [
      frame("MainThread", "", "thread"),
      frame("main", "/home/me/train.py", "script"),
      frame("load_batch", "/home/me/train.py", "script"),
      frame("sort", `${LIBRARY}/numpy/_core/fromnumeric.py`, "library"),
      frame("run", `${LIBRARY}/tensorflow/python/training/monitored_session.py`, "library"),
      frame("after_run", saverLine.file, "hook", "CheckpointSaverHook"),
      frame("reader", "", "thread"),
      frame("read", "/home/me/train.py", "script"),
    ],
    parent: [-1, 0, 1, 2, 3, 1, 5, -1, 7],
    frame: [0, 1, 2, 3, 2, 4, 5, 6, 7],
    seconds: [0, 0, 0, 0.2, 0.05, 0, 0.05, 0, 0.02],
    samples: [0, 0, 0, 40, 10, 0, 10, 0, 4],
    samples_left_out: 2,
  };
}

export function fakeDetail(id: number): StallDetail {
  const stall = fakeRunStalls().stalls.find((one) => one.id === id) ?? fakeStall(id);
  return { stall, stacks: fakeStacks() };
}

export function fakeGaps(change: Partial<GapProfile> = {}): GapProfile {
  return {
    run_id: 1,
    state: "ready",
    sampled_at: START + 20,
    duration_s: 10,
    steps: 500,
    samples: 60,
    late: 5,
    whole_turns: false,
    share: 0.3,
    gc_share: 0.1,
    lines: [fakeLine(), saverLine],
    python_lines: [fakeLine()],
    other_lines: [fakeLine({ function: "augment", line: 12, share: 1 })],
    text: "Between the steps: load_batch() (train.py:88) 83%, CheckpointSaverHook (basic_session_run_hooks.py:620) 17%.",
    ...change,
  };
}
