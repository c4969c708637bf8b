/** What op types stand for, and how a slice is labelled. */

/** What oneDNN and grappler put before the name of an op that they compute in another way. */
const REWRITTEN = /^_+(?:Mkl)?(?:Native)?|^_+Onednn/;
const FUSED = /^Fused(?=[A-Z])/;

/**
 * The op that an op stands for: oneDNN's and grappler's own (`_MklNativeFusedMatMul`, `_FusedConv2D`) and later versions
 * (`AddV2`) are computed for the same op of the model; all optimizers' updates are one family.
 */
export function familyOf(op: string): string {
  if (/^ResourceApply[A-Z]/.test(op)) return "ResourceApply";
  return op
    .replace(REWRITTEN, "")
    .replace(FUSED, "")
    .replace(/(?:V\d+|WithBias)$/, "");
}

/**
 * A slice's label: its name. Grappler gives a fused op the name of the last op that went into it, so that a convolution is
 * called `conv/Relu`: its label is `conv/Conv2D + Relu`.
 */
export function labelOf(name: string, op: string): string {
  if (!op.startsWith("_") || !FUSED.test(op.replace(REWRITTEN, ""))) return name;
  const family = familyOf(op);
  const last = name.lastIndexOf("/") + 1;
  return name.startsWith(family, last) ? name : `${name.slice(0, last)}${family} + ${name.slice(last)}`;
}
