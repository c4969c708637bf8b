/** The client of a standalone HTML page, which contains the answers about one trace. It sends no requests. */
import { decode } from "@msgpack/msgpack";
import { analysisPath, type Client, type Parameters, type RequestOptions, type SessionState } from "./client";
import type { Analyses, Embedded, TraceRecord } from "./messages";
import { Nodes } from "./nodes";
import { ReadOnlyClient } from "./read_only";

export const DATA_ID = "tftracer-data";

function fromBase64(text: string): Uint8Array {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(deflated: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([deflated as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Decode the data that export/html.py wrote into the page: base64 of deflated msgpack. */
export async function readEmbedded(base64: string): Promise<Embedded> {
  return decode(await inflate(fromBase64(base64))) as Embedded;
}

export class EmbeddedClient extends ReadOnlyClient implements Client {
  readonly can = { control: false, notes: false, files: false, job: false };
  readonly state: SessionState;
  readonly trace: TraceRecord;
  private readonly nodes: Nodes;

  constructor(private readonly data: Embedded) {
    super("this page is a copy of one trace. Open the session that recorded it.");
    this.trace = data.trace;
    this.nodes = new Nodes(data.nodes);
    this.state = {
      session: data.session.session,
      runs: data.session.runs,
      job: null,
      connection: "static",
      retryAt: null,
      reason: "",
    };
  }

  connect(): void {
    // Everything is here already.
  }

  close(): void {
    // Nothing is open.
  }

  subscribe(): () => void {
    return () => undefined; // nothing ever changes
  }

  private answer<T>(path: string): Promise<T> {
    const body = this.data.answers[path];
    return body ? Promise.resolve(decode(body) as T) : this.refuse(path);
  }

  /** Answers that are computed from the columns of all nodes. The other answers are stored as a server would send them. */
  private readonly computedAnswers: { [K in keyof Analyses]?: (parameters: Parameters) => Analyses[K] } = {
    "nodes/{index}": ({ index }) => this.nodes.detail(Number(index)),
    "nodes/{index}/graph": ({ index, depth }) => this.nodes.neighbourhood(Number(index), Number(depth)),
  };

  async analysis<K extends keyof Analyses>(trace: number, path: K, parameters: Parameters = {}): Promise<Analyses[K]> {
    if (trace !== this.trace.id) return this.refuse(`Trace ${trace}`);
    const compute = this.computedAnswers[path];
    return compute ? compute(parameters) : this.answer<Analyses[K]>(analysisPath(path, parameters));
  }

  get<T>(path: string, _options?: RequestOptions): Promise<T> {
    const prefix = `traces/${this.trace.id}/`;
    return path.startsWith(prefix) ? this.answer(path.slice(prefix.length)) : this.refuse(path);
  }
}
