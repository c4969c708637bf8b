/** Typed state in the URL's query: links contain it, a reload keeps it, and Back and Forward restore it. */
import { computed, type WritableComputedRef } from "vue";
import { useRoute, useRouter, type LocationQuery, type Router } from "vue-router";

/**
 * How a value is written in the URL. `read` returns undefined for an invalid text; `write` returns undefined if the parameter is
 * to be left out.
 */
export interface Spelling<T> {
  read(text: string): T | undefined;
  write(value: T): string | undefined;
  readonly initial: T;
}

export function text(initial = ""): Spelling<string> {
  return { initial, read: (t) => t, write: (v) => (v === initial ? undefined : v) };
}

export function number(initial: number | null = null): Spelling<number | null> {
  return {
    initial,
    read: (t) => (t.trim() !== "" && Number.isFinite(Number(t)) ? Number(t) : undefined),
    write: (v) => (v === null || v === initial ? undefined : String(v)),
  };
}

export function flag(initial = false): Spelling<boolean> {
  return { initial, read: (t) => t === "1", write: (v) => (v === initial ? undefined : v ? "1" : "0") };
}

export function oneOf<T extends string>(values: readonly T[], initial: T): Spelling<T> {
  return { initial, read: (t) => values.find((v) => v === t), write: (v) => (v === initial ? undefined : v) };
}

export function list(): Spelling<readonly string[]> {
  return {
    initial: [],
    read: (t) => t.split(",").filter(Boolean).map(decodeURIComponent),
    write: (v) => (v.length ? v.map(encodeURIComponent).join(",") : undefined),
  };
}

export function readParameter<T>(query: LocationQuery, name: string, spelling: Spelling<T>): T {
  const raw = query[name];
  const value = typeof raw === "string" ? spelling.read(raw) : undefined;
  return value ?? spelling.initial;
}

/**
 * Return a function that reads one parameter of successive queries. It returns the same object until the parameter's text
 * changes, so that watchers of a list or a range do not run when another parameter has changed.
 */
export function parameterReader<T>(name: string, spelling: Spelling<T>): (query: LocationQuery) => T {
  let cached: { readonly raw: LocationQuery[string] | undefined; readonly value: T } | null = null;
  return (query) => {
    const raw = query[name];
    if (cached === null || cached.raw !== raw) cached = { raw, value: readParameter(query, name, spelling) };
    return cached.value;
  };
}

export function withParameter<T>(query: LocationQuery, name: string, spelling: Spelling<T>, value: T): LocationQuery {
  const { [name]: _old, ...rest } = query;
  const spelled = spelling.write(value);
  return spelled === undefined ? rest : { ...rest, [name]: spelled };
}

// Several parameters may change in one tick; each change starts from the query of the change before it.
let pending: LocationQuery | null = null;

/** The address in another view that each router is navigating to, or null. A router that is not in the map is not watched yet. */
const destinations = new WeakMap<Router, string | null>();

/** Return whether the user is leaving the view. Setting a parameter would then navigate back to that view. */
function isLeaving(router: Router): boolean {
  return Boolean(destinations.get(router));
}

function watchNavigations(router: Router): void {
  if (destinations.has(router)) return;
  const ended = (path: string): void => {
    if (destinations.get(router) === path) destinations.set(router, null);
  };
  destinations.set(router, null);
  router.beforeEach((to, from) => void destinations.set(router, to.path === from.path ? null : to.fullPath));
  router.afterEach((to) => ended(to.fullPath));
  router.onError((_error, to) => ended(to.fullPath));
}

/** Return a writable reference to one parameter. With `history: "push"`, Back undoes each change. */
export function useParameter<T>(
  name: string,
  spelling: Spelling<T>,
  history: "push" | "replace" = "replace",
): WritableComputedRef<T> {
  const route = useRoute();
  const router = useRouter();
  const read = parameterReader(name, spelling);
  watchNavigations(router);
  return computed({
    get: () => read(route.query),
    set: (value: T) => {
      if (isLeaving(router)) return;
      const query = withParameter(pending ?? route.query, name, spelling, value);
      pending = query;
      void router[history]({ query, hash: route.hash }).finally(() => {
        if (pending === query) pending = null;
      });
    },
  });
}
