/**
 * The page's key: what a signed-in browser shows besides the cookie. Browsers send the cookie to every port of a host; local
 * storage belongs to this port alone. A login leads to `#key=...`, and a fragment is sent to nobody.
 */
let key = "";

/** Where this server's own page is; below it, a hub has its processes' pages. */
export function serverRoot(): string {
  return new URL(document.baseURI).pathname.replace(/job\/processes\/[^/]+\/$/, "");
}

/** One for each server: several may share an origin behind a reverse proxy. */
const storageName = (): string => `tftracer key ${serverRoot()}`;

/** Takes the key out of the address bar, before anything else looks at it. Whether there was one: a login led here. */
export function takeKey(): boolean {
  const given = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (given === undefined) return false;
  key = given;
  try {
    localStorage.setItem(storageName(), given);
  } catch {
    // Storage is switched off: the login lasts until this tab is loaded again.
  }
  history.replaceState(history.state, "", location.pathname + location.search);
  return true;
}

/** "" without a login. Read anew each time: another tab may have signed in meanwhile. */
export function pageKey(): string {
  try {
    return localStorage.getItem(storageName()) ?? key;
  } catch {
    return key;
  }
}

export const keyHeader = (): Record<string, string> => ({ "Tftracer-Key": pageKey() });
/** A WebSocket can set no header: its key is one of its subprotocols. */
export const keyProtocols = (): string[] => ["tftracer", `key.${pageKey()}`];
