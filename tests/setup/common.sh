# What the set-up scripts share; sourced from the root of the checkout.

state=.setup
mkdir -p "$state"

# fail HEADING ITEM...: names what is missing, one a line, and ends the set-up.
fail() {
    printf 'error: %s\n' "$1" >&2
    shift
    printf '  - %s\n' "$@" >&2
    exit 1
}

# quietly WHAT COMMAND...: says what is done; the command's own output is shown only if it fails.
quietly() {
    local what=$1 log
    shift
    log=$(mktemp "$state/log.XXXXXX")
    printf '%s ...\n' "$what"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        fail "this failed, its output is above:" "$what"
    fi
    rm -f "$log"
}

hash_of() { cat -- "$@" | cksum; }
is_stamped() { [ -f "$state/$1.stamp" ] && [ "$(cat "$state/$1.stamp")" = "$2" ]; }
stamp() { printf '%s\n' "$2" >"$state/$1.stamp"; }

may_apt() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() {
    local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
    quietly "updating the list of Debian packages" "${apt[@]}" update
    quietly "installing the Debian packages $*" "${apt[@]}" install --no-install-recommends "$@"
}
