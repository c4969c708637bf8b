import { encode } from "@msgpack/msgpack";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fakeRun, fakeSession, fakeTrace } from "../../dev/fake";
import { ClientError, type SessionState } from "./client";
import { LiveClient } from "./live";

/** Only the clock and the network are fakes here. */
class FakeSocket {
  static all: FakeSocket[] = [];
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  closed = false;

  constructor(readonly url: URL) {
    FakeSocket.all.push(this);
  }

  close(): void {
    this.closed = true;
  }

  say(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

const snapshot = { type: "snapshot", payload: { session: fakeSession(), runs: [fakeRun(1)], job: null } };
const socket = (): FakeSocket => FakeSocket.all.at(-1)!;
let fetched: { url: string; init: RequestInit }[];
let answer: () => Response;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  fetched = [];
  answer = () => Response.json({ session: fakeSession(), runs: [] });
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    fetched.push({ url, init });
    return Promise.resolve(answer());
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function connected(): { client: LiveClient; seen: SessionState[] } {
  const client = new LiveClient();
  const seen: SessionState[] = [];
  client.subscribe((state) => seen.push(state));
  client.connect();
  socket().say(snapshot);
  vi.advanceTimersByTime(100);
  return { client, seen };
}

describe("the connection", () => {
  it("takes the snapshot, then the changes", () => {
    const { seen } = connected();
    expect(socket().url.pathname).toBe("/api/live");
    expect(socket().url.protocol).toBe("ws:");
    expect(seen.at(-1)).toMatchObject({ connection: "open", runs: [{ id: 1 }] });
    socket().say({ type: "run", payload: fakeRun(2) });
    vi.advanceTimersByTime(100);
    expect(seen.at(-1)?.runs).toHaveLength(2);
  });

  it("tells the page at most ten times a second", () => {
    const { seen } = connected();
    const before = seen.length;
    for (let i = 0; i < 990; i++) {
      socket().say({ type: "run", payload: fakeRun(1, { steps: 20_000 + i }) });
      vi.advanceTimersByTime(1);
    }
    expect(seen.length - before).toBeLessThanOrEqual(10);
    vi.advanceTimersByTime(100);
    expect(seen.at(-1)?.runs[0]?.steps).toBe(20_989);
  });

  it("tells the page of a trace at once, with the changes before it", () => {
    const { seen } = connected();
    socket().say({ type: "run", payload: fakeRun(1, { steps: 1 }) });
    vi.advanceTimersByTime(100);
    socket().say({ type: "run", payload: fakeRun(1, { steps: 20_000, traces: [] }) });
    const before = seen.length;
    socket().say({ type: "trace", payload: fakeTrace(7) });
    expect(seen.length - before).toBe(1);
    expect(seen.at(-1)?.runs[0]).toMatchObject({ steps: 20_000, traces: [{ id: 7 }] });
    vi.advanceTimersByTime(1000);
    expect(seen.length - before).toBe(1);
  });

  it("tells the page of the first change after a pause at once", () => {
    const { seen } = connected();
    vi.advanceTimersByTime(500);
    const before = seen.length;
    socket().say({ type: "trace", payload: fakeTrace(7) });
    vi.advanceTimersByTime(0);
    expect(seen.length - before).toBe(1);
  });

  it("reconnects by itself after growing pauses, and keeps its state", async () => {
    const { client, seen } = connected();
    answer = () => Response.error();
    socket().onclose?.();
    vi.advanceTimersByTime(100);
    expect(seen.at(-1)).toMatchObject({ connection: "reconnecting", runs: [{ id: 1 }] });
    await vi.advanceTimersByTimeAsync(60_000);
    const tries = fetched.length;
    expect(tries).toBeGreaterThan(4);
    expect(tries).toBeLessThan(15);
    answer = () => Response.json({ session: fakeSession(), runs: [] });
    await vi.advanceTimersByTimeAsync(10_000);
    socket().say(snapshot);
    expect(client.state.connection).toBe("open");
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("asks for the token again when the server wants one", async () => {
    const { client } = connected();
    answer = () => Response.json({ error: { code: "no_token", message: "This needs the token." } }, { status: 401 });
    socket().onclose?.();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(client.state).toMatchObject({ connection: "unauthorized", reason: "This needs the token." });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("keeps the last message of a server that shut down, and still reconnects", async () => {
    const { client } = connected();
    socket().say({ type: "closing", payload: { code: "ended", message: "The script has ended." } });
    socket().onclose?.();
    expect(client.state).toMatchObject({ connection: "closed", reason: "The script has ended." });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("does not reconnect after it was closed", async () => {
    const { client } = connected();
    client.close();
    socket().onclose?.();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.all).toHaveLength(1);
    expect(socket().closed).toBe(true);
  });
});

describe("requests", () => {
  it("reads msgpack and JSON, whichever comes", async () => {
    const { client } = connected();
    answer = () =>
      new Response(encode({ step_ns: 5 }) as BodyInit, { headers: { "Content-Type": "application/msgpack" } });
    expect(await client.analysis(3, "verdict")).toEqual({ step_ns: 5 });
    answer = () => Response.json({ step_ns: 6 });
    expect(await client.analysis(3, "verdict")).toEqual({ step_ns: 6 });
    expect(fetched.at(-1)?.url).toMatch(/\/api\/traces\/3\/verdict$/);
    expect(new Headers(fetched.at(-1)?.init.headers).get("Accept")).toContain("msgpack");
  });

  it("rejects with the server's own words", async () => {
    const { client } = connected();
    answer = () => Response.json({ error: { code: "unknown", message: "There is no trace 9." } }, { status: 404 });
    await expect(client.analysis(9, "timeline")).rejects.toMatchObject(
      new ClientError(404, "unknown", "There is no trace 9."),
    );
  });

  it("rejects with the status if the answer is not the API's", async () => {
    const { client } = connected();
    answer = () => new Response("<h1>Bad gateway</h1>", { status: 502 });
    await expect(client.analysis(9, "timeline")).rejects.toThrow(/502/);
  });

  it("reports progress", async () => {
    const { client } = connected();
    const body = encode({ rows: [] });
    answer = () =>
      new Response(body as BodyInit, {
        headers: { "Content-Type": "application/msgpack", "Content-Length": String(body.length) },
      });
    const seen: [number, number | null][] = [];
    await client.analysis(1, "ops", { by: "type" }, { onProgress: (loaded, total) => seen.push([loaded, total]) });
    expect(seen.at(-1)).toEqual([body.length, body.length]);
  });

  it("requests traces, cancels the request and writes notes as the API expects", async () => {
    const { client } = connected();
    answer = () => Response.json({ ok: true });
    await client.requestTraces(2, 3);
    await client.requestTraces(2, 0);
    await client.requestTraces(2, 1, true);
    await client.setTraceAll(true);
    answer = () => Response.json(fakeTrace(4, { note: "<b>" }));
    expect((await client.setNote(4, "<b>")).note).toBe("<b>");
    const sent = fetched.map(({ url, init }) => [init.method, new URL(url).pathname, init.body]);
    expect(sent).toEqual([
      ["POST", "/api/runs/2/trace", '{"steps":3}'],
      ["DELETE", "/api/runs/2/trace", undefined],
      ["POST", "/api/runs/2/trace", '{"steps":1,"graph":true}'],
      ["PUT", "/api/tracing", '{"all":true}'],
      ["PUT", "/api/traces/4/note", '{"note":"<b>"}'],
    ]);
  });

  it("saves under the name that the server gives", async () => {
    const { client } = connected();
    answer = () => new Response("abc", { headers: { "Content-Disposition": 'attachment; filename="a b.tftrace"' } });
    const { blob, name } = await client.saveSession();
    expect(name).toBe("a b.tftrace");
    expect(blob.size).toBe(3);
  });
});
