/** The served page: a live session, or a file behind the viewer's server. */
import { createApp } from "vue";
import App from "./App.vue";
import { takeKey } from "./client/key";
import { LiveClient } from "./client/live";
import { servedRouter, traceView } from "./router";
import { openFile } from "./state/opening";
import { createSession, sessionKey } from "./state/session";
import { startTheme } from "./state/theme";
import "./styles/index.css";

const hasNewKey = takeKey();
startTheme();
const client = new LiveClient();
const session = createSession(client);
const router = servedRouter();
const app = createApp(App);
app.provide(sessionKey, session);
app.use(router);
app.mount("#app");
if (hasNewKey) void openFile(router, client); // only after a login, so that a reload stays on its page
client.connect();
// Load the trace view's code once the first view is ready. A failure is reported when that view is opened.
router
  .isReady()
  .then(traceView)
  .catch(() => undefined);
