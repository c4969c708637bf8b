/**
 * The page's key, which a signed-in browser sends in addition to the cookie: browsers send a cookie to every port of a host, but
 * local storage belongs to one port. A login redirects to `#key=...`; browsers never send this part of a URL to a server.
 */
let key = "";

/** Return the path of this server's own page. The pages of a hub's processes are below it. */
export function serverRoot(): string {
  return new URL(document.baseURI).pathname.replace(/job\/processes\/[^/]+\/$/, "");
}

/** Return the key's name in local storage. It contains the path, because servers behind a reverse proxy may share an origin. */
const storageName = (): string => `tftracer key ${serverRoot()}`;

/** Move the key from the address bar into storage. Returns whether there was one, that is, whether a login led here. */
export function takeKey(): boolean {
  const newKey = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (newKey === undefined) return false;
  key = newKey;
  try {
    localStorage.setItem(storageName(), newKey);
  } catch {
    // Storage is switched off: the login lasts until this tab is reloaded.
  }
  history.replaceState(history.state, "", location.pathname + location.search);
  return true;
}

/** Return the key, "" without a login. Reads the storage each time, because another tab may have signed in meanwhile. */
export function pageKey(): string {
  try {
    return localStorage.getItem(storageName()) ?? key;
  } catch {
    return key;
  }
}

export const keyHeader = (): Record<string, string> => ({ "Tftracer-Key": pageKey() });
/** A WebSocket cannot set headers, so the key is one of its subprotocols. */
export const keyProtocols = (): string[] => ["tftracer", `key.${pageKey()}`];
