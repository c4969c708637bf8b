/**
 * A made-up timeline is drawn where nobody sees it, so that the engine has compiled the code and measured the font when the first
 * real one comes: that was a quarter of the time to its picture.
 */
import { THEMES } from "./colours";
import { messageOf } from "./fixture";
import { TimelineModel } from "./model";
import { NO_FILTERS, shades } from "./shading";
import { TimelineView } from "./view";

export function warm(): void {
  // from specks to slices wide enough for a label
  const slices = Array.from({ length: 64 }, (_, i) => ({
    start: i ** 3,
    duration: 3 * i ** 2,
    name: `name/${i}`,
    op: "MatMul",
  }));
  const model = new TimelineModel(messageOf([{ rows: [slices, slices] }]));
  const nothing = (): void => undefined;
  const events = { hover: nothing, select: nothing, range: nothing, moved: nothing, painted: nothing };
  const shade = shades(model, NO_FILTERS, "none", null);
  const view = new TimelineView(document.createElement("canvas"), model, THEMES.light, shade, events);
  view.resize(800, 200, 1, false);
  view.drawNow();
  view.dispose();
}
