/**
 * Columns of the server's messages as typed arrays, without a copy where the bytes are aligned. The messages are
 * little-endian, as are all machines that run a browser.
 */
import type { Column, Strings } from "./messages";

export type TypedArray =
  Uint8Array | Uint16Array | Uint32Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;

/** Make the compiler check that a switch handles every type. */
function assertNever(value: never): never {
  throw new TypeError(
    `a column of the unknown type ${JSON.stringify(value)}: the page is older than the server; reload`,
  );
}

/** Return a column as a typed array: a view of the message's own bytes if they are aligned, else a copy. */
export function typedArray(column: Column): TypedArray {
  const { dtype, data } = column;
  const width = Number(dtype[1]);
  const aligned = data.byteOffset % width === 0 ? data : data.slice();
  const { buffer, byteOffset } = aligned;
  const length = Math.floor(aligned.byteLength / width);
  switch (dtype) {
    case "u1":
      return new Uint8Array(buffer, byteOffset, length);
    case "u2":
      return new Uint16Array(buffer, byteOffset, length);
    case "u4":
      return new Uint32Array(buffer, byteOffset, length);
    case "i1":
      return new Int8Array(buffer, byteOffset, length);
    case "i2":
      return new Int16Array(buffer, byteOffset, length);
    case "i4":
      return new Int32Array(buffer, byteOffset, length);
    case "f4":
      return new Float32Array(buffer, byteOffset, length);
    case "f8":
      return new Float64Array(buffer, byteOffset, length);
    default:
      return assertNever(dtype);
  }
}

/** The strings of a column. Each is decoded when it is first used. */
export class StringColumn {
  readonly length: number;
  private readonly offsets: TypedArray;
  private readonly data: Uint8Array;
  private readonly decoded: (string | undefined)[] = [];
  private readonly decoder = new TextDecoder();

  constructor(strings: Strings) {
    this.offsets = typedArray(strings.offsets);
    this.data = strings.data;
    this.length = Math.max(0, this.offsets.length - 1);
  }

  at(index: number): string {
    const decoded = this.decoded[index];
    if (decoded !== undefined) return decoded;
    const text = this.decoder.decode(this.data.subarray(this.offsets[index], this.offsets[index + 1]));
    this.decoded[index] = text;
    return text;
  }

  /** Decode all strings, for searching. */
  all(): string[] {
    return Array.from({ length: this.length }, (_, i) => this.at(i));
  }
}
