# steps.sh - Runs the steps of script/test and .ci/run and counts their tests.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sourced from the root of the source tree. Every step writes to a log of its
# own in $steps_logs; what a failed one said last is shown.

steps_logs=build/logs
steps_passed=0
steps_failed=0
mkdir -p "$steps_logs"

# A later clone or build folder of the same sources finds its objects.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1

# steps_run NAME COMMAND...: the command's status; output into the log.
steps_run() {
  local name=$1 log="$steps_logs/${1// /-}.log" start=$SECONDS status=0
  shift
  [ -t 1 ] && printf '...  %s' "$name"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  [ -t 1 ] && printf '\r\033[K'
  if [ $status -eq 0 ]; then
    echo "ok   $name ($((SECONDS - start)) s)"
  else
    echo "FAIL $name ($((SECONDS - start)) s), exit status $status; $log ends with:"
    tail -n "${STEPS_TAIL:-40}" "$log" | sed 's/^/     /'
  fi
  return $status
}

# One test that passes when its command does.
steps_check() {
  if steps_run "$@"; then
    steps_passed=$((steps_passed + 1))
  else
    steps_failed=$((steps_failed + 1))
  fi
}

# A step that the rest needs: its failure ends the run.
steps_need() {
  steps_run "$@" && return
  steps_failed=$((steps_failed + 1))
  steps_close
  exit 1
}

# A test runner: its own closing lines, of ctest, lit or ours, are counted. One
# that fails without such a line, or runs no test, is a failed test.
steps_tests() {
  local log="$steps_logs/${1// /-}.log" status=0 passed failed
  steps_run "$@" || status=1
  read -r passed failed < <(awk '
    /^[0-9]+ passed, [0-9]+ failed/              { p += $1; f += $3 }
    /tests passed, [0-9]+ tests? failed out of/  { split($0, w, "tests passed, "); split(w[2], n, " "); f += n[1]
                                                   p += $NF - n[1] }
    /^ +(Passed|Expectedly Failed) *: +[0-9]+/   { p += $(NF - (NF > 2 && $NF ~ /%/)) }
    /^ +(Failed|Timed Out|Unresolved|Unexpectedly Passed) *: +[0-9]+/ { f += $(NF - (NF > 2 && $NF ~ /%/)) }
    END { print p + 0, f + 0 }' "$log")
  if [ $((passed + failed)) -eq 0 ] || { [ $status -ne 0 ] && [ "$failed" -eq 0 ]; }; then
    [ $status -eq 0 ] && echo "FAIL $1: it ran no test"
    failed=1
  fi
  steps_passed=$((steps_passed + passed))
  steps_failed=$((steps_failed + failed))
}

# The closing line, or the counts into the file $STEPS_TALLY for a caller that
# goes on counting.
steps_close() {
  if [ -n "${STEPS_TALLY:-}" ]; then
    echo "$steps_passed $steps_failed" >"$STEPS_TALLY"
  else
    echo "$steps_passed passed, $steps_failed failed"
  fi
}
