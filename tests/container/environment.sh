# Sourced: where the container test keeps its images, and how podman, buildah and podman-compose run
# here. Everything lies in target/container, but for what clones share (cache.sh); nothing of the machine's
# own containers is touched.
# shellcheck shell=bash

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
home=$repository/target/container
mkdir -p "$home"

export CONTAINERS_CONF=$home/containers.conf
export CONTAINERS_STORAGE_CONF=$home/storage.conf
export CONTAINERS_REGISTRIES_CONF=$home/registries.conf
export TMPDIR=$home/tmp
mkdir -p "$TMPDIR"
export CONTAINER_TEST_BEGAN=${CONTAINER_TEST_BEGAN:-$EPOCHSECONDS}

say() { printf 'container: [%3d s] %s\n' $((EPOCHSECONDS - CONTAINER_TEST_BEGAN)) "$*"; }
fail() {
    printf 'container: %s\n' "$@" >&2
    exit 1
}

# Cargo's profile of the gateway in the image: `dev` takes a minute, `release` is what operators build.
profile=${MAILGATE_CONTAINER_PROFILE:-dev}
[[ $profile == dev || $profile == release ]] || fail "MAILGATE_CONTAINER_PROFILE is dev or release, not $profile"

# overlayfs, unless the folder lies on a file system (such as another overlay) that can't carry it.
storage_driver() {
    local probe=$home/tmp/overlay-probe driver=vfs
    mkdir -p "$probe"/{lower,upper,work,merged}
    if mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" \
        "$probe/merged" 2>/dev/null; then
        umount "$probe/merged"
        driver=overlay
    fi
    rm -rf "$probe"
    printf '%s' "$driver"
}

# Writes the files of settings that the variables above name, and clears away what a killed run left.
configure() {
    rm -rf "$home/tmp"
    mkdir "$home/tmp"
    cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "$(storage_driver)"
graphroot = "$home/storage"
runroot = "/run/containers/storage"
END
    # Limits below the machine's own, which a container without CAP_SYS_RESOURCE can't raise; no systemd,
    # so cgroups by their files, and events in a file.
    cat >"$CONTAINERS_CONF" <<END
[containers]
cgroups = "no-conmon"
default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]
log_driver = "k8s-file"
[network]
network_backend = "netavark"
network_config_dir = "$home/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
    # No registry is ever asked: every image is made here.
    echo 'unqualified-search-registries = []' >"$CONTAINERS_REGISTRIES_CONF"
}
