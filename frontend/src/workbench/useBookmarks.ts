/** The bookmarks of the trace: those of its record, and those of the link. Where nothing can be saved, new ones go into the page's address. */
import { watch } from "vue";
import type { Client } from "@/client/client";
import type { Bookmark } from "@/client/messages";
import { attempt } from "@/state/toasts";
import { merged } from "@/timeline/bookmarks";
import type { TraceState } from "@/timeline/state";

export interface Bookmarks {
  /** Whether they are saved with the session. */
  readonly saves: boolean;
  /** Whether the page has an address that can carry them: not a page in a file of its own. */
  readonly hasLink: boolean;
  /** Of those that are saved where nothing can be changed. */
  readonly isFixed: (bookmark: Bookmark) => boolean;
  /** In the place of all that there are. */
  readonly keep: (bookmarks: readonly Bookmark[]) => Promise<void>;
}

export function useBookmarks(client: Client, state: TraceState, saved: () => readonly Bookmark[]): Bookmarks {
  watch([saved, state.linkBookmarks], ([ofRecord, ofLink]) => (state.bookmarks.value = merged(ofRecord, ofLink)), {
    immediate: true,
  });
  const isFixed = (bookmark: Bookmark): boolean => !client.can.notes && saved().includes(bookmark);
  async function keep(bookmarks: readonly Bookmark[]): Promise<void> {
    if (!client.can.notes) state.linkBookmarks.value = bookmarks.filter((bookmark) => !isFixed(bookmark));
    else if (await attempt(() => client.setBookmarks(state.trace, bookmarks))) state.linkBookmarks.value = [];
  }
  return { saves: client.can.notes, hasLink: client.state.connection !== "static", isFixed, keep };
}
