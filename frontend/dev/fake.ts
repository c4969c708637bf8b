/** A session without a server, for developing the page and for its tests. Not shipped. */
import { ClientError, type Client, type SessionState } from "@/client/client";
import type {
  Bookmark,
  Column,
  Finding,
  Job,
  JobTrace,
  Loaded,
  Run,
  Session,
  StepTimes,
  TraceRecord,
} from "@/client/messages";
import { fakeLedger } from "./ledger";
import { fakeMemory } from "./memory";
import { fakePipelines } from "./pipelines";
import { fakeDetail, fakeGaps, fakeRunStalls } from "./slow";
import { emptyState, type LiveState } from "@/client/reduce";

const START = 1_790_000_000;

export function fakeSession(change: Partial<Session> = {}): Session {
  return {
    id: "s1",
    host: "gpu-node-07",
    pid: 41235,
    rank: 0,
    place: { rank: 0, size: 4, local_rank: 0, role: "worker", task: 0, launcher: "horovod" },
    tensorflow: "2.15.1",
    tftracer: "2.0.0",
    python: "3.11.9",
    command: "train.py --model resnet50 --batch-size 64",
    processor: "AMD EPYC 7B13",
    gpus: 1,
    gpu_devices: [{ name: "Tesla V100-SXM2-16GB", compute_capability: "7.0" }],
    measured_roof: null,
    started_at: START,
    ended_at: null,
    no_steps: "",
    active: true,
    trace_all: false,
    live: true,
    file: "/tmp/tftracer/spool.tftrace",
    steps_lost: 0,
    slow_watch: "on",
    hook_cost_s: 2.3e-6,
    call_cost_s: 1.2e-6,
    problems: [],
    cut: "",
    damage: "",
    ...change,
  };
}

export const truncated: Finding = {
  code: "truncated",
  severity: "warning",
  message: "The trace has exactly 1,048,576 nodes: TensorFlow stops collecting there.",
  remedy: "Trace a shorter step, or fewer ops.",
};

export function fakeTrace(id: number, change: Partial<TraceRecord> = {}): TraceRecord {
  return {
    id,
    run_id: 1,
    step: id * 100,
    started_at: START + id * 60,
    duration_s: 0.061,
    median_s: 0.0412,
    nodes: 8009,
    bytes: 2_345_678,
    stored_bytes: 345_678,
    devices: ["/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"],
    asked_by: "user",
    findings: [],
    headline: "41% of the step waits for input: IteratorGetNext delivers a batch every 17 ms.",
    note: "",
    bookmarks: [],
    state: "ready",
    ...change,
  };
}

function noise(i: number): number {
  const x = Math.sin(i * 12.9898) * 43758.5453;
  return x - Math.floor(x);
}

export function fakeTimes(count: number, usual: number): number[] {
  return Array.from({ length: count }, (_, i) => usual * (0.94 + 0.12 * noise(i) + (i % 23 === 0 ? 0.5 : 0)));
}

export function fakeRun(id: number, change: Partial<Run> = {}): Run {
  const fetches = change.fetches ?? ["train_op", "loss", "global_step"];
  return {
    id,
    title: `${fetches.join(", ")} (feeding images, labels)`,
    fetches,
    feeds: ["images", "labels"],
    options: "",
    definition: "",
    steps: 12_345,
    origin: "",
    mean_s: 0.0421,
    p50_s: 0.0412,
    p95_s: 0.0467,
    p99_s: 0.0502,
    min_s: 0.0391,
    max_s: 0.213,
    last_s: 0.0415,
    first_run_at: START,
    last_run_at: START + 600,
    graph_on_request: false,
    pending_traces: 0,
    slow_steps: { count: 0, longest_s: null, lost_s: 0, last_at: null, text: "", trace_id: null, gaps_at: null },
    between_steps_s: 0.0012,
    traced_overhead_s: 0.0198,
    recent_s: fakeTimes(60, 0.0412),
    traces: [],
    ...change,
  };
}

function column(values: readonly number[], dtype: "f4" | "f8" | "u4"): Column {
  const array =
    dtype === "f8" ? new Float64Array(values) : dtype === "f4" ? new Float32Array(values) : new Uint32Array(values);
  return { dtype, data: new Uint8Array(array.buffer) };
}

/** Step times with a change half-way: 64 steps an entry to begin with, then one by one. */
export function fakeSteps(run: number, entries = 900): StepTimes {
  const count = Array.from({ length: entries }, (_, i) => (i < entries / 2 ? 16 : 1));
  const step: number[] = [];
  let next = 1;
  for (const n of count) {
    step.push(next);
    next += n;
  }
  const usual = step.map((s) => (s > (next * 2) / 3 ? 0.055 : 0.0412));
  const mean = usual.map((u, i) => u * (0.96 + 0.08 * noise(i)));
  const start = step.map((s) => START + s * 0.043);
  return {
    run_id: run,
    step: column(step, "f8"),
    count: column(count, "u4"),
    start_at: column(start, "f8"),
    mean_s: column(mean, "f4"),
    min_s: column(
      mean.map((m, i) => (count[i] === 1 ? m : m * 0.9)),
      "f4",
    ),
    max_s: column(
      mean.map((m, i) => (count[i] === 1 ? m : m * (1.2 + noise(i * 7)))),
      "f4",
    ),
    traced: column([100, 200, 7000], "f8"),
  };
}

export const fakeJob: Job = {
  name: "resnet50",
  hub: "http://gpu-node-07:9998/",
  is_hub: true,
  processes: Array.from({ length: 4 }, (_, i) => ({
    id: `p${i}`,
    title: `rank ${i}`,
    host: `gpu-node-0${7 + (i >> 1)}`,
    pid: 41235 + i,
    place: { rank: i, size: 4, local_rank: i % 2, role: "worker", task: i, launcher: "horovod" },
    clock: `machine${i >> 1}`,
    state: i === 3 ? ("lost" as const) : ("alive" as const),
    url: `/job/processes/p${i}/`,
    steps: 12_345 - i,
    steps_per_s: i === 3 ? null : 23.4 - i,
    mean_s: 0.0421 + i * 0.001,
    between_steps_s: i === 1 ? 0.0214 : 0.0003,
    last_seen_at: START + 600 - (i === 3 ? 120 : 0),
    traces: 2,
    slow_steps: i === 2 ? 3 : 0,
    slow_text: i === 2 ? "Every 97th step: 310 ms before the step, CheckpointSaverHook" : "",
    time_s: (i === 3 ? {} : { start: 60, input: i === 1 ? 300 : 20, steps: 500 - 10 * i }) as Record<string, number>,
    problem: i === 3 ? "Nothing was heard of it for two minutes; is its host up?" : "",
  })),
  traces: [
    {
      id: 1,
      title: "Step 4,000 on all ranks",
      step: 4000,
      run_title: "train_op, loss",
      asked_at: START + 300,
      state: "partial",
      processes: ["p0", "p1", "p2", "p3"],
      ready: ["p0", "p1", "p2"],
      missing: { p3: "it does not answer" },
      steps: {},
    },
  ],
};

export function fakeState(change: Partial<LiveState> = {}): LiveState {
  return { ...emptyState, connection: "open", session: fakeSession(), runs: [fakeRun(1)], ...change };
}

/** Answers what the tests ask; remembers what was asked of it. */
export class FakeClient implements Client {
  can = { control: true, notes: true, files: true, job: true };
  readonly calls: string[] = [];
  /** What the next call fails with. */
  failure: ClientError | null = null;
  runStalls = fakeRunStalls();
  gaps = fakeGaps();
  ledger = fakeLedger();
  pipelines = fakePipelines();
  memory = fakeMemory();
  private readonly listeners = new Set<(state: SessionState) => void>();

  constructor(public state: SessionState = fakeState()) {}

  change(change: Partial<SessionState>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener(this.state);
  }

  private done<T>(call: string, value: T): Promise<T> {
    this.calls.push(call);
    const { failure } = this;
    this.failure = null;
    return failure ? Promise.reject(failure) : Promise.resolve(value);
  }

  /** What it knows of slow steps and of the process: a new object each time, as a server's is. */
  answers(path: string): unknown {
    if (/^runs\/\d+\/stalls$/.test(path)) return this.runStalls;
    if (path === "ledger") return structuredClone(this.ledger);
    if (path === "input-pipelines") return structuredClone(this.pipelines);
    if (path === "memory-growth") return structuredClone(this.memory);
    if (/^runs\/\d+\/gaps$/.test(path)) return this.gaps;
    const stall = /^stalls\/(\d+)$/.exec(path);
    if (path === "../job/processes/p2/api/stalls") return { ...this.runStalls, count: 3 };
    return stall ? fakeDetail(Number(stall[1])) : null;
  }

  private unknown(): Promise<never> {
    return Promise.reject(new ClientError(404, "unknown", "There is no trace 99: this one is made up."));
  }

  analysis = (): Promise<never> => this.unknown();
  get = <T>(path: string): Promise<T> => {
    const answer = this.answers(path);
    return answer === null ? this.unknown() : Promise.resolve(answer as T);
  };
  steps = (run: number): Promise<StepTimes> => this.done(`steps ${run}`, fakeSteps(run));
  requestTraces = (run: number, steps: number, withGraph = false): Promise<void> =>
    this.done(`trace ${run} ${steps}${withGraph ? " with its graph" : ""}`, undefined);
  sampleGaps = (run: number): Promise<void> => this.done(`gaps ${run}`, undefined);
  setTraceAll = (on: boolean): Promise<void> => this.done(`trace all ${on}`, undefined);
  setNote = (trace: number, note: string): Promise<TraceRecord> =>
    this.done(`note ${trace} ${note}`, fakeTrace(trace, { note }));
  setBookmarks = (trace: number, bookmarks: readonly Bookmark[]): Promise<TraceRecord> =>
    this.done(`bookmarks ${trace}`, fakeTrace(trace, { bookmarks: [...bookmarks] }));
  traceJob = (request: object): Promise<JobTrace> =>
    this.done(`job ${JSON.stringify(request)}`, { ...fakeJob.traces[0]!, id: 9, state: "pending", ready: [] });
  saveSession = (): Promise<{ blob: Blob; name: string }> =>
    this.done("save", { blob: new Blob(["x"]), name: "session.tftrace" });
  loadSession = (file: File): Promise<Loaded> =>
    this.done(`load ${file.name}`, { ok: true, runs: 1, traces: 2, cut: "", damage: "" });
  shutdown = (): Promise<void> => this.done("shutdown", undefined);
  signOutAll = (): Promise<void> => this.done("sign out", undefined);
  downloadTrace = (trace: number, format: string): Promise<void> => this.done(`download ${trace} ${format}`, undefined);
  downloadJob = (): Promise<void> => this.done("download the job", undefined);

  subscribe(listener: (state: SessionState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  connect(): void {
    this.calls.push("connect");
  }

  close(): void {
    this.calls.push("close");
  }
}
