#!/usr/bin/env bash
# Sets up .venv and node_modules for this checkout, from the pins in constraints.txt and package-lock.json.
# Does nothing where both are in place already: each stamp under .setup/ holds the hash of what its part was made from.
# PYTHON=... names the interpreter to make .venv with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/setup/common.sh

python_is_new_enough() { "$@" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# The first interpreter that runs and is new enough; a pyenv shim is on PATH even where its version is not chosen, so each is tried.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3}; do
        if command -v "$candidate" >/dev/null 2>&1 && python_is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

node_is_new_enough() { command -v node >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'; }

check_tools() {
    local -a missing=()
    [ -n "$python" ] || missing+=("Python 3.11 or newer (python3)")
    node_is_new_enough || missing+=("Node.js 20 or newer (node)")
    command -v npm >/dev/null 2>&1 || missing+=("npm, which comes with Node.js")
    command -v gcc >/dev/null 2>&1 || missing+=("a C compiler (gcc)")
    [ ${#missing[@]} -eq 0 ] || fail "set-up needs, and does not find:" "${missing[@]}"
}

# Debian keeps ensurepip, which a virtual environment starts from, in a package of its own.
provide_ensurepip() {
    "$python" -c 'import ensurepip' >/dev/null 2>&1 && return 0
    may_apt || fail "$python cannot make a virtual environment:" "install the Debian package python3-venv (or your system's ensurepip)"
    apt_install python3-venv
    "$python" -c 'import ensurepip' >/dev/null 2>&1 || fail "$python still lacks ensurepip:" "install the venv package of that interpreter"
}

set_up_python() {
    local want
    want=$(hash_of pyproject.toml tests/setup/constraints.txt)
    if is_stamped python "$want" && python_is_new_enough .venv/bin/python; then return 0; fi
    if ! python_is_new_enough .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        provide_ensurepip
        quietly "making .venv with $python" "$python" -m venv --clear .venv
    fi
    # The build back end comes first, from the same pins, so that qgen itself is installed without fetching another one.
    quietly "installing the Python packages into .venv" pip_install hatchling editables
    quietly "installing qgen into .venv" pip_install --no-build-isolation --editable '.[dev]'
    stamp python "$want"
}

pip_install() { .venv/bin/python -m pip install --disable-pip-version-check --constraint tests/setup/constraints.txt "$@"; }

set_up_node() {
    local want
    want=$(hash_of package.json package-lock.json .npmrc)
    if is_stamped node "$want" && [ -d node_modules/naga-wasm ]; then return 0; fi
    quietly "installing the npm packages into node_modules" npm ci --loglevel=error
    stamp node "$want"
}

if [ -x .venv/bin/python ] && python_is_new_enough .venv/bin/python; then python=.venv/bin/python; else python=$(find_python) || python=""; fi
check_tools
set_up_python
set_up_node
