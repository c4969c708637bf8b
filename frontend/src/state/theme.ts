/** The theme: light, dark or the system's. The choice is stored in this browser. */
import { readonly, ref, type DeepReadonly, type Ref } from "vue";

export type ThemeChoice = "system" | "light" | "dark";
const STORAGE_KEY = "tftracer-theme";
const choices: readonly ThemeChoice[] = ["system", "light", "dark"];

function storedChoice(): ThemeChoice {
  try {
    const value = localStorage.getItem(STORAGE_KEY);
    return choices.find((c) => c === value) ?? "system";
  } catch {
    return "system"; // no storage in this frame
  }
}

const choice = ref<ThemeChoice>("system");
/** The theme that is shown now; canvases redraw when it changes. */
const shown = ref<"light" | "dark">("light");
const system = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

function apply(): void {
  const root = document.documentElement;
  if (choice.value === "system") root.removeAttribute("data-theme");
  else root.dataset["theme"] = choice.value;
  shown.value = choice.value === "system" ? (system?.matches ? "dark" : "light") : choice.value;
}

export function startTheme(): void {
  choice.value = storedChoice();
  system?.addEventListener("change", apply);
  apply();
}

export function setTheme(value: ThemeChoice): void {
  choice.value = value;
  try {
    localStorage.setItem(STORAGE_KEY, value);
  } catch {
    // no storage: the choice lasts as long as the page
  }
  apply();
}

export function useTheme(): { choice: DeepReadonly<Ref<ThemeChoice>>; shown: DeepReadonly<Ref<"light" | "dark">> } {
  return { choice: readonly(choice), shown: readonly(shown) };
}

/** Return the value of a design token, for canvases: `token("--accent")`. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
