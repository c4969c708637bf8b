/** Every regular expression of the page takes time linear in the text, because names and files are untrusted. */
import { compileTemplate, parse } from "vue/compiler-sfc";
import { spawn } from "node:child_process";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCES = import.meta.glob<string>(["./**/*.{ts,vue}", "!./**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});
/** The file that makes expressions from users' text: of one character each, and one that it never searches with. */
const AUTOMATON = "./timeline/linearRegex.ts";

/** Return a component's script and its template, as code. */
function codeOf(path: string, source: string): string {
  if (!path.endsWith(".vue")) return source;
  const { script, scriptSetup, template } = parse(source, { filename: path }).descriptor;
  const compilerOptions = { expressionPlugins: ["typescript" as const] };
  const markup = template?.content ?? "";
  const { code } = compileTemplate({ source: markup, filename: path, id: path, compilerOptions });
  return [script?.content, scriptSetup?.content, code].join("\n");
}

interface Found {
  /** The source of each literal, with slashes and flags. */
  literals: string[];
  /** The number of calls `new RegExp(...)` and `RegExp(...)`. */
  constructorCalls: number;
}

function expressionsIn(code: string): Found {
  const found: Found = { literals: [], constructorCalls: 0 };
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) found.literals.push(node.text);
    const called = ts.isNewExpression(node) || ts.isCallExpression(node) ? node.expression : undefined;
    if (called && ts.isIdentifier(called) && called.text === "RegExp") found.constructorCalls += 1;
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("source.ts", code, ts.ScriptTarget.Latest, true));
  return found;
}

const files = Object.entries(SOURCES).map(([path, source]) => ({ path, ...expressionsIn(codeOf(path, source)) }));

/**
 * A program that searches with each expression in 100 kB of hostile text: something that the expression could begin with, then
 * one piece again and again. It names each expression before it tries it.
 */
const PROGRAM = String.raw`
const SIZE = 100_000;
const ALPHABET = [..." \t\n\0aZ_1-/:.,;=\"'<>[](){}#\\+%&?é"];
for (const literal of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  console.log(literal);
  const flags = literal.slice(literal.lastIndexOf("/") + 1).replace("g", "");
  const source = literal.slice(1, literal.lastIndexOf("/"));
  const plain = source
    .replace(/\(\?(?::|<?[=!]|<\w+>)/g, "(")
    .replace(/\[[^\]]*\]|\\[wWpP](\{[^}]*\})?|\./g, "a")
    .replace(/\\d/g, "1")
    .replace(/\\s/g, " ")
    .replace(/\{[\d,]*\}|[()^$*+?|\\]/g, "");
  const starts = [...new Set(["", ...Array.from({ length: Math.min(plain.length, 12) }, (_, i) => plain.slice(0, i + 1)), plain])];
  const expression = new RegExp(source, flags);
  for (const start of starts)
    for (const piece of new Set([...ALPHABET, ...starts.filter(Boolean)]))
      for (const end of ["", "\n!"]) {
        expression.lastIndex = 0;
        expression.test(start + piece.repeat(SIZE / piece.length) + end);
      }
}
`;

/** Run the program. Returns its last line, and whether it ended within `seconds` of CPU time. */
async function tried(literals: string[], seconds: number): Promise<{ last: string; ended: boolean }> {
  const limited = `ulimit -t ${seconds}; exec "${process.execPath}" -e "$PROGRAM"`;
  const child = spawn("sh", ["-c", limited], { env: { ...process.env, PROGRAM }, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(JSON.stringify(literals));
  let output = "";
  child.stdout.on("data", (data: Buffer) => (output += data.toString()));
  const status = await new Promise((resolve) => child.on("close", resolve));
  return { last: output.trim().split("\n").at(-1) ?? "", ended: status === 0 };
}

describe("regular expressions", () => {
  it("of the source are fast on hostile text", { timeout: 600_000 }, async () => {
    const literals = [...new Set(files.flatMap((file) => file.literals))];
    expect(literals.length).toBeGreaterThan(20);
    expect(await tried(literals, 60)).toEqual({ last: literals.at(-1), ended: true });
  });

  it("that are slow are noticed", { timeout: 600_000 }, async () => {
    for (const literal of ["/a+$/", "/<b[^>]*>/", "/^(?:\\s+)+x/"])
      expect(await tried([literal], 3)).toEqual({ last: literal, ended: false });
  });

  it("are made from users' text in one file only", () => {
    expect(files.filter((file) => file.constructorCalls > 0).map((file) => file.path)).toEqual([AUTOMATON]);
  });
});
