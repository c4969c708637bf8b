/**
 * Requests to the server's API, with progress and cancelling. An answer is msgpack or JSON, by its Content-Type; errors become
 * `ClientError`s.
 */
import { decode } from "@msgpack/msgpack";
import { ClientError, type Progress, type RequestOptions } from "./client";
import { keyHeader } from "./key";
import type { DownloadLink } from "./messages";

/** Return the URL of an API path, under the page's own base: the page works behind a job's hub too (/job/processes/ID/). */
export function apiUrl(path: string): string {
  return new URL(`api/${path}`, document.baseURI).href;
}

/** Return the error in the body of an API answer; null if there is none. */
function messageOf(body: unknown): { code: string; message: string } | null {
  if (typeof body !== "object" || body === null || !("error" in body)) return null;
  const error: unknown = body.error;
  if (typeof error !== "object" || error === null || !("message" in error)) return null;
  const code = "code" in error ? String(error.code) : "";
  return { code, message: String(error.message) };
}

async function failure(response: Response): Promise<ClientError> {
  const text = await response.text();
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Not an answer of the API (for example a proxy's page): only the status is known.
  }
  const described = messageOf(body);
  const message = described?.message ?? `The server answered ${response.status} ${response.statusText}`.trim();
  return new ClientError(response.status, described?.code ?? "http", message);
}

async function bytesOf(response: Response, onProgress?: Progress): Promise<Uint8Array> {
  if (!onProgress) return new Uint8Array(await response.arrayBuffer());
  const chunks = await chunksOf(response, onProgress);
  return joined(chunks);
}

async function chunksOf(response: Response, onProgress: Progress): Promise<Uint8Array[]> {
  if (!response.body) return [new Uint8Array(await response.arrayBuffer())];
  // Content-Length counts compressed bytes, the stream decompressed ones: there is no total if the answer is compressed.
  const length = response.headers.has("Content-Encoding") ? null : response.headers.get("Content-Length");
  const total = length === null ? null : Number(length);
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    loaded += value.length;
    onProgress(loaded, total);
  }
  return chunks;
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

/** The options of a request. `headers` are sent in addition to the page's key. */
type Request = RequestInit & { headers?: Record<string, string> };

async function respond(path: string, init: Request): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(apiUrl(path), {
      credentials: "same-origin",
      ...init,
      headers: { ...init.headers, ...keyHeader() },
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ClientError(
      0,
      "unreachable",
      "The server does not answer. Has the script ended, or is the network down?",
    );
  }
  if (!response.ok) throw await failure(response);
  return response;
}

function initOf(options: RequestOptions): Request {
  return options.signal ? { signal: options.signal } : {};
}

/** GET an answer. Nothing checks that it is a `T`: messages.ts is generated from the server's types. */
export async function get<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await respond(path, {
    ...initOf(options),
    headers: { Accept: "application/msgpack, application/json;q=0.5" },
  });
  const type = response.headers.get("Content-Type") ?? "";
  const bytes = await bytesOf(response, options.onProgress);
  if (type.includes("msgpack")) return decode(bytes) as T;
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

/** Send JSON and return the JSON answer. */
export async function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const init: Request = { method, headers: { Accept: "application/json", "Content-Type": "application/json" } };
  if (body !== undefined) init.body = JSON.stringify(body);
  const response = await respond(path, init);
  return (await response.json()) as T;
}

function fileNameIn(header: string | null): string {
  const name = /filename="([^"]+)"/.exec(header ?? "")?.[1];
  return name ?? "session.tftrace";
}

/** Let the browser download a path of any size. The browser cannot send the key, so the server makes a one-time link. */
export async function startDownload(path: string): Promise<void> {
  const { pathname, search } = new URL(apiUrl(path));
  const link = await send<DownloadLink>("POST", "links", { path: pathname + search });
  const anchor = document.createElement("a");
  anchor.href = link.path;
  anchor.download = "";
  anchor.click();
}

/** Download a path as a Blob, with progress. */
export async function download(path: string, options: RequestOptions = {}): Promise<{ blob: Blob; name: string }> {
  const response = await respond(path, initOf(options));
  // A session may have gigabytes: a browser can keep a Blob on disk, but an array only in memory.
  const chunks = await chunksOf(response, options.onProgress ?? (() => undefined));
  const name = fileNameIn(response.headers.get("Content-Disposition"));
  return { blob: new Blob(chunks as BlobPart[], { type: "application/octet-stream" }), name };
}

/** POST a file with progress. Only XMLHttpRequest reports the progress of an upload; fetch does not. */
export function upload<T>(path: string, file: File, options: RequestOptions = {}): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", apiUrl(path));
    for (const [name, value] of Object.entries(keyHeader())) request.setRequestHeader(name, value);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (e): void => options.onProgress?.(e.loaded, e.lengthComputable ? e.total : null);
    request.onload = (): void => {
      const body = parsed(request.responseText);
      if (request.status < 400) return resolve(body as T);
      const described = messageOf(body);
      reject(
        new ClientError(
          request.status,
          described?.code ?? "http",
          described?.message ?? `The server answered ${request.status}`,
        ),
      );
    };
    request.onerror = (): void =>
      reject(new ClientError(0, "unreachable", "The file could not be sent: the server does not answer."));
    request.onabort = (): void => reject(new DOMException("cancelled", "AbortError"));
    options.signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
