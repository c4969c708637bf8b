#!/usr/bin/env bash
# Every figure that the docs quote, in turn; each script prints a table and says what it compared with what.
# Absolute times belong to the machine; the ratios are what docs/performance.rst speaks of.
set -euo pipefail
cd "$(dirname "$0")/.."
export TF_CPP_MIN_LOG_LEVEL=2
mkdir -p benchmarks/out
[ -e .envs/original/.made ] || { bash benchmarks/original/setup.sh .envs/original && touch .envs/original/.made; }
only=${1:-}
failed=()
bench() {  # bench ENVIRONMENT SCRIPT [ARGUMENT...]
    local name=${2%.py}
    if [ -z "$only" ] || [ "$only" = "$name" ]; then
        local begun=$SECONDS
        echo "== $name"
        ".envs/$1/bin/python" "benchmarks/$2" "${@:3}" 2>&1 | tee "benchmarks/out/$name.txt" || failed+=("$name")
        echo "== $name: $((SECONDS - begun)) s"
    fi
}
# What is measured in pairs gets a narrower interval with more of them. THOROUGH=1 takes as many as the scripts do by themselves.
few() { [ -n "${THOROUGH:-}" ] || echo "$@"; }
bench tf221 make_traces.py
bench tf221 bench_hook.py
bench tf221 bench_functions.py
bench tf221 bench_traced_steps.py
bench tf221 bench_fit.py $(few --pairs 40)
bench tf221 bench_stalls.py $(few --pairs 40)
bench tf221 bench_retracing.py
bench tf221 bench_ledger.py $(few 10)
bench tf215 bench_ledger.py $(few 10)
bench view bench_periods.py $(few --histories 1000)
bench view bench_decode.py
bench view bench_open.py
bench view bench_profiles.py
bench view bench_analyses.py
bench tf215 bench_exports.py
bench view bench_page.py
bench view bench_live_page.py
bench view bench_live_profile.py
bench tf221 bench_training.py $(few --pairs 30)
bench tf221 bench_flood.py $(few --pairs 30)
bench tf221 bench_busy_tracing.py
bench tf215 bench_busy_tracing.py
bench tf221 bench_gil.py
bench tf221 bench_memory.py
bench tf221 bench_memory_growth.py
bench tf221 bench_pipelines.py
bench view bench_hub.py
bench view bench_tables.py
bench view bench_fleet.py
bench tf221 record_comparison.py benchmarks/out/comparison
bench view bench_compare.py benchmarks/out/comparison
bench tf221 bench_verdict.py benchmarks/out/verdict $(few --planted one_op)
bench view bench_verdict.py benchmarks/out/verdict --judge
bench tf221 kill_test.py $(few --times 40)
[ ${#failed[@]} -eq 0 ] || { echo "FAILED: ${failed[*]}"; exit 1; }
