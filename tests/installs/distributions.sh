#!/usr/bin/env bash
# Builds the wheel and the source distribution, checks them as a package index would, and installs each as a user would: with its
# dependencies alone, on each of the given Pythons. A file opens and tells what holds its step back.
#
#     bash tests/installs/distributions.sh .envs/view/bin/python python3.9 python3.13
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$tool" -m build --outdir "$folder/dist" . >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
"$tool" -m twine check --strict "$folder"/dist/*
unset PYTHONPATH
data=$PWD/tests/data
for python in "$@"; do
  for distribution in "$folder"/dist/*; do
    rm -rf "$folder/env"
    "$python" -m venv "$folder/env"
    (
      cd "$folder"  # or the folder tftracer/ here would be imported
      env/bin/pip install -q --disable-pip-version-check "$distribution"
      env/bin/pip check
      env/bin/tftracer "$data/versions/2-saved.tftrace" --summary | grep -q "Budget" || { echo "no summary"; exit 1; }
      env/bin/python - "$data/ps_worker0_tf2.21_cpu.pb" <<'CODE'
import pathlib, sys, tftracer
with tftracer.open(sys.argv[1]) as session:
    assert len(session.slices()) == session.traces()[0]["nodes"] > 0
folder = pathlib.Path(tftracer.__file__).parent
assert (folder / "static/index.html").is_file() and (folder / "static/THIRD_PARTY_NOTICES.txt").is_file()
assert (folder / "py.typed").is_file() and (folder / "autostart/sitecustomize.py").is_file()
print("Python", sys.version.split()[0], "tftracer", tftracer.__version__, "is installed and opens a file")
CODE
    ) || { echo "FAILED: $distribution on $("$python" --version)"; exit 1; }
  done
done
