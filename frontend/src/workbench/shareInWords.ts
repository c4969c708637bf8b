const NO_SUM = "Two sentences may name the same time: their parts do not add up.";

/** A tooltip that says what most percentages in a verdict are percentages of. */
export const WHOLE_HINT = `The step from its call to its end, without what tracing adds. ${NO_SUM}`;

/** Code of a sentence -> what its percentage is, if it is not simply the part of the step that would go away. */
const SHARE_TEXTS: Record<string, string> = {
  balanced: "The part of the step that computes",
  beside_steps: "The part of the time since the training's first step",
  between_steps: "The part of the time from one step to the next that would go away, at best",
  eager_ops:
    "The part of the step in which none of its ops runs; a compiled function may save more, for its ops take less",
  slow_step: "The part of the step by which it took longer than usual",
  slow_before: "The part of the time from the end of the step before to the end of this one that was more than usual",
  tracing_cost: "The part of the step by which it took longer than usual",
};

/** Code of a sentence -> the short text below its percentage. */
const SHARE_LABELS: Record<string, string> = {
  balanced: "computes",
  beside_steps: "of the time",
  between_steps: "of step to step",
  eager_ops: "no op",
  slow_step: "extra",
  slow_before: "extra",
  tracing_cost: "extra",
};

export function shareLabel(code: string): string {
  return SHARE_LABELS[code] ?? "to gain, at most";
}

export function shareInWords(code: string): string {
  return SHARE_TEXTS[code] ?? `The part of the step that would go away, at best. ${NO_SUM}`;
}
