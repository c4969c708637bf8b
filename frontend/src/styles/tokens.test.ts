import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";

const css = readFileSync(resolve(__dirname, "tokens.css"), "utf8");
const LIGHT = css.slice(0, css.indexOf("@media (prefers-color-scheme: dark)"));
const DARK = css.slice(css.indexOf(':root[data-theme="dark"]'));
const TEXTS = ["--text", "--text-2", "--text-3"];
const PHASES = ["forward", "backward", "optimizer", "communication", "input", "variables"].map((p) => `--phase-${p}`);
const SURFACES = ["--bg", "--surface", "--surface-2", "--surface-3", "--accent-soft"];

function colour(theme: string, name: string): number[] {
  const hex = new RegExp(`${name}: #([0-9a-f]{6});`).exec(theme)![1];
  return [0, 2, 4].map((start) => parseInt(hex.slice(start, start + 2), 16) / 255);
}

/** Return the relative luminance of WCAG 2. */
function luminance(channels: number[]): number {
  const [r, g, b] = channels.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: number[], other: number[]): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

describe.each([
  ["light", LIGHT],
  ["dark", DARK],
])("the %s theme", (_, theme) => {
  it.each(TEXTS.flatMap((text) => SURFACES.map((surface) => [text, surface])))(
    "%s can be read on %s, hovered or not",
    (text, surface) => {
      expect(contrast(colour(theme, text), colour(theme, surface))).toBeGreaterThanOrEqual(4.5);
    },
  );

  it.each(PHASES)("the names of layers can be read on %s", (phase) => {
    expect(contrast(colour(theme, "--text"), colour(theme, phase))).toBeGreaterThanOrEqual(4.5);
  });
});
