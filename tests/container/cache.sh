# Sourced by images, and by tests/walk/run: what all clones on this machine share, so that only the first of them makes
# it. A folder each, named for what it is made from: `images-KEY` (Debian, Rust and Postgres, as archives),
# `dependencies-KEY` (a target folder of cargo's with the gateway's dependencies, profile dev), and `walk-KEY` (Debian,
# unpacked, with packages that aren't installed yet).
# shellcheck shell=bash

cache=${MAILGATE_CONTAINER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mailgate/container}

# Of each kind the two that were used last, and nothing that a month has passed by.
KEPT=2
KEPT_DAYS=30

# One clone at a time makes things or reads them; another one waits, and finds them made.
lock_cache() {
    mkdir -p "$cache"
    exec 7>"$cache/lock"
    flock --nonblock 7 && return
    say "waiting for another clone, which uses $cache"
    flock --timeout 3600 7 || fail "another run has held $cache/lock for an hour"
}

# For the processes in the background too, which have the same file open.
unlock_cache() { flock --unlock 7; }

# Prints the folder of a kind whose key is what standard input holds.
cached() {
    local folder
    folder=$cache/$1-$(sha256sum | cut -c 1-16)
    mkdir -p "$folder"
    touch "$folder"
    printf '%s' "$folder"
}

prune_cache() {
    local kind
    for kind in images dependencies walk; do
        find "$cache" -mindepth 1 -maxdepth 1 -name "$kind-*" -printf '%T@ %p\n' | sort -rn |
            tail -n +$((KEPT + 1)) | cut -d ' ' -f 2- | xargs --no-run-if-empty --delimiter '\n' rm -rf
    done
    find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime "+$KEPT_DAYS" -exec rm -rf {} +
}
