/** The standalone page of one trace: the same viewer, with the data inside the page. */
import { createApp } from "vue";
import App from "./App.vue";
import { DATA_ID, EmbeddedClient, readEmbedded } from "./client/embedded";
import { standaloneRouter } from "./router";
import { createSession, sessionKey } from "./state/session";
import { startTheme } from "./state/theme";
import TraceView from "./views/TraceView.vue";
import "./styles/index.css";

async function start(): Promise<void> {
  startTheme();
  const base64 = document.getElementById(DATA_ID)?.textContent ?? "";
  const client = new EmbeddedClient(await readEmbedded(base64));
  const router = standaloneRouter(TraceView);
  const app = createApp(App);
  app.provide(sessionKey, createSession(client));
  app.use(router);
  await router.replace({ name: "trace", params: { id: client.trace.id } });
  app.mount("#app");
}

start().catch((error: unknown) => {
  const place = document.getElementById("app") ?? document.body;
  place.textContent = `This page's data cannot be read (${String(error)}). Export it again from tftracer.`;
});
