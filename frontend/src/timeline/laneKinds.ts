/** The colour of the mark beside a lane's name: the hue of its kind, which its slices have, too. */
import type { LaneKind } from "@/client/messages";
import { css, slotColour, slotOf } from "./colours";
import { Kind } from "./model";

const of = (kind: number): string => css(slotColour(slotOf("MatMul", kind), "light"));

export const KIND_COLOURS: Record<LaneKind, string> = {
  compute: of(Kind.COMPUTE),
  kernel: of(Kind.COMPUTE),
  communication: of(Kind.COMMUNICATION),
  copy: of(Kind.COPY),
  launch: of(Kind.LAUNCH),
  sync: of(Kind.SYNC),
  input: of(Kind.INPUT),
  repeat: of(Kind.REPEAT),
  outside: of(Kind.OUTSIDE),
  other: of(Kind.CONTROL),
};
