#!/usr/bin/env bash
# Installs tftracer[tables] next to one release of TensorFlow in a new environment, as a user would: pip has nothing to complain of,
# both import, and a trace is exported and asked in SQL.
#
#     bash tests/installs/check.sh 2.15
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/pip" install -q --disable-pip-version-check --upgrade pip
"$folder/env/bin/pip" install -q --disable-pip-version-check "tensorflow-cpu==$version.*"
before=$("$folder/env/bin/pip" freeze --disable-pip-version-check | sort)
"$folder/env/bin/pip" install -q --disable-pip-version-check ".[tables]"
after=$("$folder/env/bin/pip" freeze --disable-pip-version-check | sort)
"$folder/env/bin/pip" check
changed=$(comm -23 <(echo "$before") <(echo "$after"))
[ -z "$changed" ] || { echo "Installing tftracer changed what TensorFlow had: $changed"; exit 1; }
cd "$folder"  # or the folder tftracer/ here would be imported
"$folder/env/bin/python" -c "import tensorflow, tftracer, duckdb; print('TensorFlow', tensorflow.__version__, 'imports with', tftracer.__version__)"
"$folder/env/bin/tftracer" export "$OLDPWD/tests/data/conv_tf2.12_cpu.pb" --parquet "$folder/tables"
"$folder/env/bin/tftracer" query "$OLDPWD/tests/data/conv_tf2.12_cpu.pb" "SELECT op, sum(total_ns) AS ns FROM ops GROUP BY op ORDER BY ns DESC LIMIT 3"
