/** Describes the state of the connection and of the script, in words. */
import type { SessionState } from "@/client/client";

export interface Status {
  readonly word: string;
  readonly tone: "good" | "warn" | "bad" | "plain";
  readonly hint: string;
}

/** Make the compiler check that a switch handles every connection. */
function assertNever(value: never): never {
  throw new TypeError(`unknown connection ${String(value)}`);
}

function statusOfOpen(state: SessionState): Status {
  const { session } = state;
  if (!session?.live) return { word: "File", tone: "plain", hint: "A session that was saved to a file" };
  if (session.ended_at !== null)
    return { word: "Ended", tone: "plain", hint: "The script has ended; all it recorded is here" };
  if (session.active)
    return { word: "Training", tone: "good", hint: "The script trains: steps appear as they are made" };
  return {
    word: "Idle",
    tone: "plain",
    hint: "Connected; no session is open, and no compiled function was called in the last seconds",
  };
}

export function statusOf(state: SessionState): Status {
  switch (state.connection) {
    case "connecting":
      return { word: "Connecting", tone: "plain", hint: "Connecting to the server" };
    case "open":
      return statusOfOpen(state);
    case "reconnecting":
      return { word: "Reconnecting", tone: "warn", hint: "The connection is lost; the page reconnects automatically" };
    case "closed":
      return { word: "Closed", tone: "bad", hint: state.reason };
    case "unauthorized":
      return { word: "Signed out", tone: "bad", hint: state.reason };
    case "static":
      return { word: "File", tone: "plain", hint: "A page of its own, without a server" };
    default:
      return assertNever(state.connection);
  }
}
