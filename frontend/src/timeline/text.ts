/** Fits names into slices. Widths (CSS pixels) come from a table of the font's ASCII glyphs, so that labels are not measured. */

const ELLIPSIS = "…";

export class TextFitter {
  private readonly widths = new Float32Array(128);
  /** Width of each character that is not ASCII. */
  private readonly other: number;
  private readonly ellipsis: number;

  constructor(measure: (text: string) => number) {
    for (let code = 32; code < 128; code++) this.widths[code] = measure(String.fromCharCode(code));
    this.other = measure("漢");
    this.ellipsis = measure(ELLIPSIS);
  }

  width(text: string): number {
    let sum = 0;
    for (let i = 0; i < text.length; i++) sum += this.glyph(text.charCodeAt(i));
    return sum;
  }

  private glyph(code: number): number {
    return code < 128 ? this.widths[code] : this.other;
  }

  /** Return the text, or its last path component, or as much of that as fits; "" if not even three letters fit. */
  fit(text: string, room: number): string {
    if (this.width(text) <= room) return text;
    const last = text.slice(text.lastIndexOf("/") + 1);
    if (last.length < text.length && this.width(last) <= room) return last;
    let sum = this.ellipsis;
    for (let i = 0; i < last.length; i++) {
      sum += this.glyph(last.charCodeAt(i));
      if (sum > room) return i >= 3 ? last.slice(0, i) + ELLIPSIS : "";
    }
    return last;
  }
}
