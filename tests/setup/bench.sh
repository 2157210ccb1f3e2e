#!/usr/bin/env bash
# Installs onnxruntime-web, which the benchmark compares with, into tests/bench/node_modules: from the pins of its own, because nothing
# else needs its 150 MB. Does nothing where it is in place already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/setup/common.sh

want=$(hash_of tests/bench/package.json tests/bench/package-lock.json)
if is_stamped bench "$want" && [ -d tests/bench/node_modules/onnxruntime-web ]; then exit 0; fi
quietly "installing the npm packages into tests/bench/node_modules" npm --prefix tests/bench ci --ignore-scripts --loglevel=error
stamp bench "$want"
