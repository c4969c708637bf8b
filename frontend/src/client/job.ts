/** The client of a job's trace (the same step on several processes). Its answers come from the paths of the job's hub. */
import { analysisPath, type Client, type Parameters, type RequestOptions, type SessionState } from "./client";
import type { Analyses, JobTrace, JobTraceRequest } from "./messages";
import { ReadOnlyClient } from "./read_only";

export const jobPaths = {
  trace: (trace: number): string => `job/traces/${trace}`,
  answer: (trace: number, answer: string): string => `job/traces/${trace}/${answer}`,
};

/** Analyses that exist only for the trace of a single process. */
const ONE_PROCESS_ONLY: ReadonlySet<keyof Analyses> = new Set(["memory", "cost", "nodes/{index}/graph"]);

export class JobTraceClient extends ReadOnlyClient implements Client {
  readonly can = { control: false, notes: false, files: false, job: true };

  constructor(private readonly hub: Client) {
    super("this is not available for a job's trace. Open the trace on the page of one of its processes.");
  }

  get state(): SessionState {
    return this.hub.state;
  }

  analysis<K extends keyof Analyses>(
    trace: number,
    path: K,
    parameters?: Parameters,
    options?: RequestOptions,
  ): Promise<Analyses[K]> {
    if (ONE_PROCESS_ONLY.has(path)) return this.refuse(path);
    return this.hub.get(jobPaths.answer(trace, analysisPath(path, parameters)), options);
  }

  override traceJob = (request: JobTraceRequest): Promise<JobTrace> => this.hub.traceJob(request);
  override downloadJob = (): Promise<void> => this.hub.downloadJob();

  get<T>(path: string, options?: RequestOptions): Promise<T> {
    return this.hub.get(path, options);
  }
  subscribe(listener: (state: SessionState) => void): () => void {
    return this.hub.subscribe(listener);
  }
  connect(): void {
    this.hub.connect();
  }
  close(): void {
    // The connection to the hub belongs to the page, not to this client.
  }
}
