#!/usr/bin/env bash
# Builds the page from frontend/src aside, and compares it with the committed one. One version of Node gives the same bytes each time.
set -euo pipefail
cd "$(dirname "$0")/../frontend"
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx vite build --logLevel warn --outDir "$built" --emptyOutDir
npx vite build --logLevel warn --outDir "$built" --config vite.standalone.config.ts
diff -rq "$built" ../tftracer/static || {
  echo "tftracer/static is not what frontend/src builds (with Node $(node --version)): run make frontend, and commit it."
  exit 1
}
