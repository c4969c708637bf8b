/**
 * The page's key, which a signed-in browser sends in addition to the cookie: browsers send a cookie to every port of a host, but
 * local storage belongs to one port. A login redirects to `#key=...`; browsers send a fragment to no server.
 */
let key = "";

/** Return the path of this server's own page. The pages of a hub's processes are below it. */
export function serverRoot(): string {
  return new URL(document.baseURI).pathname.replace(/job\/processes\/[^/]+\/$/, "");
}

/** Each server has its own name: several may share an origin behind a reverse proxy. */
const storageName = (): string => `tftracer key ${serverRoot()}`;

/** Move the key from the address bar into storage. Returns whether there was one, that is, whether a login led here. */
export function takeKey(): boolean {
  const given = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (given === undefined) return false;
  key = given;
  try {
    localStorage.setItem(storageName(), given);
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
