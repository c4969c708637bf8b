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
  code: string;
  severity: "info" | "warning" | "error";
  message: string;
  remedy: string;
}

export type StallCause = "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";

export type WithoutCpu = "" | "own" | "any";

export type PartKind = "tensorflow" | "py_function" | "other_run" | "input" | "checkpoint" | "retrace" | "python" | "no_cpu" | "lock" | "gc" | "wait" | "disk" | "stopped" | "unknown";

export type CodeKind = "script" | "library" | "hook" | "thread";

export type MarkKind = "gc" | "checkpoint" | "host";

export type Place = "inside" | "between";

export type GapState = "none" | "sampling" | "ready";

/** A line of Python code and its share of the time: the innermost line of the script, including the functions that it called. */
export interface CodeLine {
  file: string;
  line: number;
  function: string;
  kind: "script" | "library" | "hook" | "thread";
  owner: string;
  calls: string;
  share: number;
  doubtful: number;
}

/** A part of a slow turn's time. The parts add up to the turn: from the end of one step to the end of the next. */
export interface StallPart {
  kind: "tensorflow" | "py_function" | "other_run" | "input" | "checkpoint" | "retrace" | "python" | "no_cpu" | "lock" | "gc" | "wait" | "disk" | "stopped" | "unknown";
  duration_s: number;
  usual_s: number | null;
  what: string;
}

/** Another cause of a slow step, which took a part of its time. */
export interface OtherCause {
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  place: string;
  duration_s: number;
}

/** A step, or the time before it, that took far longer than usual. */
export interface Stall {
  id: number;
  run_id: number;
  step: number | null;
  call: number;
  step_text: string;
  where: "inside" | "between";
  started_at: number;
  duration_s: number;
  expected_s: number | null;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  without_cpu: "" | "own" | "any";
  place: string;
  text: string;
  evidence: string[];
  uncertainty: string;
  lines: CodeLine[];
  other_lines: CodeLine[];
  parts: StallPart[];
  others: OtherCause[];
  samples: number;
  trace_id: number | null;
  every: number | null;
}

export interface StackFrame {
  file: string;
  line: number;
  function: string;
  kind: "script" | "library" | "hook" | "thread";
  owner: string;
  source: string;
}

/** The samples of a slow step as a tree; a root is a thread. Node i was the innermost frame for ``seconds[i]``. */
export interface StallStacks {
  frames: StackFrame[];
  parent: number[];
  frame: number[];
  seconds: number[];
  samples: number[];
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
  last_text: string;
  next_text: string;
}

/** Something that happened in the process or on its machine, for the step history. */
export interface Mark {
  kind: "gc" | "checkpoint" | "host";
  at: number;
  duration_s: number | null;
  step: number | null;
  text: string;
}

/** A lasting change of the usual step time. */
export interface StepChange {
  step: number;
  before_s: number;
  after_s: number;
}

/** A slow change of the usual step time. */
export interface Drift {
  first_step: number;
  last_step: number;
  first_s: number;
  last_s: number;
}

/** All slow steps of a run with the same cause at the same place, including those that were dropped. */
export interface SlowKind {
  run_id: number;
  cause: "gc" | "machine" | "disk" | "hook" | "callback" | "py_function" | "wait" | "python" | "lock" | "retrace" | "other_run" | "input" | "checkpoint" | "tensorflow" | "stopped" | "unknown";
  place: string;
  where: "inside" | "between";
  times: number;
  duration_s: number;
  lost_s: number;
  longest_s: number;
  first_step: number | null;
  last_step: number | null;
  last_call: number | null;
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
  last_call: number | null;
  last_text: string;
  periods: GroupPeriod[];
  ended: boolean;
  stalls: number[];
  trace_id: number | null;
  text: string;
}

/** What was slow in a run (GET /api/runs/ID/stalls). */
export interface RunStalls {
  run_id: number;
  stalls: Stall[];
  count: number;
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
  stalls: Stall[];
  count: number;
  groups: SlowGroup[];
  periods: Period[];
}

/** A summary of a run's slow steps, in the run's record. */
export interface SlowSteps {
  count: number;
  longest_s: number | null;
  lost_s: number;
  last_at: number | null;
  text: string;
  trace_id: number | null;
  gaps_at: number | null;
}

/** Where the time between a run's steps goes, by line (GET /api/runs/ID/gaps). For an eager loop whose steps fill most of the run's time, the lines cover whole turns. */
export interface GapProfile {
  run_id: number;
  state: "none" | "sampling" | "ready";
  sampled_at: number | null;
  duration_s: number | null;
  steps: number;
  samples: number;
  late: number;
  share: number | null;
  gc_share: number | null;
  lines: CodeLine[];
  python_lines: CodeLine[];
  other_lines: CodeLine[];
  whole_turns: boolean;
  text: string;
}

/** One GPU, as TensorFlow describes it. */
export interface GpuDevice {
  name: string;
  compute_capability: string;
}

/** The fastest matrix product of one type of number. */
export interface MeasuredRate {
  dtype: string;
  flops_per_s: number;
  by: string;
}

export interface MeasuredDevice {
  kind: string;
  title: string;
  rates: MeasuredRate[];
  bytes_per_s: number | null;
}

/** The rates that ``tftracer roof --save`` measured on a machine. */
export interface MeasuredRoof {
  host: string;
  processor: string;
  measured_at: number;
  doubt: string;
  devices: MeasuredDevice[];
}

export type AskedBy = "user" | "global" | "script" | "slow";

/** What the launcher says about a process of a job (None: not known). */
export interface LauncherInfo {
  rank: number | null;
  size: number | null;
  local_rank: number | null;
  role: string;
  task: number | null;
  launcher: string;
}

/** Something that went wrong in the tracer itself; training went on. */
export interface Problem {
  code: string;
  message: string;
  at: number;
}

export interface Session {
  id: string;
  host: string;
  pid: number;
  rank: number | null;
  place: LauncherInfo;
  tensorflow: string;
  tftracer: string;
  python: string;
  command: string;
  processor: string;
  gpus: number | null;
  gpu_devices: GpuDevice[];
  measured_roof: MeasuredRoof | null;
  started_at: number;
  ended_at: number | null;
  no_steps: string;
  active: boolean;
  trace_all: boolean;
  live: boolean;
  file: string;
  steps_lost: number;
  slow_watch: "" | "on" | "off";
  hook_cost_s: number | null;
  call_cost_s: number | null;
  problems: Problem[];
  cut: string;
  damage: string;
}

/** A moment or a range of a trace's time that a user named. */
export interface Bookmark {
  name: string;
  start_ns: number;
  end_ns: number | null;
}

/** One trace in the lists: what is known about it without opening it. ``state``: a new trace is "pending" until it is analyzed; then it is sent again. A "broken" trace cannot be read. ``nodes``, ``devices``, ``findings`` and ``headline`` of a pending trace are not known. */
export interface TraceRecord {
  id: number;
  run_id: number;
  step: number | null;
  started_at: number;
  duration_s: number | null;
  median_s: number | null;
  nodes: number | null;
  bytes: number;
  stored_bytes: number;
  devices: string[];
  asked_by: "user" | "global" | "script" | "slow";
  findings: Finding[];
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
  between_steps_s: number | null;
  traced_overhead_s: number | null;
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
  origin: string;
  title: string;
  fetches: string[];
  feeds: string[];
  options: string;
  definition: string;
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
  step: Column;
  count: Column;
  start_at: Column;
  mean_s: Column;
  min_s: Column;
  max_s: Column;
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
  cut: string;
  damage: string;
}

export type LedgerKind = "start" | "building" | "input" | "steps" | "slow" | "python" | "evaluation" | "checkpoints" | "suspended" | "tracer" | "end" | "unknown";

/** One item of a part. */
export interface LedgerItem {
  name: string;
  duration_s: number;
  times: number | null;
  run_id: number | null;
}

export interface LedgerPart {
  kind: "start" | "building" | "input" | "steps" | "slow" | "python" | "evaluation" | "checkpoints" | "suspended" | "tracer" | "end" | "unknown";
  name: string;
  duration_s: number;
  permille: number;
  items: LedgerItem[];
  text: string;
}

/** GET /api/ledger. If nothing is known, ``parts`` is empty and ``text`` says why. */
export interface Ledger {
  started_at: number | null;
  until: number | null;
  duration_s: number;
  parts: LedgerPart[];
  largest: "start" | "building" | "input" | "steps" | "slow" | "python" | "evaluation" | "checkpoints" | "suspended" | "tracer" | "end" | "unknown" | null;
  text: string;
  advice: string;
  doubts: string[];
}

/** A stage of a pipeline after TensorFlow's optimization. An element is one item that it produces: for batch, one batch. */
export interface PipelineStage {
  depth: number;
  name: string;
  function: string;
  place: string;
  elements: number;
  element_s: number | null;
  rate: number | null;
  busy: number | null;
  parallelism: number | null;
  parallelism_max: number | null;
  is_tuned: boolean;
  buffered: number | null;
  buffer_size: number | null;
  capacity: number | null;
  is_limiting: boolean;
}

export interface PipelineMoment {
  at: number;
  rate: number;
  wait: number | null;
  stage: string;
}

export interface InputPipeline {
  title: string;
  at: number | null;
  is_open: boolean;
  elements: number;
  unit: "batches" | "elements";
  rate: number | null;
  wait: number | null;
  side: "input" | "training" | "unknown";
  text: string;
  advice: string;
  predicted_rate: number | null;
  stages: PipelineStage[];
  history: PipelineMoment[];
}

/** GET /api/input-pipelines. The newest first. */
export interface InputPipelines {
  pipelines: InputPipeline[];
  text: string;
}

export type MemoryKind = "functions" | "sessions" | "ops" | "iterators" | "variables" | "tensors" | "objects" | "garbage" | "containers" | "searching" | "unknown";

/** A kind of thing whose number grows while the memory grows. */
export interface MemoryThing {
  kind: "functions" | "sessions" | "ops" | "iterators" | "variables" | "tensors" | "objects" | "garbage" | "containers" | "searching" | "unknown";
  name: string;
  grown: number | null;
  rate: number | null;
  bytes_rate: number | null;
  place: string;
}

export interface MemoryGrowth {
  since: number;
  until: number;
  start_bytes: number;
  end_bytes: number;
  bytes_rate: number;
  is_growing: boolean;
  kind: "functions" | "sessions" | "ops" | "iterators" | "variables" | "tensors" | "objects" | "garbage" | "containers" | "searching" | "unknown";
  text: string;
  advice: string;
  doubts: string[];
  things: MemoryThing[];
}

/** GET /api/memory-growth. The process's own memory, without files that are mapped into it. */
export interface ProcessMemory {
  at: number[];
  low: number[];
  high: number[];
  growths: MemoryGrowth[];
  growth_rate: number | null;
  text: string;
}

export type LaneKind = "compute" | "communication" | "copy" | "kernel" | "launch" | "sync" | "input" | "repeat" | "outside" | "other";

/** A horizontal band: rows first_row : first_row + rows. */
export interface Lane {
  id: number;
  device: string;
  title: string;
  kind: "compute" | "communication" | "copy" | "kernel" | "launch" | "sync" | "input" | "repeat" | "outside" | "other";
  group: string;
  first_row: number;
  rows: number;
  slices: number;
  busy_ns: number;
  collapsed: boolean;
}

/** A whole trace, ready to draw (msgpack). Slices are sorted by (row, start); row r has row_offsets[r] : row_offsets[r+1]. Times are ns since the trace's first start. Slices on a row do not overlap. */
export interface Timeline {
  trace_id: number;
  title: string;
  nodes: number;
  origin_ns: string;
  duration_ns: number;
  lanes: Lane[];
  row_offsets: Column;
  start: Column;
  duration: Column;
  delay: Column;
  node: Column;
  name: Column;
  op: Column;
  kind: Column;
  critical: Column;
  names: Strings;
  ops: Strings;
  has_cost_graph: boolean;
  findings: Finding[];
}

export interface EvidencePlace {
  start_ns?: number;
  end_ns?: number;
  op?: string;
  lane?: string;
  tab?: "ops" | "budget" | "critical-path" | "memory" | "communication" | "scheduling" | "ranks";
}

/** The places on the timeline that show what a sentence says. */
export interface Evidence {
  start_ns?: number;
  end_ns?: number;
  op?: string;
  lane?: string;
  tab?: "ops" | "budget" | "critical-path" | "memory" | "communication" | "scheduling" | "ranks";
  nodes: number[];
}

export interface Sentence {
  code: string;
  text: string;
  advice: string;
  share: number;
  numbers: Record<string, number>;
  evidence: Evidence;
}

export interface Verdict {
  sentences: Sentence[];
  step_ns: number;
  whole_ns: number;
  shares_of: string;
  findings: Finding[];
}

export interface OpRow {
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
  flops: number | null;
  flops_unknown: number;
  bytes: number | null;
  bytes_unknown: number;
}

export interface OpStatistics {
  by: "type" | "name" | "scope";
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
  parts_ns: Record<string, number | null>;
  busy_ns: number;
}

export interface Budget {
  step_ns: number;
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
  wait_ns: number;
  reason: "op" | "transfer" | "thread" | "launch" | "stream" | "time" | "start";
}

export interface CriticalPath {
  steps: PathStep[];
  left_out: number;
  length_ns: number;
  busy_ns: number;
  by_op: OpRow[];
  edges: "partition_graph" | "function_graph" | "labels" | "none";
  slack_ns: Column | null;
  findings: Finding[];
}

export interface MemoryCurve {
  allocator: string;
  device: string;
  time_ns: number[];
  bytes: number[];
  peak_bytes: number;
  peak_ns: number;
}

export interface Tensor {
  node: number;
  name: string;
  output: number;
  op: string;
  device: string;
  allocator: string;
  bytes: number;
  shape: string;
  dtype: string;
  alloc_ns: number;
  free_ns: number;
  last_consumer: number;
}

export interface Memory {
  curves: MemoryCurve[];
  tensors: Tensor[];
  tensors_total: number;
  temporary: OpRow[];
  persistent_bytes: number;
  findings: Finding[];
}

export type CounterUnit = "ops" | "bytes" | "share";

/** A step function on the timeline's axis: value[i] is valid from point i to the next point, the last value to the end of the step. */
export interface Counter {
  key: string;
  title: string;
  unit: "ops" | "bytes" | "share";
  note: string;
  gap_ns: Column;
  value: Column;
}

export interface MissingCounter {
  title: string;
  reason: string;
}

/** Counters over the time of a step (msgpack). */
export interface Counters {
  counters: Counter[];
  missing: MissingCounter[];
}

export interface Link {
  source: string;
  destination: string;
  messages: number;
  bytes: number;
  wire_ns: number;
  waited_ns: number;
  mean_bandwidth: number;
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
  rows: DelayRow[];
  known: number;
  total_ns: number | null;
  p50_ns: number | null;
  p95_ns: number | null;
  max_ns: number | null;
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
  thread: string;
  kind: number;
  start_ns: number;
  end_ns: number;
  duration_ns: number;
  op_start_ns: number | null;
  op_end_ns: number | null;
  scheduled_ns: number | null;
  delay_ns: number | null;
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
  flops: number | null;
  traffic_bytes: number | null;
  source: string;
  destination: string;
  related: NodeRef[];
  launched_ns: number | null;
  facts: Fact[];
  hlo: string;
}

/** The graph around one node (GET .../nodes/INDEX/graph?depth=2). */
export interface Neighbourhood {
  nodes: NodeRef[];
  edges: number[][];
  left_out: number;
}

export type OpStatus = "changed" | "same" | "unknown" | "appeared" | "vanished";

/** An op type, name or scope in two traces; if a trace does not have it, its count there is 0. ``changed``: the other traces of the runs show that it changed. ``unknown``: the two traces differ, but it may be chance. */
export interface ComparedOp {
  key: string;
  op: string;
  status: "changed" | "same" | "unknown" | "appeared" | "vanished";
  statistic: string;
  count_a: number;
  count_b: number;
  total_a_ns: number;
  total_b_ns: number;
  delta_ns: number;
  share_a: number;
  share_b: number;
  node_a: number;
  node_b: number;
}

/** A comparison of two traces (GET /api/compare?a=ID&b=ID&by=type). */
export interface Comparison {
  by: "type" | "name" | "scope";
  rows: ComparedOp[];
  left_out: number;
  step_a_ns: number;
  step_b_ns: number;
  budget_a: DeviceBudget;
  budget_b: DeviceBudget;
  summary: string;
  traces: string;
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
  traces: number;
  count: number;
  mean_ns: number;
  median_ns: number;
  spread_ns: number | null;
  shortest_ns: number;
  longest_ns: number;
  flops: number | null;
  best_flop_rate: number | null;
  median_flop_rate: number | null;
  share: number;
  total_ns: (number | null)[];
  node: number[];
}

export interface RunOps {
  by: "type" | "name" | "scope";
  traces: ReadTrace[];
  rows: RunOp[];
  left_out: number;
  summary: string;
}

export interface Process {
  id: string;
  title: string;
  host: string;
  pid: number;
  place: LauncherInfo;
  clock: string;
  state: "alive" | "ended" | "lost";
  url: string;
  steps: number;
  steps_per_s: number | null;
  mean_s: number | null;
  between_steps_s: number | null;
  last_seen_at: number;
  traces: number;
  slow_steps: number | null;
  slow_text: string;
  time_s: Record<string, number>;
  problem: string;
}

/** One request to trace a step on several processes. */
export interface JobTrace {
  id: number;
  title: string;
  step: number | null;
  steps: Record<string, number>;
  run_title: string;
  asked_at: number;
  state: "pending" | "ready" | "partial";
  processes: string[];
  ready: string[];
  missing: Record<string, string>;
}

export interface Job {
  name: string;
  hub: string;
  is_hub: boolean;
  processes: Process[];
  traces: JobTrace[];
}

/** Changes since the last message about the job; an entry replaces the one with the same id. */
export interface JobChanges {
  processes: Process[];
  traces: JobTrace[];
}

export interface JobTraceRequest {
  processes?: string[];
  run_title?: string;
}

export interface ClockOffset {
  process: string;
  offset_ns: number | null;
  drift_ppm: number | null;
  uncertainty_ns: number | null;
  matches: number;
}

export interface CollectiveRow {
  name: string;
  op: string;
  bytes: number | null;
  last: string;
  spread_ns: number;
  waited_ns: Record<string, number>;
}

export interface Straggler {
  process: string;
  waited_for_ns: number;
  waiting_ns: number;
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
  waited_ns: number;
}

export interface JobAnalysis {
  clocks: ClockOffset[];
  collectives: CollectiveRow[];
  stragglers: Straggler[];
  usual_suspects: Straggler[];
  links: Link[];
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
  code: Column;
  texts: Strings;
}

/** Records as columns, one for each field. */
export interface Records {
  numbers: Record<string, Column>;
  flags: Record<string, Column>;
  texts: Record<string, Texts>;
}

/** A list of NodeRefs for each record. */
export interface Links {
  offsets: Column;
  node: Column;
}

/** The data of every node (client/nodes.ts builds a NodeDetail from it on request), and the graph's edges. */
export interface NodeTable {
  nodes: number;
  fields: Records;
  links: Record<string, Links>;
  not_run: Strings;
  output_offsets: Column;
  outputs: Records;
  input_offsets: Column;
  input: Column;
}

/** The data of a standalone HTML page (msgpack, deflated, base64): the answers that the live page requests, by their paths. */
export interface Embedded {
  session: SessionMessage;
  trace: TraceRecord;
  answers: Record<string, Uint8Array>;
  nodes: NodeTable;
}

export type LayerPhase = "forward" | "backward" | "optimizer" | "communication" | "input" | "variables";

/** A name scope of the model, ops in no scope, or scopes that were folded together. */
export interface Layer {
  parent: number;
  name: string;
  kind: "layer" | "input" | "none" | "others";
  folded: number;
  own: number[];
  node: number;
}

/** The time of a step, or its memory at the peak (``of``), by layers of the model. */
export interface Layers {
  of: "time" | "memory";
  phases: ("forward" | "backward" | "optimizer" | "communication" | "input" | "variables")[];
  layers: Layer[];
  total: number;
  in_no_layer: number;
  folded: number;
  allocator: string;
  device: string;
  at_ns: number;
  findings: Finding[];
}

export type RoofSource = "measured" | "peak" | "best";

/** A line that no op should be above. */
export interface Roof {
  source: "measured" | "peak" | "best";
  device: string;
  dtype: string;
  unit: string;
  rate: number;
  node: number;
}

/** The origin of the roofs of a kind of device, or why there are none. */
export interface RoofWords {
  source: "measured" | "peak" | "best";
  device: string;
  text: string;
}

export interface RooflineRow {
  key: string;
  op: string;
  device: string;
  kind: string;
  dtype: string;
  count: number;
  total_ns: number;
  flops: number;
  bytes: number;
  flops_per_s: number;
  bytes_per_s: number;
  intensity: number | null;
  of_roof: number | null;
  judged_by: "measured" | "peak" | "best" | null;
  node: number;
}

export interface Roofline {
  by: "name" | "type";
  rows: RooflineRow[];
  left_out: number;
  left_out_ns: number;
  roofs: Roof[];
  words: RoofWords[];
  known_ns: number;
  work_ns: number;
  unknown_matrix_ops: number;
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
