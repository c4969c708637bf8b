/** The served page: a live session, or a file behind the viewer's server. */
import { createApp } from "vue";
import App from "./App.vue";
import { LiveClient } from "./client/live";
import { servedRouter } from "./router";
import { createSession, sessionKey } from "./state/session";
import { startTheme } from "./state/theme";
import "./styles/index.css";

startTheme();
const client = new LiveClient();
const app = createApp(App);
app.provide(sessionKey, createSession(client));
app.use(servedRouter());
app.mount("#app");
client.connect();
