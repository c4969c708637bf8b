import { describe, expect, it } from "vitest";
import { fakeSession } from "../../dev/fake";
import { whereKept } from "./whereKept";

describe("where notes and bookmarks are kept", () => {
  it("is the file of a session that is recorded", () => {
    expect(whereKept(fakeSession())).toMatch(/^Kept in the session file\./);
  });

  it("is only this process if nothing writes them into a file", () => {
    const viewer = whereKept(fakeSession({ live: false }));
    expect(viewer).toMatch(/^Kept until this viewer ends\. Save on the overview/);
    const withoutFile = whereKept(fakeSession({ file: "" }));
    expect(withoutFile).toMatch(/^Kept until the script ends: this session has no file\. Save on the overview/);
    expect(viewer + withoutFile).not.toContain("Kept in");
  });
});
