/** A canvas for tests without a browser: takes every call of a 2D context, and keeps what texts were drawn. Not shipped. */
import { vi } from "vitest";

class FakeImageData {
  readonly data: Uint8ClampedArray;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.data = new Uint8ClampedArray(width * height * 4);
  }
}

export function stubCanvas(): { texts: string[] } {
  const texts: string[] = [];
  const own: Record<string | symbol, unknown> = {
    measureText: (text: string) => ({ width: 6 * text.length }),
    fillText: (text: string) => void texts.push(text),
  };
  const context = new Proxy(own, { get: (known, name) => known[name] ?? ((): void => undefined) });
  vi.stubGlobal("ImageData", FakeImageData);
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(context as never);
  return { texts };
}
