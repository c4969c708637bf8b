/** The routes of the page: each view has a URL. */
import type { Component } from "vue";
import { createMemoryHistory, createRouter, createWebHistory, type Router, type RouteRecordRaw } from "vue-router";

/** Loads the trace view's code. main.ts calls it, too, before the view is opened. */
export const traceView = (): Promise<{ default: Component }> => import("./views/TraceView.vue");

const served: RouteRecordRaw[] = [
  { path: "/", name: "overview", component: () => import("./views/OverviewView.vue"), meta: { title: "Overview" } },
  { path: "/runs/:id(\\d+)", name: "run", component: () => import("./views/RunView.vue"), meta: { title: "Run" } },
  {
    path: "/runs/:id(\\d+)/ops",
    name: "run-ops",
    component: () => import("./views/RunOpsView.vue"),
    meta: { title: "Ops over traces" },
  },
  {
    path: "/traces/:id(\\d+)",
    name: "trace",
    component: traceView,
    meta: { title: "Trace", full: true },
  },
  {
    path: "/compare",
    name: "compare",
    component: () => import("./views/CompareView.vue"),
    meta: { title: "Compare" },
  },
  { path: "/job", name: "job", component: () => import("./views/JobView.vue"), meta: { title: "Job" } },
  {
    path: "/job/traces/:id(\\d+)",
    name: "job-trace",
    component: () => import("./views/JobTraceView.vue"),
    meta: { title: "Trace of the job", full: true },
  },
  {
    path: "/:rest(.*)*",
    name: "not-found",
    component: () => import("./views/NotFound.vue"),
    meta: { title: "Not found" },
  },
];

/** Return the served page's router. Its URLs are under the page's own <base href>, so it works behind a job's hub too. */
export function servedRouter(): Router {
  return createRouter({
    history: createWebHistory(new URL(document.baseURI).pathname),
    routes: served,
    // a view that fills the window does not scroll, and scrolling would force a layout before the first paint
    scrollBehavior: (to, from, saved) => saved ?? (to.path === from.path || to.meta.full ? false : { top: 0 }),
  });
}

/** Return the router of a standalone page. It has one view, and does not change the page's URL. */
export function standaloneRouter(component: NonNullable<RouteRecordRaw["component"]>): Router {
  return createRouter({
    history: createMemoryHistory(),
    routes: [{ path: "/traces/:id(\\d+)", name: "trace", component, meta: { title: "Trace", full: true } }],
  });
}
