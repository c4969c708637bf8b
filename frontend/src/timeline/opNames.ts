/** The family of an op type, and the label of a slice. */

/** The prefix that oneDNN and grappler put before the name of an op that they compute in another way. */
const REWRITTEN = /^_+(?:Mkl)?(?:Native)?|^_+Onednn/;
const FUSED = /^Fused(?=[A-Z])/;

/**
 * Return the op that an op type stands for: the ops of oneDNN and grappler (`_MklNativeFusedMatMul`, `_FusedConv2D`) and later
 * versions (`AddV2`) compute the same op of the model. The updates of all optimizers are one family.
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
  const last = name.lastIndexOf("/") + 1;
  return name.startsWith(family, last) ? name : `${name.slice(0, last)}${family} + ${name.slice(last)}`;
}
