import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { keyHeader, keyProtocols, pageKey, serverRoot, takeKey } from "./key";

function open(path: string, base = "/"): void {
  history.replaceState(null, "", path);
  document.head.innerHTML = `<base href="${base}">`;
}

beforeEach(() => localStorage.clear());
afterEach(() => vi.restoreAllMocks());

describe("the page's key", () => {
  it("is read from the URL that a login leads to, and removed from the address bar", () => {
    open("/traces/3?tab=ops#key=abc-_1");
    takeKey();
    expect(location.pathname + location.search + location.hash).toBe("/traces/3?tab=ops");
    expect(pageKey()).toBe("abc-_1");
    expect(keyHeader()).toEqual({ "Tftracer-Key": "abc-_1" });
    expect(keyProtocols()).toEqual(["tftracer", "key.abc-_1"]);
  });

  it("is not taken from another fragment", () => {
    open("/#main");
    takeKey();
    expect(location.hash).toBe("#main");
  });

  it("is the server's key on the pages of its job's processes too", () => {
    open("/tracer/#key=one", "/tracer/");
    takeKey();
    open("/tracer/job/processes/w-1/traces/2", "/tracer/job/processes/w-1/");
    expect(serverRoot()).toBe("/tracer/");
    expect(pageKey()).toBe("one");
    open("/other/", "/other/");
    localStorage.setItem("tftracer key /other/", "two");
    expect(pageKey()).toBe("two");
  });

  it("lasts as long as the tab where nothing can be stored", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new DOMException("no storage", "SecurityError");
    });
    vi.spyOn(Storage.prototype, "getItem").mockImplementation(() => {
      throw new DOMException("no storage", "SecurityError");
    });
    open("/#key=kept");
    takeKey();
    expect(pageKey()).toBe("kept");
  });
});
