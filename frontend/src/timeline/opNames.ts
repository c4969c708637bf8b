/** The family of an op type, and the label of a slice. */

/** The prefix that oneDNN and grappler put before the name of an op that they compute in another way. */
const REWRITTEN = /^_+(?:Mkl)?(?:Native)?|^_+Onednn/;
const FUSED = /^Fused(?=[A-Z])/;

/**
 * Return the family of an op type: its name without what oneDNN and grappler (`_MklNativeFusedMatMul`, `_FusedConv2D`) or later
 * versions (`AddV2`) add to it. The updates of all optimizers are one family.
 */
export function familyOf(op: string): string {
  if (/^ResourceApply[A-Z]/.test(op)) return "ResourceApply";
  return op
    .replace(REWRITTEN, "")
    .replace(FUSED, "")
    .replace(/(?:V\d+|WithBias)$/, "");
}

/**
 * Return a slice's label, which is its name, except for fused ops: grappler gives a fused op the name of the last op in it, so a
 * convolution may be called `conv/Relu`; its label is `conv/Conv2D + Relu`.
 */
export function labelOf(name: string, op: string): string {
  if (!op.startsWith("_") || !FUSED.test(op.replace(REWRITTEN, ""))) return name;
  const family = familyOf(op);
  const end = name.lastIndexOf("/") + 1; // of the scope
  return name.startsWith(family, end) ? name : `${name.slice(0, end)}${family} + ${name.slice(end)}`;
}
