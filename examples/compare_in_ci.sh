#!/usr/bin/env bash
# Is a script slower at one commit than at another? Records sessions of both in turns, and compares them.
#
#     bash compare_in_ci.sh BEFORE AFTER SESSIONS SCRIPT [ARGUMENT...]
#
# BEFORE and AFTER are commits of the repository that holds SCRIPT. The sessions are kept in ./sessions; FAIL_IF is the rule. Rules on
# ops, memory, bytes and findings read TRACES traces of each session, taken from step FROM on.
set -euo pipefail
before=$1 after=$2 sessions=$3 script=$4
shift 4
trees=$(mktemp -d)
git worktree add --quiet --detach "$trees/before" "$before"
git worktree add --quiet --detach "$trees/after" "$after"
trap 'git worktree remove --force "$trees/before"; git worktree remove --force "$trees/after"' EXIT
mkdir -p sessions
for number in $(seq "$sessions"); do
    for side in before after; do
        (cd "$trees/$side" && tftracer run --port 0 --trace "${TRACES:-5}" --from "${FROM:-100}" --output "$OLDPWD/sessions/$side-$number.tftrace" "$script" "$@")
    done
done
tftracer compare --fail-if "${FAIL_IF:-step > 5%}" --junit sessions/compare.xml sessions/before-*.tftrace -- sessions/after-*.tftrace
