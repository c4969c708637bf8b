/** The page's one interface to a session: a live server, a reopened file behind a server, or a standalone HTML page. */
import type {
  Analyses,
  Bookmark,
  Job,
  JobTrace,
  JobTraceRequest,
  Loaded,
  Run,
  Session,
  StepTimes,
  TraceRecord,
} from "./messages";

/** The server answered with an error, or did not answer (status 0). `message` is the server's own text if it sent one. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The state of the page's connection to its server. */
export type Connection = "connecting" | "open" | "reconnecting" | "closed" | "unauthorized" | "static";

/** What the page knows about the session. A change replaces the whole object; nothing is changed in place. */
export interface SessionState {
  readonly session: Session | null;
  readonly runs: readonly Run[];
  readonly job: Job | null;
  readonly connection: Connection;
  /** When the next attempt to reconnect is due (Date.now() milliseconds), null if none is. */
  readonly retryAt: number | null;
  /** Why the connection is closed, in the server's words. */
  readonly reason: string;
}

/** Called with the number of bytes so far, and the total (null: unknown). */
export type Progress = (loaded: number, total: number | null) => void;

export interface RequestOptions {
  signal?: AbortSignal;
  onProgress?: Progress;
}

export type Parameters = Readonly<Record<string, string | number>>;

export type FileFormat = "run_metadata" | "chrome" | "html";

/**
 * A method that returns a promise rejects with a `ClientError`, or with an `AbortError` after `signal` was aborted.
 * If this client cannot do what a method asks for (see `can`), the method rejects with a ClientError that says why.
 */
export interface Client {
  /** What this client can do. The page shows no buttons for anything else. */
  readonly can: { readonly control: boolean; readonly notes: boolean; readonly files: boolean; readonly job: boolean };

  /** Get one analysis of a trace. A parameter whose name is in braces in the path is filled in there; the others become the query. */
  analysis<K extends keyof Analyses>(
    trace: number,
    path: K,
    parameters?: Parameters,
    options?: RequestOptions,
  ): Promise<Analyses[K]>;
  steps(run: number, options?: RequestOptions): Promise<StepTimes>;
  /** Get any other answer under /api, decoded, by its path (`traces/3/compare?with=4`). */
  get<T>(path: string, options?: RequestOptions): Promise<T>;

  /** Trace the run's next `steps` steps; 0 cancels the request. `withGraph`: one more step before them collects the graph. */
  requestTraces(run: number, steps: number, withGraph?: boolean): Promise<void>;
  /** Sample the time between the run's steps for 20 seconds. */
  sampleGaps(run: number): Promise<void>;
  setTraceAll(on: boolean): Promise<void>;
  setNote(trace: number, note: string): Promise<TraceRecord>;
  /** Replace the bookmarks of a trace. */
  setBookmarks(trace: number, bookmarks: readonly Bookmark[]): Promise<TraceRecord>;
  traceJob(request: JobTraceRequest): Promise<JobTrace>;
  saveSession(options?: RequestOptions): Promise<{ blob: Blob; name: string }>;
  loadSession(file: File, options?: RequestOptions): Promise<Loaded>;
  shutdown(): Promise<void>;
  /** Sign out every browser, including this one. */
  signOutAll(): Promise<void>;
  downloadTrace(trace: number, format: FileFormat): Promise<void>;
  /** Download the whole job as one file. */
  downloadJob(): Promise<void>;

  readonly state: SessionState;
  /** Call `listener` after changes of `state`. Returns the function that ends the subscription. */
  subscribe(listener: (state: SessionState) => void): () => void;
  /** Connect now, even if the next attempt is due later. */
  connect(): void;
  close(): void;
}

/** Fill in parameters: `ops` and `{by: "type"}` give `ops?by=type`; `nodes/{index}` and `{index: 3}` give `nodes/3`. */
export function analysisPath(path: keyof Analyses, parameters: Parameters = {}): string {
  const inPath = (name: string): boolean => path.includes(`{${name}}`);
  const query = Object.entries(parameters).filter(([name]) => !inPath(name));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => String(parameters[name]));
  return query.length ? `${filled}?${query.map(([name, value]) => `${name}=${value}`).join("&")}` : filled;
}

/** Paths under /api. */
export const paths = {
  trace: (trace: number): string => `traces/${trace}`,
  analysis: (trace: number, path: keyof Analyses, parameters?: Parameters): string =>
    `traces/${trace}/${analysisPath(path, parameters)}`,
  steps: (run: number): string => `runs/${run}/steps`,
};

export function findRun(state: SessionState, id: number): Run | undefined {
  return state.runs.find((run) => run.id === id);
}

export function findTrace(state: SessionState, id: number): { run: Run; trace: TraceRecord } | undefined {
  for (const run of state.runs) {
    const trace = run.traces.find((t) => t.id === id);
    if (trace) return { run, trace };
  }
  return undefined;
}
