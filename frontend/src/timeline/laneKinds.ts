/** The colour of the mark beside a lane's name: the colour of the lane's kind, as its slices have. */
import type { LaneKind } from "@/client/messages";
import { css, slotColour, slotOf } from "./colours";
import { Kind } from "./model";

/** The colour of a kind. The op type matters only for computing: MatMul, the most usual one, stands for all ops that compute. */
const colourOf = (kind: number): string => css(slotColour(slotOf("MatMul", kind), "light"));

export const KIND_COLOURS: Record<LaneKind, string> = {
  compute: colourOf(Kind.COMPUTE),
  kernel: colourOf(Kind.COMPUTE),
  communication: colourOf(Kind.COMMUNICATION),
  copy: colourOf(Kind.COPY),
  launch: colourOf(Kind.LAUNCH),
  sync: colourOf(Kind.SYNC),
  input: colourOf(Kind.INPUT),
  repeat: colourOf(Kind.REPEAT),
  outside: colourOf(Kind.OUTSIDE),
  other: colourOf(Kind.CONTROL),
};
