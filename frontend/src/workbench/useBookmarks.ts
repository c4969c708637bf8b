/**
 * The bookmarks of the trace: those saved in its record, and those in the link. If nothing can be saved, new bookmarks go into
 * the page's address.
 */
import { watch } from "vue";
import type { Client } from "@/client/client";
import type { Bookmark } from "@/client/messages";
import { attempt } from "@/state/toasts";
import { merged } from "@/timeline/bookmarks";
import type { TraceState } from "@/timeline/state";

export interface Bookmarks {
  /** Whether bookmarks are saved with the session. */
  readonly saves: boolean;
  /** Whether the page's address can contain bookmarks: that of a standalone page cannot. */
  readonly hasLink: boolean;
  /** Whether a bookmark is saved and cannot be changed here. */
  readonly isFixed: (bookmark: Bookmark) => boolean;
  /** Replace all bookmarks. */
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
