/** The session as a Vue reference. It is shallow, because runs and traces are replaced, never changed in place. */
import { inject, provide, shallowRef, type InjectionKey, type ShallowRef } from "vue";
import type { Client, SessionState } from "@/client/client";

export { findRun, findTrace } from "@/client/client";

export interface SessionStore {
  readonly client: Client;
  readonly state: Readonly<ShallowRef<SessionState>>;
}

const KEY: InjectionKey<SessionStore> = Symbol("session");

export function createSession(client: Client): SessionStore {
  const state = shallowRef(client.state);
  client.subscribe((next) => {
    state.value = next;
  });
  return { client, state };
}

export function provideSession(store: SessionStore): void {
  provide(KEY, store);
}

export const sessionKey = KEY;

export function useSession(): SessionStore {
  const store = inject(KEY);
  if (!store) throw new Error("no session was provided: mount with app.provide(sessionKey, createSession(client))");
  return store;
}
