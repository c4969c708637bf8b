/** The client of a server: HTTP for answers, a WebSocket for changes, reconnecting after growing pauses. */
import {
  ClientError,
  paths,
  type Client,
  type Connection,
  type FileFormat,
  type Parameters,
  type RequestOptions,
  type SessionState,
} from "./client";
import { apiUrl, download, get, send, startDownload, upload } from "./http";
import { keyProtocols } from "./key";
import type {
  Analyses,
  Bookmark,
  JobTrace,
  JobTraceRequest,
  LiveMessage,
  Loaded,
  SessionMessage,
  StepTimes,
  TraceRecord,
} from "./messages";
import { emptyState, reduce, type LiveState } from "./reduce";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** Minimum time between two updates of the page, however many steps the job makes. New traces do not wait for it. */
const UPDATE_MS = 100;

export class LiveClient implements Client {
  readonly can = { control: true, notes: true, files: true, job: true };
  state: LiveState = emptyState;

  private readonly listeners = new Set<(state: SessionState) => void>();
  private socket: WebSocket | null = null;
  private pause = FIRST_PAUSE_MS;
  private retryTimer: ReturnType<typeof setTimeout> | null = null;
  private announceTimer: ReturnType<typeof setTimeout> | null = null;
  private announcedAt = -Infinity;

  connect(): void {
    this.drop();
    const url = new URL(apiUrl("live"));
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, keyProtocols());
    this.socket = socket;
    socket.onmessage = (event: MessageEvent<unknown>): void => {
      if (this.socket === socket && typeof event.data === "string") this.receive(JSON.parse(event.data) as LiveMessage);
    };
    socket.onclose = (): void => {
      if (this.socket === socket) this.lost();
    };
  }

  close(): void {
    this.drop();
    this.listeners.clear();
    if (this.announceTimer) clearTimeout(this.announceTimer);
    this.announceTimer = null;
  }

  subscribe(listener: (state: SessionState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Close the connection, and cancel the next attempt to reconnect. */
  private drop(): void {
    if (this.retryTimer) clearTimeout(this.retryTimer);
    this.retryTimer = null;
    const old = this.socket;
    this.socket = null;
    old?.close();
  }

  private receive(message: LiveMessage): void {
    this.pause = FIRST_PAUSE_MS;
    this.change(reduce(this.state, message));
    if (message.type === "trace") this.announce();
  }

  /** Replace the state. The listeners are called within UPDATE_MS. */
  private change(state: LiveState): void {
    this.state = state;
    const wait = Math.max(0, this.announcedAt + UPDATE_MS - performance.now());
    this.announceTimer ??= setTimeout(() => this.announce(), wait);
  }

  private announce(): void {
    if (this.announceTimer) clearTimeout(this.announceTimer);
    this.announceTimer = null;
    this.announcedAt = performance.now();
    for (const listener of [...this.listeners]) listener(this.state);
  }

  /** Schedule the next attempt to reconnect. */
  private lost(): void {
    this.socket = null;
    // A server that shut down may come back (a restarted script): keep trying, but keep its last message on the page.
    const connection: Connection = this.state.connection === "closed" ? "closed" : "reconnecting";
    this.change({ ...this.state, connection, retryAt: Date.now() + this.pause });
    this.retryTimer = setTimeout(() => void this.probe(), this.pause);
    this.pause = Math.min(this.pause * 1.7, LONGEST_PAUSE_MS);
  }

  /** Ask by HTTP before reconnecting: the status tells whether the login or the server is gone. A WebSocket reports none. */
  private async probe(): Promise<void> {
    try {
      await get<SessionMessage>("session");
      this.connect();
    } catch (error) {
      if (error instanceof ClientError && error.status === 401) {
        this.change({ ...this.state, connection: "unauthorized", retryAt: null, reason: error.message });
      } else {
        this.lost();
      }
    }
  }

  analysis = <K extends keyof Analyses>(
    trace: number,
    path: K,
    parameters?: Parameters,
    options?: RequestOptions,
  ): Promise<Analyses[K]> => this.get(paths.analysis(trace, path, parameters), options);
  steps = (run: number, options?: RequestOptions): Promise<StepTimes> => this.get(paths.steps(run), options);

  async get<T>(path: string, options: RequestOptions = {}): Promise<T> {
    try {
      return await get<T>(path, options);
    } catch (error) {
      if (error instanceof ClientError && error.status === 401) {
        this.change({ ...this.state, connection: "unauthorized", retryAt: null, reason: error.message });
      }
      throw error;
    }
  }

  async sampleGaps(run: number): Promise<void> {
    await send("POST", `runs/${run}/gaps`, {});
  }

  async requestTraces(run: number, steps: number, withGraph = false): Promise<void> {
    if (steps > 0) await send("POST", `runs/${run}/trace`, withGraph ? { steps, graph: true } : { steps });
    else await send("DELETE", `runs/${run}/trace`);
  }

  async setTraceAll(on: boolean): Promise<void> {
    await send("PUT", "tracing", { all: on });
  }

  async setNote(trace: number, note: string): Promise<TraceRecord> {
    return send<TraceRecord>("PUT", `${paths.trace(trace)}/note`, { note });
  }

  async setBookmarks(trace: number, bookmarks: readonly Bookmark[]): Promise<TraceRecord> {
    return send<TraceRecord>("PUT", `${paths.trace(trace)}/bookmarks`, { bookmarks });
  }

  traceJob(request: JobTraceRequest): Promise<JobTrace> {
    return send("POST", "job/trace", request);
  }

  async shutdown(): Promise<void> {
    await send("POST", "shutdown");
  }

  saveSession(options: RequestOptions = {}): Promise<{ blob: Blob; name: string }> {
    return download("session/file", options);
  }

  loadSession(file: File, options: RequestOptions = {}): Promise<Loaded> {
    return upload<Loaded>(`session/file?name=${encodeURIComponent(file.name)}`, file, options);
  }

  async signOutAll(): Promise<void> {
    await send("POST", "sign-out");
  }

  downloadTrace(trace: number, format: FileFormat): Promise<void> {
    return startDownload(`${paths.trace(trace)}/file?format=${format}`);
  }

  downloadJob(): Promise<void> {
    return startDownload("job/file");
  }
}
