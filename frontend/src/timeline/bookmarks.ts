/** Bookmarks of a trace: named moments and ranges, saved with the trace or contained in a link. */
import type { Bookmark } from "@/client/messages";
import type { Spelling } from "@/state/url";

export const MAX_BOOKMARKS = 100;
export const MAX_NAME_LENGTH = 100;
/** Later times in a link are invalid. */
const LATEST_NS = 1e15;

function bookmarkOf(spelled: string): Bookmark | null {
  const [name = "", times = "", ...rest] = spelled.split(":");
  const [start = NaN, end = null, ...more] = times.split("-").map((t) => (/^\d+(\.\d+)?$/.test(t) ? Number(t) : NaN));
  if (rest.length || more.length || !(start <= LATEST_NS) || (end !== null && !(end > start && end <= LATEST_NS)))
    return null;
  const text = decoded(name).slice(0, MAX_NAME_LENGTH);
  return text === "" ? null : { name: text, start_ns: start, end_ns: end };
}

/** Decode a name; "" if it is not encoded correctly, because a link may be cut or written by hand. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function spelledOf({ name, start_ns, end_ns }: Bookmark): string {
  const times = [start_ns, ...(end_ns === null ? [] : [end_ns])].map((ns) => String(Math.round(ns)));
  return `${encodeURIComponent(name)}:${times.join("-")}`;
}

/** Bookmarks in the URL: `warm-up:0-1200000,allreduce:3400000`. Invalid ones are left out. */
export function bookmarkSpelling(): Spelling<readonly Bookmark[]> {
  return {
    initial: [],
    read: (spelled) => {
      const parts = spelled.split(",").slice(0, MAX_BOOKMARKS);
      return parts.map(bookmarkOf).filter((bookmark) => bookmark !== null);
    },
    write: (bookmarks) => (bookmarks.length ? bookmarks.map(spelledOf).join(",") : undefined),
  };
}

const same = (a: Bookmark, b: Bookmark): boolean => spelledOf(a) === spelledOf(b);

/** Return the saved bookmarks and the bookmarks in the link, by time, each once. */
export function merged(saved: readonly Bookmark[], inLink: readonly Bookmark[]): Bookmark[] {
  const more = inLink.filter((bookmark) => !saved.some((other) => same(other, bookmark)));
  return [...saved, ...more].sort((a, b) => a.start_ns - b.start_ns || (a.end_ns ?? 0) - (b.end_ns ?? 0));
}
