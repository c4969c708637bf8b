/** The base class of clients that hold traces but no running session: they reject every action with the reason `why`. */
import { ClientError, type Client } from "./client";

type Action =
  | "steps"
  | "requestTraces"
  | "sampleGaps"
  | "setTraceAll"
  | "setNote"
  | "setBookmarks"
  | "traceJob"
  | "saveSession"
  | "loadSession"
  | "shutdown"
  | "signOutAll"
  | "downloadTrace"
  | "downloadJob";

export abstract class ReadOnlyClient implements Pick<Client, Action> {
  constructor(private readonly why: string) {}

  protected refuse(what: string): Promise<never> {
    return Promise.reject(new ClientError(404, "read_only", `${what}: ${this.why}`));
  }

  steps = (): Promise<never> => this.refuse("Step times");
  requestTraces = (): Promise<void> => this.refuse("Tracing");
  sampleGaps = (): Promise<void> => this.refuse("Sampling");
  setTraceAll = (): Promise<void> => this.refuse("Tracing");
  setNote = (): Promise<never> => this.refuse("Notes");
  setBookmarks = (): Promise<never> => this.refuse("Bookmarks");
  traceJob: Client["traceJob"] = () => this.refuse("Tracing");
  saveSession = (): Promise<never> => this.refuse("Saving");
  loadSession = (): Promise<never> => this.refuse("Loading");
  shutdown = (): Promise<void> => this.refuse("Shutting down");
  signOutAll = (): Promise<void> => this.refuse("Signing out");
  downloadTrace = (): Promise<void> => this.refuse("Downloads");
  downloadJob = (): Promise<void> => this.refuse("Downloads");
}
