/** The properties and the events of every analysis tab. The trace's state owns the selection; tabs emit changes of it. */
export interface TabProps {
  readonly trace: number;
  /** The index of the selected node; null: none. */
  readonly selected: number | null;
}

export interface TabEvents {
  /** Select a node here and on the timeline. */
  select: [node: number];
  /** Mark this range (ns since the trace's start) on the timeline and bring it into view. */
  show: [startNs: number, endNs: number];
}
