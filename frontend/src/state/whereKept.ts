/** Where notes and bookmarks are kept, in words. */
import type { Session } from "@/client/messages";

/** Return the words for a client that can store notes and bookmarks (`client.can.notes`). */
export function whereKept(session: Pick<Session, "live" | "file"> | null): string {
  if (session?.live && session.file)
    return "Kept in the session file. To send it to someone, press Save on the overview.";
  const until = session?.live ? "the script ends: this session has no file" : "this viewer ends";
  return `Kept until ${until}. Save on the overview makes a file with all notes and bookmarks.`;
}
