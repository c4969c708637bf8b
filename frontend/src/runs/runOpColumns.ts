/** The columns of the table of ops over a run's traces. */
import type { RunOp, RunOps } from "@/client/messages";
import { countColumn, figureColumn, nameColumn, nsColumn, opColumn, shareColumn } from "@/components/columns";
import type { TableColumn } from "@/components/table";
import { formatFlops, significant } from "@/format";

const NAMES = { type: "Op type", name: "Node", scope: "Scope" } as const;

/** A column of FLOPs or their rate: "unknown" if no trace knows all of the op's FLOPs; 0 for ops that are not matrix ops. */
function flopsColumn(
  key: "flops" | "best_flop_rate" | "median_flop_rate",
  title: string,
  unit: "FLOP" | "FLOP/s",
  hint: string,
): TableColumn<RunOp> {
  const suffix = unit === "FLOP" ? "" : "/s";
  const text = (row: RunOp): string => {
    const figure = row[key];
    return figure === null ? "unknown" : figure === 0 ? "0" : formatFlops(figure) + suffix;
  };
  return { key, title, numeric: true, unit, hint, text, width: "124px", value: (row) => row[key] };
}

export function runOpColumns({ by, rows, traces }: RunOps): TableColumn<RunOp>[] {
  const largest = rows.reduce((max, row) => Math.max(max, row.share), 0);
  const bar = (row: RunOp): number => (largest > 0 ? row.share / largest : 0);
  const time = (key: "mean_ns" | "median_ns" | "shortest_ns" | "longest_ns", title: string): TableColumn<RunOp> =>
    nsColumn(key.replace("_ns", ""), title, (row) => row[key], {
      width: "84px",
      hint: `${title} of its time in a trace`,
    });
  return [
    { ...nameColumn("key", NAMES[by], (row: RunOp) => row.key, { bar }), text: (row) => row.key || "(no scope)" },
    ...(by === "name" ? [opColumn<RunOp>()] : []),
    {
      ...countColumn<RunOp>("traces", "Traces", (row) => row.traces),
      text: (row) => `${row.traces} of ${traces.length}`,
      hint: "Traces that it ran in",
    },
    figureColumn("count", "Count", "", (row) => row.count, significant, {
      width: "80px",
      hint: "Executions in a trace that it ran in, on average",
    }),
    shareColumn("share", "Share", (row) => row.share, { hint: "Of the total op time of all these traces" }),
    time("mean_ns", "Mean"),
    time("median_ns", "Median"),
    nsColumn("spread", "Std. deviation", (row) => row.spread_ns, {
      width: "128px",
      hint: "How far its times in the traces lie apart: their sample standard deviation; unknown with one trace",
    }),
    time("shortest_ns", "Shortest"),
    time("longest_ns", "Longest"),
    flopsColumn("flops", "FLOPs", "FLOP", "Floating-point operations of matrix ops in a trace, nominal, on average"),
    flopsColumn(
      "best_flop_rate",
      "Best FLOP/s",
      "FLOP/s",
      "Where other work disturbed it least: the highest of all traces",
    ),
    flopsColumn(
      "median_flop_rate",
      "Median FLOP/s",
      "FLOP/s",
      "By its time in a trace, on a GPU by that of its kernels",
    ),
  ];
}
