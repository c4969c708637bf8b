// Generated from tftracer/contract/ by `make frontend-types`. Do not edit.

/** A NumPy array on the wire: little-endian, C order. dtype: u1 u2 u4 i1 i2 i4 f4 f8 (never 64-bit integers). */
export interface Column {
  dtype: "u1" | "u2" | "u4" | "i1" | "i2" | "i4" | "f4" | "f8";
  data: Uint8Array;
}

/** Distinct strings as one UTF-8 blob; string i is at offsets[i] : offsets[i + 1]. */
export interface Strings {
  data: Uint8Array;
  offsets: Column;
}

export interface ErrorBody {
  code: string;
  message: string;
}

export interface ErrorMessage {
  error: ErrorBody;
}

/** Something that a trace lacks or that makes it doubtful, with its remedy. */
export interface Finding {
  /** e.g. "truncated", "no_gpu_events", "no_partition_graph", "bad_times", "devices_hidden" */
  code: string;
  severity: "info" | "warning" | "error";
  message: string;
  remedy: string;
}

/** What made a step, or the time before it, long (docs/slow_steps.rst). "unknown": no measurement shows the cause. */
export type StallCause = "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";

/** Which threads had no CPU, if that is the cause. "own": the thread of the step. "any": threads of the process, such as those that execute TensorFlow's ops. "": another cause, or not known. */
export type WithoutCpu = "" | "own" | "any";

/** What a part of a slow turn's time is. The parts of a turn add up to its length. tensorflow: inside the step. py_function: inside the step, in Python that TensorFlow called. other_run: steps of other runs. input: the thread waited for the next element of a dataset. checkpoint: a checkpoint was saved or restored. retrace: a call in which TensorFlow traced its function again. python: the training thread ran Python code. no_cpu: the thread was ready to run but had no CPU. lock: it waited for Python's lock. gc: garbage collection. wait: it slept, or waited for a lock, a queue or the network. disk: it waited for a disk. stopped: the process was stopped. unknown: not measured. */
export type PartKind = "tensorflow" | "py_function" | "other_run" | "input" | "checkpoint" | "retrace" | "python" | "no_cpu" | "lock" | "gc" | "wait" | "disk" | "stopped" | "unknown";

/** Whose code a line is. "hook": a method of another SessionRunHook or of a Keras callback. */
export type CodeKind = "script" | "library" | "hook" | "thread";

export type MarkKind = "gc" | "checkpoint" | "host";

/** Where a slow step's time was: inside session.run or the compiled function, or between the previous step and this one. */
export type Place = "inside" | "between";

/** The state of a gap profile. "none": never sampled. */
export type GapState = "none" | "sampling" | "ready";

/** A line of Python code and its share of the time: the innermost line of the script, including the functions that it called. */
export interface CodeLine {
  file: string;
  line: number;
  function: string;
  kind: "script" | "library" | "hook" | "thread";
  /** the class of the hook or callback: "CheckpointSaverHook"; "" for other code */
  owner: string;
  /** the function that it called for most of the time: "sort (numpy/_core/fromnumeric.py)"; "" if it called none */
  calls: string;
  /** from 0 to 1 */
  share: number;
  /** the part of ``share`` that was sampled late and may belong to another line; 0 except in old files */
  doubtful: number;
}

/** A part of a slow turn's time. The parts add up to the turn: from the end of one step to the end of the next. */
export interface StallPart {
  kind: "tensorflow" | "py_function" | "other_run" | "input" | "checkpoint" | "retrace" | "python" | "no_cpu" | "lock" | "gc" | "wait" | "disk" | "stopped" | "unknown";
  duration_s: number;
  /** its usual length; None: not known */
  usual_s: number | null;
  /** "evaluate: convnet, 100 steps", "thread serializer, in dumps() (encoder.py:200)"; "" if nothing is known */
  what: string;
}

/** Another cause of a slow step, which took a part of its time. */
export interface OtherCause {
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  /** as in Stall */
  place: string;
  /** beyond the usual */
  duration_s: number;
}

/** A step, or the time before it, that took far longer than usual. */
export interface Stall {
  id: number;
  run_id: number;
  /** the slow step, or the step after the slow gap; None: not known */
  step: number | null;
  /** its number among the calls of all signatures of its function; 0: not known */
  call: number;
  /** "step 97", "step 26 (call 2,211 of all signatures)", "a step" */
  step_text: string;
  where: "inside" | "between";
  started_at: number;
  duration_s: number;
  /** the median of the run when it happened */
  expected_s: number | null;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  /** "" in files of older versions */
  without_cpu: "" | "own" | "any";
  /** the code that took the time: "CheckpointSaverHook (basic_session_run_hooks.py:620)"; "" if not known */
  place: string;
  /** the cause in words */
  text: string;
  /** sentences about the measurements */
  evidence: string[];
  /** why the cause is uncertain; "" if it is not */
  uncertainty: string;
  /** lines of the training's thread, by share */
  lines: CodeLine[];
  /** lines of other threads */
  other_lines: CodeLine[];
  /** first the part that exceeds its usual length most; [] in files of older versions */
  parts: StallPart[];
  /** what else took much of it; [] in files of older versions */
  others: OtherCause[];
  samples: number;
  /** the trace of this step, if there is one */
  trace_id: number | null;
  /** length of its period in steps; None: no period was found */
  every: number | null;
}

export interface StackFrame {
  /** "" for a thread */
  file: string;
  line: number;
  /** or the thread's name */
  function: string;
  kind: "script" | "library" | "hook" | "thread";
  owner: string;
  /** the line's text; "" unless the page is live and the file has not changed since the session began */
  source: string;
}

/** The samples of a slow step as a tree; a root is a thread. Node i was the innermost frame for ``seconds[i]``. */
export interface StallStacks {
  frames: StackFrame[];
  /** index of an earlier node; -1: a root */
  parent: number[];
  /** index into ``frames`` */
  frame: number[];
  seconds: number[];
  samples: number[];
  /** number of samples for which the tree had no room */
  samples_left_out: number;
}

/** One slow step with its stacks (GET /api/stalls/ID). */
export interface StallDetail {
  stall: Stall;
  stacks: StallStacks;
}

/** Slow steps of a run that come again after the same number of steps. */
export interface Period {
  run_id: number;
  /** the distance in steps */
  every: number;
  where: "inside" | "between";
  /** as in Stall */
  place: string;
  /** number of steps by which a distance may differ from ``every`` */
  tolerance: number;
  /** number of slow steps */
  times: number;
  /** their median duration */
  duration_s: number;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  /** 0: not known */
  first_step: number;
  last_step: number;
  /** call of the last slow step, as in Stall; 0: not known */
  last_call: number;
  /** the next step that is expected to be slow; None: the period has ended */
  next_step: number | null;
  /** "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)" */
  text: string;
}

/** A period with texts that name its steps. They name calls instead if other signatures of the function have steps, too. */
export interface GroupPeriod {
  run_id: number;
  every: number;
  where: "inside" | "between";
  place: string;
  tolerance: number;
  times: number;
  duration_s: number;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  first_step: number;
  last_step: number;
  last_call: number;
  next_step: number | null;
  text: string;
  /** "step 291", "step 26 (call 2,211 of all signatures)" */
  last_text: string;
  /** "step 388", "call 2,261 of all signatures"; "" if the period has ended */
  next_text: string;
}

/** Something that happened in the process or on its machine, for the step history. */
export interface Mark {
  kind: "gc" | "checkpoint" | "host";
  at: number;
  duration_s: number | null;
  /** step of the shown run: the step in which or before which it happened */
  step: number | null;
  text: string;
}

/** A lasting change of the usual step time. */
export interface StepChange {
  /** the first step after the change */
  step: number;
  /** median before */
  before_s: number;
  /** median after */
  after_s: number;
}

/** A slow change of the usual step time. */
export interface Drift {
  first_step: number;
  last_step: number;
  /** median at the beginning */
  first_s: number;
  /** median at the end */
  last_s: number;
}

/** All slow steps of a run with the same cause at the same place, including those that were dropped. */
export interface SlowKind {
  run_id: number;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  /** as in Stall; for a hook or callback, with the lines of all of these slow steps */
  place: string;
  where: "inside" | "between";
  /** number of slow steps */
  times: number;
  /** sum of their durations */
  duration_s: number;
  /** sum of the times beyond the usual */
  lost_s: number;
  longest_s: number;
  first_step: number | null;
  last_step: number | null;
  /** the highest number of a call, as in Stall */
  last_call: number | null;
  /** when the newest slow step began */
  last_at: number;
}

/** A group of slow steps as the page lists it: of one kind, or of one period whose cause is not known. */
export interface SlowGroup {
  run_id: number;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  place: string;
  where: "inside" | "between";
  times: number;
  lost_s: number;
  longest_s: number;
  last_step: number | null;
  /** as in SlowKind */
  last_call: number | null;
  /** "step 291", as Stall.step_text; "" if not known */
  last_text: string;
  /** its periods, the most frequent first; [] if none is proven */
  periods: GroupPeriod[];
  /** whether all its periods have ended; without a period: whether no slow step came for a long time */
  ended: boolean;
  /** ids of its slow steps that are kept, those that lost the most time first */
  stalls: number[];
  /** its newest trace, if a trace explains more than the text */
  trace_id: number | null;
  /** "Every 97th step: waiting at load() (train.py:31)" */
  text: string;
}

/** What was slow in a run (GET /api/runs/ID/stalls). */
export interface RunStalls {
  run_id: number;
  /** the slow steps that lost the most time and the newest; oldest first */
  stalls: Stall[];
  /** number of all slow steps */
  count: number;
  /** by lost time; last those that ended, lost little, or whose cause is unknown or the machine */
  groups: SlowGroup[];
  periods: Period[];
  marks: Mark[];
  changes: StepChange[];
  drift: Drift | null;
  median_s: number | null;
  p99_s: number | null;
  max_s: number | null;
}

/** The slow steps of all runs (GET /api/stalls). */
export interface StallList {
  /** the slow steps that lost the most time and the newest; oldest first */
  stalls: Stall[];
  count: number;
  /** the groups of all runs, run by run */
  groups: SlowGroup[];
  /** the longest first */
  periods: Period[];
}

/** A summary of a run's slow steps, in the run's record. */
export interface SlowSteps {
  count: number;
  longest_s: number | null;
  /** sum of the times beyond the usual */
  lost_s: number;
  last_at: number | null;
  /** text of the first group; "" if there is none */
  text: string;
  /** the newest trace of that group; None if a trace would explain no more than the text */
  trace_id: number | null;
  /** when the time between its steps was sampled */
  gaps_at: number | null;
}

/** Where the time between a run's steps goes, by line (GET /api/runs/ID/gaps). For an eager loop whose steps fill most of the run's time, the lines cover whole turns. */
export interface GapProfile {
  run_id: number;
  state: "none" | "sampling" | "ready";
  /** when the sampling began */
  sampled_at: number | null;
  duration_s: number | null;
  /** number of steps that ended in this time */
  steps: number;
  /** number of samples between steps */
  samples: number;
  /** 0; in files of older versions: number of samples that were taken more than 1 ms late */
  late: number;
  /** share of the time that was between steps (measured, not sampled) */
  share: number | null;
  /** share of garbage collections in the time that the lines cover (measured, not sampled) */
  gc_share: number | null;
  /** by share of the time between steps, without slow turns */
  lines: CodeLine[];
  /** The same lines, without checkpoints, evaluations, TensorFlow's tracing of functions and waits for input. */
  python_lines: CodeLine[];
  /** []; in files of older versions: Python functions that TensorFlow called on other threads */
  other_lines: CodeLine[];
  /** the lines are those of whole turns, from the end of a step to the end of the next */
  whole_turns: boolean;
  /** the result as a sentence, or why there is no profile */
  text: string;
}

/** One GPU, as TensorFlow describes it. */
export interface GpuDevice {
  /** "Tesla V100-SXM2-16GB"; "" if not known */
  name: string;
  /** "7.0"; "" if not known */
  compute_capability: string;
}

/** The fastest matrix product of one type of number. */
export interface MeasuredRate {
  /** "float32" */
  dtype: string;
  flops_per_s: number;
  /** the library that reached it: "NumPy 1.26.4", "TensorFlow 2.15.1" */
  by: string;
}

export interface MeasuredDevice {
  /** "CPU", "GPU" */
  kind: string;
  /** "AMD EPYC 7B13, 2 cores" */
  title: string;
  rates: MeasuredRate[];
  /** memory bandwidth, read and written bytes together; None: not measured */
  bytes_per_s: number | null;
}

/** The rates that ``tftracer roof --save`` measured on a machine. */
export interface MeasuredRoof {
  host: string;
  /** model of the CPU */
  processor: string;
  /** epoch seconds */
  measured_at: number;
  /** why the rates may be too low; "" if there is no doubt */
  doubt: string;
  devices: MeasuredDevice[];
}

/** Why a step was traced. user: on request (page, trace_next). global: all steps are traced. script: the script's own RunOptions requested it. slow: it was expected to be slow. */
export type AskedBy = "user" | "global" | "script" | "slow";

/** What the launcher says about a process of a job (None: not known). */
export interface LauncherInfo {
  rank: number | null;
  size: number | null;
  local_rank: number | null;
  /** "worker", "ps", "chief"; "" if not known */
  role: string;
  task: number | null;
  /** "horovod", "openmpi", "mpich", "pmix", "slurm", "tf_config", "" */
  launcher: string;
}

/** Something that went wrong in the tracer itself; training went on. */
export interface Problem {
  code: string;
  message: string;
  /** epoch seconds */
  at: number;
}

export interface Session {
  id: string;
  host: string;
  pid: number;
  rank: number | null;
  /** its place in the job, such as its rank */
  place: LauncherInfo;
  /** version; "" if not known */
  tensorflow: string;
  tftracer: string;
  python: string;
  /** the script's command line */
  command: string;
  /** the CPU's model; "" if not known */
  processor: string;
  gpus: number | null;
  /** in the order of their numbers; empty if not known */
  gpu_devices: GpuDevice[];
  /** rates of this machine that `tftracer roof --save` has measured */
  measured_roof: MeasuredRoof | null;
  started_at: number;
  ended_at: number | null;
  /** why there is no run yet, and what to do; "": there are runs, or the reason is not known */
  no_steps: string;
  /** whether a TensorFlow session is open, or a compiled function runs or has just run */
  active: boolean;
  trace_all: boolean;
  /** False: opened from a file */
  live: boolean;
  /** path of the file that a live session is written to, or that was opened; "" if in memory only */
  file: string;
  /** steps that were not counted because the queue was full */
  steps_lost: number;
  /** whether slow steps are looked for; "": not known, for some files */
  slow_watch: "" | "on" | "off";
  /** seconds that the tracer adds to an untraced session.run, with cold caches */
  hook_cost_s: number | null;
  /** the same for a call of a compiled function */
  call_cost_s: number | null;
  problems: Problem[];
  /** how the file ends early, in words; "" if it is complete */
  cut: string;
  /** which records of the file are damaged or were skipped, in words; "" if none */
  damage: string;
}

/** A moment or a range of a trace's time that a user named. */
export interface Bookmark {
  name: string;
  /** since the start of the step's first op */
  start_ns: number;
  /** None: a moment */
  end_ns: number | null;
}

/** One trace in the lists: what is known about it without opening it. ``state``: a new trace is "pending" until it is analyzed; then it is sent again. A "broken" trace cannot be read. ``nodes``, ``devices``, ``findings`` and ``headline`` of a pending trace are not known. */
export interface TraceRecord {
  id: number;
  run_id: number;
  /** the run's step number, from 1; None: not known, for some files */
  step: number | null;
  started_at: number;
  /** wall time of the traced session.run or call; None: not known, for some files */
  duration_s: number | null;
  /** median of the run's untraced steps when this step was traced */
  median_s: number | null;
  nodes: number | null;
  /** size of the serialized RunMetadata or XSpace */
  bytes: number;
  /** size on disk */
  stored_bytes: number;
  devices: string[];
  asked_by: "user" | "global" | "script" | "slow";
  findings: Finding[];
  /** the verdict in short (verdict.headline), mainly its first sentence; "" if not computed */
  headline: string;
  note: string;
  bookmarks: Bookmark[];
  state: "pending" | "ready" | "broken";
}

/** A run's step times in seconds. Traced steps count only if there are no others. None: not known. */
export interface RunStatistics {
  steps: number;
  mean_s: number | null;
  p50_s: number | null;
  p95_s: number | null;
  p99_s: number | null;
  min_s: number | null;
  max_s: number | null;
  last_s: number | null;
  first_run_at: number | null;
  last_run_at: number | null;
  /** median time outside session.run between two steps */
  between_steps_s: number | null;
  /** median of (traced step - median untraced step) */
  traced_overhead_s: number | null;
  /** the last 60 step times, oldest first, for the sparkline */
  recent_s: number[];
}

/** A run in a live message. Its traces are sent in separate messages. */
export interface RunWithoutTraces {
  steps: number;
  mean_s: number | null;
  p50_s: number | null;
  p95_s: number | null;
  p99_s: number | null;
  min_s: number | null;
  max_s: number | null;
  last_s: number | null;
  first_run_at: number | null;
  last_run_at: number | null;
  between_steps_s: number | null;
  traced_overhead_s: number | null;
  recent_s: number[];
  id: number;
  /** "": a run of this process; else the file from which it was loaded into the session */
  origin: string;
  title: string;
  fetches: string[];
  feeds: string[];
  options: string;
  /** for a compiled function: "train.py:12", "Keras, 8 batches a step"; "" for a session.run */
  definition: string;
  /** whether the graph that a compiled function executes is not known, but can be requested with a trace */
  graph_on_request: boolean;
  pending_traces: number;
  slow_steps: SlowSteps;
}

export interface Run {
  steps: number;
  mean_s: number | null;
  p50_s: number | null;
  p95_s: number | null;
  p99_s: number | null;
  min_s: number | null;
  max_s: number | null;
  last_s: number | null;
  first_run_at: number | null;
  last_run_at: number | null;
  between_steps_s: number | null;
  traced_overhead_s: number | null;
  recent_s: number[];
  id: number;
  origin: string;
  title: string;
  fetches: string[];
  feeds: string[];
  options: string;
  definition: string;
  graph_on_request: boolean;
  pending_traces: number;
  slow_steps: SlowSteps;
  traces: TraceRecord[];
}

export interface SessionMessage {
  session: Session;
  runs: Run[];
}

/** A run's step times (msgpack), oldest first. Old steps are aggregated: an entry stands for ``count`` steps. */
export interface StepTimes {
  run_id: number;
  /** f8, number of the entry's first step */
  step: Column;
  /** u4 */
  count: Column;
  /** f8, epoch seconds of the first step's start */
  start_at: Column;
  /** f4 */
  mean_s: Column;
  /** f4 */
  min_s: Column;
  /** f4 */
  max_s: Column;
  /** f8, numbers of the steps that were traced */
  traced: Column;
}

export interface Ok {
  ok: true;
}

/** Answer to POST /api/links: the path of the download with a code that works once, within a minute. */
export interface DownloadLink {
  path: string;
}

/** Answer to POST /api/session/file: the content of the file was added to the session. */
export interface Loaded {
  ok: true;
  runs: number;
  traces: number;
  /** as in Session */
  cut: string;
  damage: string;
}

/** The kinds of parts, in the page's order. start: before the first step. building: TensorFlow's tracing of functions, and the extra time of first calls. input: the training waited for the next element of a dataset. slow: the extra time of slow steps. python: between steps. suspended: the process was stopped or the machine asleep. tracer: tftracer itself. end: after the last step. If several things happen at the same time, this time counts as the first of them in the list of docs/ledger.rst. */
export type LedgerKind = "start" | "building" | "input" | "steps" | "slow" | "python" | "evaluation" | "checkpoints" | "suspended" | "tracer" | "end" | "unknown";

/** One item of a part. */
export interface LedgerItem {
  name: string;
  duration_s: number;
  /** number of steps or calls; None: not counted */
  times: number | null;
  /** its run; None: it belongs to no single run */
  run_id: number | null;
}

export interface LedgerPart {
  kind: "start" | "building" | "input" | "steps" | "slow" | "python" | "evaluation" | "checkpoints" | "suspended" | "tracer" | "end" | "unknown";
  name: string;
  duration_s: number;
  /** thousandths of the wall time; all parts add up to exactly 1000 */
  permille: number;
  /** the longest first; they add up to the part, or to less */
  items: LedgerItem[];
  /** what is not known about it; "" if nothing */
  text: string;
}

/** GET /api/ledger. If nothing is known, ``parts`` is empty and ``text`` says why. */
export interface Ledger {
  /** start of the process, or of the recording if that is not known */
  started_at: number | null;
  /** epoch seconds, like ``started_at`` */
  until: number | null;
  duration_s: number;
  /** only parts with time, in the order of LedgerKind */
  parts: LedgerPart[];
  /** the largest part that can be reduced */
  largest: "start" | "building" | "input" | "steps" | "slow" | "python" | "evaluation" | "checkpoints" | "suspended" | "tracer" | "end" | "unknown" | null;
  /** a sentence about ``largest`` */
  text: string;
  /** how to reduce it */
  advice: string;
  /** what the parts do not show */
  doubts: string[];
}

/** A stage of a pipeline after TensorFlow's optimization. An element is one item that it produces: for batch, one batch. */
export interface PipelineStage {
  /** in the tree, whose root is the last stage */
  depth: number;
  name: string;
  /** the function that it calls, as in the script; "" if not known */
  function: string;
  /** place of the function, such as "train.py:12" */
  place: string;
  /** number of elements that it has produced */
  elements: number;
  /** its own processing time for one element, without the overhead of calling its function */
  element_s: number | null;
  /** elements per second */
  rate: number | null;
  /** mean number of threads that work for it */
  busy: number | null;
  /** number of parallel calls */
  parallelism: number | null;
  parallelism_max: number | null;
  /** whether AUTOTUNE chooses the parallelism, or the size of the buffer */
  is_tuned: boolean;
  /** mean number of elements in its buffer; None: it has no buffer */
  buffered: number | null;
  buffer_size: number | null;
  /** elements per second of the whole pipeline if only this stage limited it; None: not measured */
  capacity: number | null;
  is_limiting: boolean;
}

export interface PipelineMoment {
  /** epoch seconds */
  at: number;
  /** elements per second */
  rate: number;
  /** as in InputPipeline */
  wait: number | null;
  /** name of the limiting stage; "" if not known */
  stage: string;
}

export interface InputPipeline {
  /** "TFRecord → map(decode) → batch" */
  title: string;
  /** epoch seconds of the newest look that found progress; None: no look yet */
  at: number | null;
  /** whether its iterator still exists */
  is_open: boolean;
  elements: number;
  /** what an element of the pipeline is, as far as its stages show */
  unit: "batches" | "elements";
  /** elements per second that the training takes */
  rate: number | null;
  /** share of the time in which the training waits for the next element */
  wait: number | null;
  /** the slower side */
  side: "input" | "training" | "unknown";
  text: string;
  advice: string;
  /** maximum elements per second if the advice is followed */
  predicted_rate: number | null;
  stages: PipelineStage[];
  history: PipelineMoment[];
}

/** GET /api/input-pipelines. The newest first. */
export interface InputPipelines {
  pipelines: InputPipeline[];
  /** why some iterators were not examined, and what is known of them; "" if all were */
  text: string;
}

/** What explains a growth of the memory: the number of these things grows. garbage: objects that are not freed because Python's garbage collection is off. containers: named lists, dicts, strings, arrays. searching: the search for the cause still runs. unknown: nothing that was counted explains the growth. */
export type MemoryKind = "functions" | "sessions" | "ops" | "iterators" | "variables" | "tensors" | "objects" | "garbage" | "containers" | "searching" | "unknown";

/** A kind of thing whose number grows while the memory grows. */
export interface MemoryThing {
  kind: "functions" | "sessions" | "ops" | "iterators" | "variables" | "tensors" | "objects" | "garbage" | "containers" | "searching" | "unknown";
  /** the type's name, functions' names, or a description */
  name: string;
  /** increase of the number during the time in which the things were counted */
  grown: number | null;
  /** increase per second */
  rate: number | null;
  /** bytes per second; None: not measured */
  bytes_rate: number | null;
  /** "train.py:12"; "" if not known */
  place: string;
}

export interface MemoryGrowth {
  since: number;
  until: number;
  start_bytes: number;
  end_bytes: number;
  /** bytes per second */
  bytes_rate: number;
  /** whether the memory still grew at the end of the record */
  is_growing: boolean;
  kind: "functions" | "sessions" | "ops" | "iterators" | "variables" | "tensors" | "objects" | "garbage" | "containers" | "searching" | "unknown";
  text: string;
  advice: string;
  /** reasons for doubt, and the time that the search took */
  doubts: string[];
  /** first the thing that explains the growth */
  things: MemoryThing[];
}

/** GET /api/memory-growth. The process's own memory, without files that are mapped into it. */
export interface ProcessMemory {
  /** epoch seconds */
  at: number[];
  /** lowest memory in bytes, from each moment of ``at`` to the next one */
  low: number[];
  /** highest memory in bytes, from each moment of ``at`` to the next one */
  high: number[];
  /** the newest first */
  growths: MemoryGrowth[];
  /** bytes per second at the end; 0: no growth is proven; None: too little data */
  growth_rate: number | null;
  /** what could not be measured; "" if nothing is missing */
  text: string;
}

export type LaneKind = "compute" | "communication" | "copy" | "kernel" | "launch" | "sync" | "input" | "repeat" | "outside" | "other";

/** A horizontal band: rows first_row : first_row + rows. */
export interface Lane {
  id: number;
  /** as in the trace */
  device: string;
  title: string;
  kind: "compute" | "communication" | "copy" | "kernel" | "launch" | "sync" | "input" | "repeat" | "outside" | "other";
  /** "" or the rank's or process's name, in a job's timeline */
  group: string;
  first_row: number;
  rows: number;
  slices: number;
  /** length of the union of its slices */
  busy_ns: number;
  /** whether the page shows it collapsed at first */
  collapsed: boolean;
}

/** A whole trace, ready to draw (msgpack). Slices are sorted by (row, start); row r has row_offsets[r] : row_offsets[r+1]. Times are ns since the trace's first start. Slices on a row do not overlap. */
export interface Timeline {
  trace_id: number;
  title: string;
  /** number of nodes in the trace; there may be fewer slices, because nodes without a valid time have none */
  nodes: number;
  /** epoch ns of time 0, decimal (too long for a double) */
  origin_ns: string;
  duration_ns: number;
  lanes: Lane[];
  /** u4 [rows + 1] */
  row_offsets: Column;
  /** f8 [slices] */
  start: Column;
  /** f8 or u4 [slices] */
  duration: Column;
  /** f4 [slices], time from scheduled to start; -1: unknown */
  delay: Column;
  /** u4 [slices], index of the node in the trace */
  node: Column;
  /** u4 [slices], into names */
  name: Column;
  /** u2 or u4 [slices], into ops */
  op: Column;
  /** u1 [slices], NodeKind: 0 compute 1 communication 2 copy 3 launch 4 sync 5 input 6 control 7 repeat 8 outside */
  kind: Column;
  /** u1 [slices], 1: on the critical path */
  critical: Column;
  names: Strings;
  ops: Strings;
  has_cost_graph: boolean;
  findings: Finding[];
}

export interface EvidencePlace {
  start_ns?: number;
  end_ns?: number;
  /** an op type to search for */
  op?: string;
  /** a device */
  lane?: string;
  /** "ranks": only in a job */
  tab?: "ops" | "budget" | "critical-path" | "memory" | "communication" | "scheduling" | "ranks";
}

/** The places on the timeline that show what a sentence says. */
export interface Evidence {
  start_ns?: number;
  end_ns?: number;
  op?: string;
  lane?: string;
  tab?: "ops" | "budget" | "critical-path" | "memory" | "communication" | "scheduling" | "ranks";
  /** node indices, most important first, at most 50 */
  nodes: number[];
}

export interface Sentence {
  /** "input_bound", "communication_bound", "one_op", ..., "balanced": docs/analyses.rst lists them */
  code: string;
  /** what limits the step */
  text: string;
  /** what to try next */
  advice: string;
  /** part of the step that would go away at best, from 0 to 1 */
  share: number;
  numbers: Record<string, number>;
  evidence: Evidence;
}

export interface Verdict {
  /** most important first; one "balanced" sentence if nothing stands out */
  sentences: Sentence[];
  /** from the first op to the last op */
  step_ns: number;
  /** the base of the shares: duration of the step's call without tracing */
  whole_ns: number;
  /** for lists of traces: a sentence that says which time is 100% in the first sentence; "": not needed */
  shares_of: string;
  findings: Finding[];
}

export interface OpRow {
  /** op type, node name or scope */
  key: string;
  /** op type ("" for a scope) */
  op: string;
  /** "": several devices, or not known */
  device: string;
  /** executions; a launch with its kernels is one */
  count: number;
  total_ns: number;
  self_ns: number;
  mean_ns: number;
  max_ns: number;
  /** share of the sum of all counted work */
  share: number;
  /** time on the host: CPU ops, launches */
  host_ns: number;
  /** time of kernels and copies on a GPU, under the op that launched them */
  device_ns: number;
  /** sum of the times from scheduled to start; None if no scheduling time is known */
  delay_ns: number | null;
  /** node of the longest execution */
  node: number;
}

/** An OpRow with FLOPs and bytes (docs/analyses.rst): sums over executions with known values; None if there are none. */
export interface ComputingOpRow {
  key: string;
  op: string;
  device: string;
  count: number;
  total_ns: number;
  self_ns: number;
  mean_ns: number;
  max_ns: number;
  share: number;
  host_ns: number;
  device_ns: number;
  delay_ns: number | null;
  node: number;
  /** nominal floating-point operations of matrix ops */
  flops: number | null;
  /** executions with unknown FLOPs */
  flops_unknown: number;
  /** compulsory traffic */
  bytes: number | null;
  bytes_unknown: number;
}

export interface OpStatistics {
  by: "type" | "name" | "scope";
  /** by total time, descending, at most 10,000 */
  rows: ComputingOpRow[];
  left_out: number;
  total_ns: number;
  findings: Finding[];
}

export type BudgetPart = "compute" | "python" | "exposed_communication" | "hidden_communication" | "copies" | "input" | "scheduling" | "launch_gap" | "idle";

/** How a device spent the step. The parts add up to step_ns, except hidden_communication, which overlaps compute. */
export interface DeviceBudget {
  device: string;
  title: string;
  /** BudgetPart -> ns; scheduling: None if no scheduling time is known */
  parts_ns: Record<string, number | null>;
  busy_ns: number;
}

export interface Budget {
  step_ns: number;
  /** the whole step: all devices together */
  whole: DeviceBudget;
  devices: DeviceBudget[];
  findings: Finding[];
}

export interface PathStep {
  node: number;
  name: string;
  op: string;
  device: string;
  start_ns: number;
  end_ns: number;
  /** gap before it on the path */
  wait_ns: number;
  /** What this execution waited for. ``op``: an input; ``transfer``: an input from another device; ``thread``: the previous op on its thread; ``launch``: a kernel's launch; ``stream``: the previous kernel on its stream; ``time``: no dependency is known, so the predecessor is the op that ended last before this one was scheduled; ``start``: no op had ended yet. */
  reason: "op" | "transfer" | "thread" | "launch" | "stream" | "time" | "start";
}

export interface CriticalPath {
  /** in time order, at most 20,000 */
  steps: PathStep[];
  left_out: number;
  length_ns: number;
  /** time in ops; the rest are gaps */
  busy_ns: number;
  by_op: OpRow[];
  edges: "partition_graph" | "function_graph" | "labels" | "none";
  /** f4 [nodes], by how much later each op could end; -1: not known; None in JSON */
  slack_ns: Column | null;
  findings: Finding[];
}

export interface MemoryCurve {
  allocator: string;
  device: string;
  /** at most 4,000 points; the peak is one of them */
  time_ns: number[];
  bytes: number[];
  peak_bytes: number;
  peak_ns: number;
}

export interface Tensor {
  /** -1: not known */
  node: number;
  name: string;
  /** output slot; -1: not known, for example for a profile's allocations */
  output: number;
  op: string;
  device: string;
  allocator: string;
  bytes: number;
  shape: string;
  dtype: string;
  alloc_ns: number;
  free_ns: number;
  /** node that used it last; -1: not known */
  last_consumer: number;
}

export interface Memory {
  curves: MemoryCurve[];
  /** the largest 5,000, by bytes */
  tensors: Tensor[];
  tensors_total: number;
  /** ops by temporary memory; here total_ns is a number of bytes */
  temporary: OpRow[];
  persistent_bytes: number;
  findings: Finding[];
}

export type CounterUnit = "ops" | "bytes" | "share";

/** A step function on the timeline's axis: value[i] is valid from point i to the next point, the last value to the end of the step. */
export interface Counter {
  /** "running", "ready", "in-flight", "gpu-0", "memory-0": the same in every trace */
  key: string;
  title: string;
  unit: "ops" | "bytes" | "share";
  /** what it does not include; "" if it includes everything */
  note: string;
  /** u4 or f8 [points], time since the previous point; for the first point, since time 0 */
  gap_ns: Column;
  /** u1, u2, u4 or f8 [points] */
  value: Column;
}

export interface MissingCounter {
  title: string;
  reason: string;
}

/** Counters over the time of a step (msgpack). */
export interface Counters {
  counters: Counter[];
  /** counters that the trace has no data for */
  missing: MissingCounter[];
}

export interface Link {
  source: string;
  destination: string;
  messages: number;
  bytes: number;
  /** union of the transfers */
  wire_ns: number;
  /** part of wire_ns in which the receiving process computed nothing */
  waited_ns: number;
  /** bytes per second */
  mean_bandwidth: number;
  /** node */
  longest: number;
}

export interface Transfer {
  node: number;
  tensor: string;
  op: string;
  source: string;
  destination: string;
  bytes: number;
  start_ns: number;
  end_ns: number;
  bandwidth: number;
}

export interface Communication {
  links: Link[];
  /** the longest 5,000 */
  transfers: Transfer[];
  transfers_total: number;
  collectives: OpRow[];
  total_ns: number;
  exposed_ns: number;
  findings: Finding[];
}

export interface DelayRow {
  node: number;
  name: string;
  op: string;
  device: string;
  start_ns: number;
  delay_ns: number;
  duration_ns: number;
}

export interface Scheduling {
  /** the longest 1,000 */
  rows: DelayRow[];
  /** nodes with a valid scheduled time */
  known: number;
  /** None, like the next three, if no scheduling time is known */
  total_ns: number | null;
  p50_ns: number | null;
  p95_ns: number | null;
  max_ns: number | null;
  /** upper bounds */
  histogram_ns: number[];
  histogram_count: number[];
  findings: Finding[];
}

export interface CostRow {
  node: number;
  name: string;
  op: string;
  device: string;
  estimated_ns: number;
  measured_ns: number;
  memory_bytes: number;
}

export interface CostGraph {
  rows: CostRow[];
  findings: Finding[];
}

export interface NodeRef {
  /** -1: in the graph, but not executed in this trace */
  node: number;
  name: string;
  op: string;
  device: string;
}

export interface Output {
  slot: number;
  dtype: string;
  shape: string;
  bytes: number;
  allocator: string;
}

/** A detail of a node from the source of its trace. */
export interface Fact {
  name: string;
  value: string;
}

/** Everything about one node, read from the raw bytes. */
export interface NodeDetail {
  node: number;
  name: string;
  op: string;
  label: string;
  device: string;
  device_title: string;
  scope: string;
  /** decimal */
  thread: string;
  kind: number;
  start_ns: number;
  end_ns: number;
  duration_ns: number;
  op_start_ns: number | null;
  op_end_ns: number | null;
  scheduled_ns: number | null;
  delay_ns: number | null;
  /** share of the total time of its op type */
  share_of_type: number;
  share_of_step: number;
  critical: boolean;
  slack_ns: number | null;
  inputs: NodeRef[];
  consumers: NodeRef[];
  control_inputs: NodeRef[];
  outputs: Output[];
  temporary_bytes: number;
  persistent_bytes: number;
  bytes_moved: number;
  /** nominal floating-point operations of a matrix op; None: not known; 0 for other ops */
  flops: number | null;
  /** minimum number of bytes that it has to read and write; None: not known */
  traffic_bytes: number | null;
  /** source device of a transfer */
  source: string;
  destination: string;
  /** the launch of a kernel, the kernels of a launch, the other end of a transfer */
  related: NodeRef[];
  /** when the host launched a kernel or copy; None: not known */
  launched_ns: number | null;
  /** further details from a profile, such as a kernel's grid, block and registers */
  facts: Fact[];
  /** the text of an XLA op; "" if the profile does not have it */
  hlo: string;
}

/** The graph around one node (GET .../nodes/INDEX/graph?depth=2). */
export interface Neighbourhood {
  nodes: NodeRef[];
  /** pairs of positions in nodes */
  edges: number[][];
  left_out: number;
}

export type OpStatus = "changed" | "same" | "unknown" | "appeared" | "vanished";

/** An op type, name or scope in two traces; if a trace does not have it, its count there is 0. ``changed``: the other traces of the runs show that it changed. ``unknown``: the two traces differ, but it may be chance. */
export interface ComparedOp {
  key: string;
  op: string;
  status: "changed" | "same" | "unknown" | "appeared" | "vanished";
  /** what the runs' traces show, in a few words */
  statistic: string;
  count_a: number;
  count_b: number;
  total_a_ns: number;
  total_b_ns: number;
  /** b - a */
  delta_ns: number;
  share_a: number;
  share_b: number;
  /** node of the longest execution; -1 if there is none */
  node_a: number;
  node_b: number;
}

/** A comparison of two traces (GET /api/compare?a=ID&b=ID&by=type). */
export interface Comparison {
  by: "type" | "name" | "scope";
  /** by the size of the difference, descending */
  rows: ComparedOp[];
  left_out: number;
  step_a_ns: number;
  step_b_ns: number;
  budget_a: DeviceBudget;
  budget_b: DeviceBudget;
  /** what changed, or why no change is claimed */
  summary: string;
  /** how many traces of the runs the comparison is based on */
  traces: string;
  /** the difference of the runs' step times, with its interval; "" for one run, or without steps */
  step_times: string;
}

/** A trace that the ops were read from. ``step_ns``: from the step's first op to its last op. */
export interface ReadTrace {
  id: number;
  step: number | null;
  step_ns: number;
}

/** An op type, node or scope over several traces. Its time in a trace is the sum of its executions there. Means and other statistics are over the traces in which it was executed. */
export interface RunOp {
  key: string;
  op: string;
  /** number of traces in which it was executed */
  traces: number;
  /** mean executions per trace */
  count: number;
  mean_ns: number;
  median_ns: number;
  /** sample standard deviation; None with one trace */
  spread_ns: number | null;
  shortest_ns: number;
  longest_ns: number;
  /** mean nominal FLOPs, over the traces in which all executions' FLOPs are known; None: no such trace */
  flops: number | null;
  /** FLOP/s: the highest of all traces */
  best_flop_rate: number | null;
  median_flop_rate: number | null;
  /** share of the total op time of all traces */
  share: number;
  /** in each trace; None if it is not among the trace's ops */
  total_ns: (number | null)[];
  /** node of the longest execution in each trace, or -1 */
  node: number[];
}

export interface RunOps {
  by: "type" | "name" | "scope";
  /** the oldest first */
  traces: ReadTrace[];
  /** the largest share first, at most 10,000 */
  rows: RunOp[];
  left_out: number;
  /** which of the run's traces were read, and which data is missing */
  summary: string;
}

export interface Process {
  id: string;
  /** "rank 0", "worker/1", "ps/0" */
  title: string;
  host: string;
  pid: number;
  /** its place in the job, such as its rank */
  place: LauncherInfo;
  /** id of the clock, the same for all processes on one machine; "": not known */
  clock: string;
  state: "alive" | "ended" | "lost";
  /** URL of its own page, through the hub: "/job/processes/ID/" */
  url: string;
  steps: number;
  /** None: not known yet, or the process has ended */
  steps_per_s: number | null;
  mean_s: number | null;
  /** Median time between two steps; for several runs the mean of the medians, weighted by steps; None: not known. */
  between_steps_s: number | null;
  /** epoch seconds */
  last_seen_at: number;
  traces: number;
  /** number of slow steps; None: not known */
  slow_steps: number | null;
  /** the most important sentence about the slow steps; "" if there are none */
  slow_text: string;
  /** parts of its wall time, which add up to it; empty: not known */
  time_s: Record<string, number>;
  problem: string;
}

/** One request to trace a step on several processes. */
export interface JobTrace {
  id: number;
  title: string;
  /** the step on all processes; None: each process has a different step, or the step is not chosen yet */
  step: number | null;
  /** process id -> number of the step that it was asked to trace */
  steps: Record<string, number>;
  run_title: string;
  /** epoch seconds */
  asked_at: number;
  state: "pending" | "ready" | "partial";
  /** ids of the processes that were asked for a trace */
  processes: string[];
  /** ids of the processes that have traced the step */
  ready: string[];
  /** process id -> why it has no trace */
  missing: Record<string, string>;
}

export interface Job {
  name: string;
  /** URL of the hub's page */
  hub: string;
  is_hub: boolean;
  processes: Process[];
  traces: JobTrace[];
}

/** Changes since the last message about the job; an entry replaces the one with the same id. */
export interface JobChanges {
  /** changed processes */
  processes: Process[];
  /** changed traces, then new traces */
  traces: JobTrace[];
}

export interface JobTraceRequest {
  /** default: all processes that are alive */
  processes?: string[];
  /** default: each process's busiest run */
  run_title?: string;
}

export interface ClockOffset {
  process: string;
  /** None, like the next two fields, if the offset from the first process's clock is not known */
  offset_ns: number | null;
  drift_ppm: number | null;
  uncertainty_ns: number | null;
  /** number of common events (collectives, messages) from which the offset is computed */
  matches: number;
}

export interface CollectiveRow {
  name: string;
  op: string;
  /** size of its result on one rank; None: not known */
  bytes: number | null;
  /** the process that arrived last */
  last: string;
  /** time from the first to the last arrival */
  spread_ns: number;
  /** process -> how long it waited for the last process */
  waited_ns: Record<string, number>;
}

export interface Straggler {
  process: string;
  /** mean time for which the other processes waited for it */
  waited_for_ns: number;
  /** time for which it waited for other processes */
  waiting_ns: number;
  /** if there are no collectives: by how much its step is longer than the median of the other processes */
  slower_by_ns: number;
  cause: "compute" | "input" | "communication" | "none" | "uncertain";
  text: string;
  compute_ns: number;
  input_ns: number;
  exposed_communication_ns: number;
}

/** A transfer between processes of a job. */
export interface JobTensor {
  node: number;
  tensor: string;
  op: string;
  source: string;
  destination: string;
  bytes: number;
  start_ns: number;
  end_ns: number;
  bandwidth: number;
  /** part of its time in which the receiving process computed nothing */
  waited_ns: number;
}

export interface JobAnalysis {
  clocks: ClockOffset[];
  collectives: CollectiveRow[];
  stragglers: Straggler[];
  /** stragglers over all of the job's traces */
  usual_suspects: Straggler[];
  links: Link[];
  /** the longest 5,000 */
  tensors: JobTensor[];
  sentences: Sentence[];
  findings: Finding[];
}

/** The first message of a connection; the following messages are changes to it. */
export interface Snapshot {
  session: Session;
  runs: Run[];
  job: Job | null;
}

export interface SnapshotMessage {
  type: "snapshot";
  payload: Snapshot;
}

export interface SessionUpdate {
  type: "session";
  payload: Session;
}

export interface RunUpdate {
  type: "run";
  payload: RunWithoutTraces;
}

export interface TraceUpdate {
  type: "trace";
  payload: TraceRecord;
}

export interface TraceRemoved {
  type: "trace_removed";
  payload: TraceRecord;
}

export interface JobUpdate {
  type: "job";
  payload: Job;
}

/** Sent instead of the whole job if no process was added, removed or renamed. */
export interface JobChangesUpdate {
  type: "job_changes";
  payload: JobChanges;
}

export interface Closing {
  type: "closing";
  payload: ErrorBody;
}

export type LiveMessage = SnapshotMessage | SessionUpdate | RunUpdate | TraceUpdate | TraceRemoved | JobUpdate | JobChangesUpdate | Closing;

/** A column of texts. */
export interface Texts {
  /** index into texts */
  code: Column;
  texts: Strings;
}

/** Records as columns, one for each field. */
export interface Records {
  /** null: NaN, or the lowest value in a column of i4 */
  numbers: Record<string, Column>;
  /** u1 */
  flags: Record<string, Column>;
  texts: Record<string, Texts>;
}

/** A list of NodeRefs for each record. */
export interface Links {
  /** [records + 1] into ``node`` */
  offsets: Column;
  /** -1 - i: the op named not_run[i], which was not executed */
  node: Column;
}

/** The data of every node (client/nodes.ts builds a NodeDetail from it on request), and the graph's edges. */
export interface NodeTable {
  nodes: number;
  fields: Records;
  links: Record<string, Links>;
  not_run: Strings;
  /** [nodes + 1] into outputs */
  output_offsets: Column;
  outputs: Records;
  /** [nodes + 1] into input */
  input_offsets: Column;
  /** the nodes that each node waited for, data and control */
  input: Column;
}

/** The data of a standalone HTML page (msgpack, deflated, base64): the answers that the live page requests, by their paths. */
export interface Embedded {
  session: SessionMessage;
  trace: TraceRecord;
  /** "timeline", "verdict", "ops?by=type", ... -> msgpack body */
  answers: Record<string, Uint8Array>;
  nodes: NodeTable;
}

export type LayerPhase = "forward" | "backward" | "optimizer" | "communication" | "input" | "variables";

/** A name scope of the model, ops in no scope, or scopes that were folded together. */
export interface Layer {
  /** position of its parent in ``layers``, -1: none */
  parent: number;
  /** the last part of the scope */
  name: string;
  /** layer: a scope; input: the input pipeline; none: ops in no layer, one entry for each op type or optimizer; others: scopes without a separate entry */
  kind: "layer" | "input" | "none" | "others";
  /** kind "others": number of scopes */
  folded: number;
  /** ns, or bytes, for each of ``phases``, without its child layers */
  own: number[];
  /** node of its longest execution, or of its largest piece of memory, without its child layers; -1: none */
  node: number;
}

/** The time of a step, or its memory at the peak (``of``), by layers of the model. */
export interface Layers {
  of: "time" | "memory";
  /** the columns of ``own`` */
  phases: ("forward" | "backward" | "optimizer" | "communication" | "input" | "variables")[];
  /** parents before their children; siblings by size, the largest first */
  layers: Layer[];
  /** ns in which the devices were busy, or bytes */
  total: number;
  /** total of the ops in no layer, without the input pipeline */
  in_no_layer: number;
  /** number of scopes that have no separate entry */
  folded: number;
  /** for memory: the allocator whose peak this is */
  allocator: string;
  device: string;
  /** for memory: time of the peak */
  at_ns: number;
  findings: Finding[];
}

/** Where a roof comes from: a measurement (`tftracer roof`), the table of GPUs' peak rates, or the best rate in the run's traces. */
export type RoofSource = "measured" | "peak" | "best";

/** A line that no op should be above. */
export interface Roof {
  source: "measured" | "peak" | "best";
  /** "CPU", "GPU" */
  device: string;
  /** type of the numbers, such as "float32"; "" for memory */
  dtype: string;
  /** the part of the device that computes: "tensor cores"; "" for the ordinary cores */
  unit: string;
  /** floating-point operations per second; for memory, bytes per second */
  rate: number;
  /** the execution that reached the rate; -1 if it is not in this trace */
  node: number;
}

/** The origin of the roofs of a kind of device, or why there are none. */
export interface RoofWords {
  source: "measured" | "peak" | "best";
  device: string;
  text: string;
}

export interface RooflineRow {
  /** node name or op type */
  key: string;
  op: string;
  /** as in the trace */
  device: string;
  /** kind of device whose roofs apply: "CPU", "GPU" */
  kind: string;
  /** type of the ops' results, such as "float32" */
  dtype: string;
  /** executions with known operations and bytes */
  count: number;
  total_ns: number;
  /** floating-point operations; 0 for ops that are not matrix ops */
  flops: number;
  /** compulsory traffic */
  bytes: number;
  flops_per_s: number;
  bytes_per_s: number;
  /** flops per byte; None without traffic */
  intensity: number | null;
  /** rate as a share of the rate that the roof allows at this intensity; None without a roof */
  of_roof: number | null;
  /** source of that roof */
  judged_by: "measured" | "peak" | "best" | null;
  /** the longest execution */
  node: number;
}

export interface Roofline {
  by: "name" | "type";
  /** by total time, descending, at most 3,000 */
  rows: RooflineRow[];
  left_out: number;
  left_out_ns: number;
  roofs: Roof[];
  words: RoofWords[];
  /** time of the ops with known operations and bytes */
  known_ns: number;
  /** time of all ops that compute */
  work_ns: number;
  /** executions of matrix ops with unknown operations or bytes */
  unknown_matrix_ops: number;
  /** if no matrix op's operations are known: the reason and what to do; else "" */
  remedy: string;
  findings: Finding[];
}

/** The analyses of a trace, by their paths under /api/traces/ID/. */
export interface Analyses {
  "timeline": Timeline;
  "counters": Counters;
  "verdict": Verdict;
  "layers": Layers;
  "breakdown": Budget;
  "critical-path": CriticalPath;
  "communication": Communication;
  "scheduling": Scheduling;
  "cost": CostGraph;
  "ops": OpStatistics;
  "roofline": Roofline;
  "memory": Memory;
  "nodes/{index}": NodeDetail;
  "nodes/{index}/graph": Neighbourhood;
}
