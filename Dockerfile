# Builds the gateway, and images of it on Debian. The last one, which a build without `--target` makes, holds the binary
# and root certificates; `--target demo` makes one with the sandbox of `mailgate dev` and a Postgres, to try it.

# By other names, or with a digest behind them: docker-compose.yml and deploy/pin-images.
ARG RUST_IMAGE=rust:1.95-slim-trixie
ARG DEBIAN_IMAGE=debian:trixie-slim

FROM ${RUST_IMAGE} AS sources
# One of Cargo's profiles. Tests build `dev`, which is compiled sooner; everybody else wants `release`.
ARG PROFILE=release
WORKDIR /build
# Queries are checked against .sqlx; what a debugger would want stays out of the image.
ENV SQLX_OFFLINE=true \
    CARGO_INCREMENTAL=0 \
    CARGO_PROFILE_RELEASE_DEBUG=false

# What the dependencies are compiled by, in layers of their own: they are compiled again only when one of these files
# changes.
COPY Cargo.toml Cargo.lock ./
COPY crates/bounces/Cargo.toml crates/bounces/
COPY crates/domain/Cargo.toml crates/domain/
COPY crates/portal/Cargo.toml crates/portal/
COPY crates/providers/Cargo.toml crates/providers/
COPY crates/rest/Cargo.toml crates/rest/
COPY crates/sandbox/Cargo.toml crates/sandbox/
COPY crates/server/Cargo.toml crates/server/
COPY crates/settings/Cargo.toml crates/settings/
COPY crates/smtp/Cargo.toml crates/smtp/
COPY crates/storage/Cargo.toml crates/storage/
COPY crates/telemetry/Cargo.toml crates/telemetry/
COPY crates/types/Cargo.toml crates/types/
RUN for crate in . crates/*; do mkdir "$crate/src" && echo '//! Nothing yet.' > "$crate/src/lib.rs" || exit 1; done \
    && printf '//! Nothing yet.\nfn main() {}\n' > src/main.rs

# Without the sandbox, which has no place in production.
FROM sources AS build
ARG PROFILE=release
RUN cargo build --profile "$PROFILE" --locked --package mailgate --no-default-features --lib --bins \
    && rm -r src crates/*/src
COPY .sqlx .sqlx
COPY config config
COPY migrations migrations
COPY crates crates
COPY src src
COPY assets assets
# The portal shows them with an app's own values.
COPY examples examples
# What the log's first line and `mailgate --version` name: --build-arg MAILGATE_COMMIT="$(git rev-parse --short=12 HEAD)"
ARG MAILGATE_COMMIT=unknown
# Newer than the empty sources above, whatever time the files came with. The profile dev has its binaries in `debug`.
RUN touch src/lib.rs src/main.rs crates/*/src/lib.rs \
    && cargo build --profile "$PROFILE" --locked --package mailgate --no-default-features --bin mailgate \
    && folder=$(test "$PROFILE" = dev && echo debug || echo "$PROFILE") \
    && strip --strip-debug -o /usr/local/bin/mailgate "target/$folder/mailgate"

FROM ${DEBIAN_IMAGE} AS gateway
LABEL org.opencontainers.image.title="Mailgate" \
      org.opencontainers.image.description="An email gateway that sends through the end users' own connected OAuth mailboxes" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/debian:trixie-slim"

# The system's root certificates rather than some inside the binary: a rebuild renews them, and
# SSL_CERT_FILE puts others in their place.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log

COPY --from=build /usr/local/bin/mailgate /usr/local/bin/mailgate
# The file of settings, to mount one's own over.
COPY deploy/mailgate.toml /etc/mailgate/mailgate.toml
ENV MAILGATE_CONFIG=/etc/mailgate/mailgate.toml

# Nobody's: the gateway owns no file, and writes none.
USER 10001:10001
# Submission with STARTTLS and with TLS, REST, metrics.
EXPOSE 587 465 8080 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
    CMD ["/usr/local/bin/mailgate", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/mailgate"]
CMD ["serve"]

# With the sandbox.
FROM sources AS demo-build
ARG PROFILE=release
RUN cargo build --profile "$PROFILE" --locked --package mailgate --lib --bins \
    && rm -r src crates/*/src
COPY .sqlx .sqlx
COPY config config
COPY migrations migrations
COPY crates crates
COPY src src
COPY assets assets
COPY examples examples
RUN touch src/lib.rs src/main.rs crates/*/src/lib.rs \
    && cargo build --profile "$PROFILE" --locked --package mailgate --bin mailgate \
    && folder=$(test "$PROFILE" = dev && echo debug || echo "$PROFILE") \
    && strip --strip-debug -o /usr/local/bin/mailgate "target/$folder/mailgate"

# `mailgate dev`: the gateway, its sandbox and a private Postgres in one container. It keeps its state in the container,
# and is no place for mail that matters.
FROM ${DEBIAN_IMAGE} AS demo
LABEL org.opencontainers.image.title="Mailgate, to try it" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/debian:trixie-slim"
# Postgres wants a user that has a name.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates postgresql \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/lib/postgresql/* \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/mailgate mailgate
COPY --from=demo-build /usr/local/bin/mailgate /usr/local/bin/mailgate
# All of the container's addresses, by the numbers that the machine's loopback publishes them under: what is printed
# leads here then.
ENV MAILGATE__HTTP__LISTEN=[::]:8080 \
    MAILGATE__SMTP__STARTTLS_LISTEN=[::]:2587 \
    MAILGATE__SMTP__TLS_LISTEN=[::]:2465 \
    MAILGATE__SANDBOX__LISTEN=[::]:8025
WORKDIR /var/lib/mailgate
USER 10001:10001
EXPOSE 8080 2587 2465 8025
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
    CMD ["/usr/bin/test", "-s", "/var/lib/mailgate/dev.json"]
ENTRYPOINT ["/usr/local/bin/mailgate"]
CMD ["dev", "--dir", "/var/lib/mailgate"]

# What a build without a target makes is for production.
FROM gateway
