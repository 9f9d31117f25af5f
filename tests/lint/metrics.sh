#!/bin/sh
# metrics.sh - rules and the dashboard of docs/prometheus use metrics that there
# are
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

{
	/usr/bin/python3 tests/prometheus/used.py || :
} | verdict 'use what schema/metrics.txt has, and say in docs/operations.md
  what an alert means'
