/** The state of a virtual table, without its look: the visible rows, and the active row, which the keys move. */
import { computed, nextTick, onMounted, ref, watch, type ComputedRef, type Ref, type ShallowRef } from "vue";
import { useResize } from "./useResize";
import { filterRows, matcher, sortRows, visibleRange, type TableColumn, type TableSort } from "./table";

/** Height of each row and of the head, in pixels. It is fixed, so that a million rows cost no more than a few. */
export const ROW_PX = 28;

export interface TableOptions<Row> {
  viewport: Readonly<ShallowRef<HTMLElement | null>>;
  columns: () => readonly TableColumn<Row>[];
  rows: () => readonly Row[];
  key: (row: Row) => string | number;
  selected: () => string | number | null;
  sort: Ref<TableSort | null>;
  filter: Ref<string>;
  select: (row: Row) => void;
  activate: (row: Row) => void;
}

export interface TableView<Row> {
  shown: ComputedRef<readonly Row[]>;
  range: ComputedRef<{ first: number; last: number }>;
  slice: ComputedRef<{ row: Row; index: number }[]>;
  /** Index of the row that the keys move from; -1: none. */
  active: Ref<number>;
  invalid: ComputedRef<boolean>;
  onScroll: () => void;
  onKey: (event: KeyboardEvent) => void;
  pick: (row: Row, index: number) => void;
  pageHeight: (rows: number) => number;
}

export function useTable<Row>(options: TableOptions<Row>): TableView<Row> {
  const { sort, filter, viewport } = options;
  const scrollTop = ref(0);
  const height = ref(ROW_PX * 12);
  const active = ref(-1);

  const invalid = computed(() => filter.value.trim() !== "" && matcher(filter.value) === null);
  const filtered = computed(() => filterRows(options.rows(), options.columns(), filter.value));
  const shown = computed(() => sortRows(filtered.value, options.columns(), sort.value));
  const range = computed(() => visibleRange(scrollTop.value, height.value, ROW_PX, shown.value.length));
  const slice = computed(() => {
    const { first, last } = range.value;
    return shown.value.slice(first, last).map((row, i) => ({ row, index: first + i }));
  });

  function reveal(index: number): void {
    const box = viewport.value;
    if (!box) return;
    const top = index * ROW_PX;
    const room = box.clientHeight - ROW_PX; // the head covers one row
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW_PX > box.scrollTop + room) box.scrollTop = top + ROW_PX - room;
  }

  function pick(row: Row, index: number): void {
    active.value = index;
    options.select(row);
  }

  function move(to: number): void {
    const index = Math.min(shown.value.length - 1, Math.max(0, to));
    const row = shown.value[index];
    if (row === undefined) return;
    reveal(index);
    pick(row, index);
  }

  function target(key: string): number | undefined {
    const page = Math.max(1, Math.floor(height.value / ROW_PX) - 2);
    const targets: Record<string, number> = {
      ArrowDown: active.value + 1,
      ArrowUp: active.value - 1,
      PageDown: active.value + page,
      PageUp: active.value - page,
      Home: 0,
      End: shown.value.length - 1,
    };
    return targets[key];
  }

  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== viewport.value) return;
    const to = target(event.key);
    const row = shown.value[active.value];
    if (to !== undefined) move(to);
    else if (event.key === "Enter" && row !== undefined) options.activate(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function measure(): void {
    if (viewport.value?.clientHeight) height.value = viewport.value.clientHeight;
  }
  /** Keep the active row visible when the table gets smaller. */
  function resized(): void {
    measure();
    if (active.value >= 0) reveal(active.value);
  }
  /** Read the scroll position. Also called when the rows change: fewer rows scroll the box before its scroll event comes. */
  function onScroll(): void {
    scrollTop.value = viewport.value?.scrollTop ?? 0;
  }
  useResize(viewport, resized);
  onMounted(measure);
  watch(shown, onScroll, { flush: "post" });

  // Scroll to the row that was selected elsewhere (on the timeline).
  watch(
    options.selected,
    (key) => {
      const index = key === null ? -1 : shown.value.findIndex((row) => options.key(row) === key);
      if (index === active.value) return;
      active.value = index;
      if (index >= 0) void nextTick(() => reveal(index));
    },
    { immediate: true },
  );
  watch([sort, filter], () => {
    active.value = -1;
    if (viewport.value) viewport.value.scrollTop = 0;
  });

  return {
    shown,
    range,
    slice,
    active,
    invalid,
    onScroll,
    onKey,
    pick,
    pageHeight: (rows) => (rows + 1) * ROW_PX + 2,
  };
}
