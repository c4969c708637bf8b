/** The columns of a job's processes. */
import type { Process } from "@/client/messages";
import { secondsColumn } from "@/components/columns";
import type { TableColumn } from "@/components/table";
import { formatCount, formatRate, formatTime } from "@/format";

export const STATES: Record<Process["state"], string> = { alive: "Running", ended: "Ended", lost: "Lost" };

/** `slowest`: the longest mean step or time between steps of all processes. Its bar is full. */
export function processColumns(slowest: number): TableColumn<Process>[] {
  return [
    { key: "title", title: "Process", value: (p) => p.title, width: "minmax(132px, 1fr)" },
    { key: "host", title: "Host", value: (p) => p.host, mono: true, width: "minmax(110px, 1fr)" },
    { key: "role", title: "Role", value: (p) => p.place.role, width: "84px" },
    { key: "state", title: "State", value: (p) => STATES[p.state], width: "100px" },
    { key: "steps", title: "Steps", value: (p) => p.steps, text: (p) => formatCount(p.steps), numeric: true },
    {
      key: "rate",
      title: "Steps/s",
      value: (p) => p.steps_per_s,
      text: (p) => formatRate(p.steps_per_s),
      numeric: true,
    },
    secondsColumn("mean", "Mean step", (p) => p.mean_s, {
      bar: (p) => (p.mean_s ?? 0) / slowest,
      width: "120px",
      hint: "Where ranks wait for each other, those that are not slow have the longer steps",
    }),
    secondsColumn("between", "Between steps", (p) => p.between_steps_s, {
      bar: (p) => (p.between_steps_s ?? 0) / slowest,
      width: "136px",
      hint: "Median time from the end of a step to the start of the next one: input, hooks, the loop's own code",
    }),
    {
      key: "traces",
      title: "Traces",
      value: (p) => p.traces,
      text: (p) => formatCount(p.traces),
      numeric: true,
      width: "76px",
    },
    {
      key: "seen",
      title: "Last seen",
      value: (p) => p.last_seen_at,
      text: (p) => formatTime(p.last_seen_at),
      width: "130px",
    },
    { key: "problem", title: "Problem", value: (p) => p.problem, width: "minmax(160px, 2fr)" },
  ];
}
