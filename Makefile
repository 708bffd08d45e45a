# make dev       brings up the whole gateway on this machine, with a sandbox to send to
# make test      every test but the container's, against Postfix, Dovecot and the other peers too (Debian 12, as root)
# make container image and compose file on podman (Debian 12, as root); MAILGATE_CONTAINER_PROFILE=release
#                before a release: the image that operators build, which takes twenty minutes
# make walk      the operators' pages, typed block by block on an empty Debian (Debian 12, as root); ARGS="root --verbose"
# make dist      what is released, in target/dist: program, Debian package, list of contents, checksums
# make crash     the crash test at the length that a release wants
# make chaos     everything that can go wrong, in any order, for BENCH_SECONDS=600 (Debian 12, as root)
# make upgrade   three gateways are upgraded one by one under load, from the commit before the newest migration (or
#                ARGS=COMMIT); compiles that commit first
# make bench     how fast it is, beside Postfix and Dovecot (Debian 12, as root); BENCH_SECONDS=5 for
#                each step, ARGS="REST 64" for the steps with these words in their names; BENCH_SESSIONS=50000
#                idle sessions in the step ARGS="sessions"
# make bench-logs  the reports over BENCH_ROWS=10000000 messages, beside the same over 10 thousand; with
#                BENCH_DIR=folder the log stays there and is used again (ARGS="fill", "reports", "portal", "journal" are its parts)
# make check     format, lints, licences and bans, offline SQL data
# make fuzz      every parser of what comes from outside under libFuzzer, FUZZ_SECONDS=3600 each, FUZZ_JOBS at the
#                same time (one for each core); ARGS="smtp_session imap_responses" for these alone
# make fuzz-corpus  writes the committed corpora anew from all that the fuzzer has found
# make sqlx      writes .sqlx anew after a query or a migration has changed
# make command-line  writes docs/command-line.md anew after a command or an option has changed
# make pictures  takes docs/images anew, after a page has changed (Debian 12, as root)
# make vendor   fetches the portal's scripts anew, at the versions of assets/vendor/VERSIONS
# make advisories  known vulnerabilities of the dependencies (fetches their database, and does without it offline)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
export SQLX_OFFLINE ?= true
export CARGO_TERM_PROGRESS_WHEN ?= never

.PHONY: dev test container walk dist crash chaos upgrade bench bench-logs fuzz fuzz-corpus check sqlx command-line pictures vendor advisories compiler postgres clients

dev: compiler postgres clients
	@echo "Building (the first time takes some minutes) …"
	@exec cargo run --quiet --locked -- dev $(ARGS)

# The peers are fetched while the tests are compiled. Tests wait a lot, so more of them run than there are cores.
test: compiler postgres
	@tests/peers/install & peers=$$!; cargo test --locked --no-run; wait $$peers
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) * 2))} cargo test --locked --quiet

container: compiler
	tests/container/run

walk: compiler
	tests/walk/run $(ARGS)

dist: compiler
	tools/dist

crash: compiler postgres
	MAILGATE_CRASH_KILLS=$${MAILGATE_CRASH_KILLS:-200,20,30} MAILGATE_CRASH_STOPS=$${MAILGATE_CRASH_STOPS:-10} MAILGATE_CRASH_FAILOVERS=$${MAILGATE_CRASH_FAILOVERS:-5} cargo test --locked --test integration -- crash:: replicas::stopped --nocapture

# The disks that it fills are mounted where nobody else sees them.
chaos: compiler postgres
	@tests/peers/install
	@tools/debian-packages patroni python3-etcd etcd-server libfaketime
	MAILGATE_CHAOS_SECONDS=$${BENCH_SECONDS:-600} unshare --mount cargo test --locked --test integration -- chaos:: --nocapture

upgrade: compiler postgres
	@tests/peers/install
	tools/upgrade $(ARGS)

bench: compiler postgres
	@tools/debian-packages dovecot-core postfix
	cargo bench --locked --bench throughput -- $(ARGS)

bench-logs: compiler postgres
	cargo bench --locked --bench logs -- $(ARGS)

fuzz: compiler
	@fuzz/run $(ARGS)

fuzz-corpus: compiler
	@fuzz/run --keep $(ARGS)

check: compiler postgres
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	tools/sqlx-offline --check cargo clippy --locked --all-targets --quiet
	cargo clippy --locked --package mailgate --no-default-features --quiet
	cargo clippy --locked --package mailgate --no-default-features --features fuzzing --lib --quiet
	"$$(tools/cargo-deny)" check bans licenses sources

sqlx: compiler postgres
	tools/sqlx-offline

command-line: compiler
	cargo build --locked --quiet
	tools/command-line $${CARGO_TARGET_DIR:-target}/debug/mailgate

# The font is for the Japanese of the connect page.
pictures: compiler postgres
	@tests/peers/install
	@tools/debian-packages fonts-vlgothic
	cargo build --locked --quiet
	tools/pictures $${CARGO_TARGET_DIR:-target}/debug/mailgate

vendor:
	tools/vendor

advisories:
	tools/advisories

compiler:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup (see docs/quick-start.md)" >&2; exit 1; }
	@command -v cc >/dev/null || tools/debian-packages gcc libc6-dev

# Whoever has Postgres's programs elsewhere than Debian puts them names the folder in PG_BINDIR.
postgres:
	@{ [ -n "$${PG_BINDIR:-}" ] || command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; } || tools/debian-packages postgresql

# For the lines that `mailgate dev` prints; the gateway needs neither.
clients:
	@command -v curl >/dev/null || tools/debian-packages curl ca-certificates || echo "curl is missing: the curl line won't work"
	@{ command -v swaks >/dev/null && perl -MNet::SSLeay -e1 2>/dev/null; } || tools/debian-packages swaks libnet-ssleay-perl || echo "swaks is missing: the swaks line won't work"
