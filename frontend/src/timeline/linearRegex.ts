/**
 * Regular expressions whose search takes time linear in the text, even if the pattern and the text are hostile.
 *
 * The browser's own engine backtracks: `(a+)+$` on forty letters freezes the page, and a link can contain a pattern. So an
 * automaton reads the text, as in tftracer/trace/arrays/linear_regex.py: a state is a set of positions, built when first needed.
 * A single character is still tested by the browser's RegExp. Look-around and back references need backtracking and are refused.
 */

const MAX_POSITIONS = 1000;
const MAX_VISITS = 1 << 20;
const WORD = /[\p{L}\p{N}_]/u;

type Assertion = "start" | "end" | "boundary" | "no boundary";
type Node =
  | { kind: "char"; test: RegExp }
  | { kind: "assertion"; assertion: Assertion }
  | { kind: "sequence" | "choice"; parts: Node[] }
  | { kind: "repeat"; body: Node; least: number; most: number };

interface Position {
  next: number[];
  test?: RegExp;
  assertion?: Assertion;
}

/** The kind of the character before or after a place in the text; "edge": there is none. */
type Side = "edge" | "word" | "other";

interface State {
  positions: number[];
  before: Side;
  ascii: (State | null | undefined)[];
  others: Map<string, State | null>;
  accepts?: boolean;
}

const ASSERTIONS: Record<string, Assertion> = { "^": "start", $: "end", "\\b": "boundary", "\\B": "no boundary" };
const ATOM = /\[(?:\\.|[^\]\\])*\]|\\(?:u\{[^}]*\}|u[0-9a-f]{4}|x[0-9a-f]{2}|[pP]\{[^}]*\}|c[a-z]|.)|./isuy;
const QUANTIFIER = /([*+?]|\{(\d+)(?:,(\d*))?\})\??/y;
const GROUP = /\((?:\?:|\?<[^=!][^>]*>|(?!\?))/y;

class Parser {
  private at = 0;
  private readonly tests = new Map<string, RegExp>();
  constructor(private readonly text: string) {}

  choice(): Node {
    const parts = [this.sequence()];
    while (this.text[this.at] === "|") {
      this.at++;
      parts.push(this.sequence());
    }
    return parts.length === 1 ? parts[0] : { kind: "choice", parts };
  }

  private take(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.at;
    const match = expression.exec(this.text);
    if (match !== null) this.at = expression.lastIndex;
    return match;
  }

  private sequence(): Node {
    const parts: Node[] = [];
    while (this.at < this.text.length && !"|)".includes(this.text[this.at])) {
      const body = this.atom();
      const quantifier = this.take(QUANTIFIER);
      parts.push(quantifier === null ? body : { kind: "repeat", body, ...bounds(quantifier) });
    }
    return { kind: "sequence", parts };
  }

  private atom(): Node {
    if (this.text[this.at] === "(") {
      if (this.take(GROUP) === null) throw new Error("look-around and flags are not supported");
      const body = this.choice();
      this.at++; // the closing parenthesis: the browser has checked that it is there
      return body;
    }
    const source = this.take(ATOM)?.[0] ?? "";
    if (source in ASSERTIONS) return { kind: "assertion", assertion: ASSERTIONS[source] };
    if (/^\\[1-9k]/.test(source)) throw new Error("back references are not supported");
    let test = this.tests.get(source);
    if (test === undefined) this.tests.set(source, (test = new RegExp(`^${source}$`, "iu")));
    return { kind: "char", test };
  }
}

function bounds([, sign, low, high]: RegExpExecArray): { least: number; most: number } {
  if (sign === "*") return { least: 0, most: Infinity };
  if (sign === "+") return { least: 1, most: Infinity };
  if (sign === "?") return { least: 0, most: 1 };
  return { least: Number(low), most: high === undefined ? Number(low) : high === "" ? Infinity : Number(high) };
}

class Automaton {
  private readonly positions: Position[] = [{ next: [] }];
  private readonly states = new Map<string, State>();
  private readonly begin: number;
  private readonly boundaries: boolean;
  private visits = 0;

  constructor(tree: Node) {
    this.begin = this.compile(tree, 0);
    this.boundaries = this.positions.some((p) => p.assertion === "boundary" || p.assertion === "no boundary");
  }

  /** Return whether the pattern is found anywhere in the text. */
  search(text: string): boolean {
    let state: State | null = this.state([], "edge");
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code < 128) {
        let after: State | null | undefined = state.ascii[code];
        if (after === undefined) after = state.ascii[code] = this.read(state, text[i]);
        state = after;
      } else {
        const char = String.fromCodePoint(text.codePointAt(i) ?? 0);
        i += char.length - 1;
        let after = state.others.get(char);
        if (after === undefined) state.others.set(char, (after = this.read(state, char)));
        state = after;
      }
      if (state === null) return true;
    }
    return (state.accepts ??= this.closure(state, "edge") === null);
  }

  private add(position: Position): number {
    if (this.positions.length >= MAX_POSITIONS) throw new Error("the expression is too large");
    return this.positions.push(position) - 1;
  }

  /** Add the positions of a node that is followed by position `after`. Returns the position at which the node begins. */
  private compile(node: Node, after: number): number {
    switch (node.kind) {
      case "char":
        return this.add({ next: [after], test: node.test });
      case "assertion":
        return this.add({ next: [after], assertion: node.assertion });
      case "sequence":
        return node.parts.reduceRight((next, part) => this.compile(part, next), after);
      case "choice":
        return this.add({ next: node.parts.map((part) => this.compile(part, after)) });
      case "repeat":
        return this.repeat(node.body, node.least, node.most, after);
    }
  }

  private repeat(body: Node, least: number, most: number, after: number): number {
    if (most === Infinity) {
      after = this.add({ next: [after] });
      this.positions[after].next.push(this.compile(body, after));
    } else {
      for (let i = least; i < most; i++) after = this.add({ next: [after, this.compile(body, after)] });
    }
    for (let i = 0; i < least; i++) after = this.add({ next: [this.compile(body, after)] });
    return after;
  }

  /** Return the state after a character; null if the pattern is found. */
  private read(state: State, char: string): State | null {
    const side = this.boundaries && WORD.test(char) ? "word" : "other";
    const reading = this.closure(state, side);
    if (reading === null) return null;
    const after = reading.filter((p) => this.positions[p].test?.test(char)).map((p) => this.positions[p].next[0]);
    return this.state(
      [...new Set(after)].sort((a, b) => a - b),
      side,
    );
  }

  private state(positions: number[], before: Side): State {
    const key = `${before} ${positions.join(" ")}`;
    let state = this.states.get(key);
    if (state === undefined) this.states.set(key, (state = { positions, before, ascii: [], others: new Map() }));
    return state;
  }

  /**
   * Return the positions that can read the next character, of the matches that have begun and of one that begins here; null if a
   * match ends here. `after` is the kind of that character.
   */
  private closure(state: State, after: Side): number[] | null {
    const seen = new Set([...state.positions, this.begin]);
    const reading: number[] = [];
    for (const number of seen) {
      if (number === 0) return null;
      const { next, test, assertion } = this.positions[number];
      if (test !== undefined) reading.push(number);
      else if (assertion === undefined || holds(assertion, state.before, after)) next.forEach((p) => seen.add(p));
    }
    this.visits += seen.size;
    if (this.visits > MAX_VISITS) throw new Error("the expression is too complex");
    return reading;
  }
}

function holds(assertion: Assertion, before: Side, after: Side): boolean {
  if (assertion === "start") return before === "edge";
  if (assertion === "end") return after === "edge";
  return ((before === "word") !== (after === "word")) === (assertion === "boundary");
}

/** Return a test of texts for a match. Both this function and the test may throw an Error that says what is wrong with `text`. */
export function pattern(text: string): (candidate: string) => boolean {
  // Throws if the syntax is wrong; compiling is harmless. `source` is used below, because a minifier would drop an unused check.
  const { source } = new RegExp(text, "iu");
  const automaton = new Automaton(new Parser(source).choice());
  return (candidate) => automaton.search(candidate);
}
