/** A canvas that fills its parent. It is redrawn at most once a frame, but at once after a change of size. Subclasses draw. */
export abstract class CanvasView {
  /** Size in CSS pixels; 0 until the parent has a size. */
  width = 0;
  height = 0;
  /** Device pixels for each CSS pixel. */
  protected ratio = 1;
  private frame = 0;
  private disposed = false;
  private readonly observer = new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    this.resize(Math.floor(width), Math.floor(height));
  });

  constructor(protected readonly canvas: HTMLCanvasElement) {
    if (canvas.parentElement) this.observer.observe(canvas.parentElement);
  }

  dispose(): void {
    this.disposed = true;
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Take the parent's size now. Without this call the canvas takes it at the next frame. */
  fill(): void {
    const parent = this.canvas.parentElement;
    if (parent) this.resize(parent.clientWidth, parent.clientHeight);
  }

  resize(width: number, height: number): void {
    if (width === 0 || this.disposed) return; // not laid out, or hidden
    this.width = width;
    this.height = height;
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.resized();
    this.drawNow(); // a change of size empties the canvas
  }

  redraw(): void {
    if (this.frame === 0 && !this.disposed && this.width > 0) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  private drawNow(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.disposed) this.draw();
  }

  protected abstract resized(): void;
  protected abstract draw(): void;
}
