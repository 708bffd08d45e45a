# Builds the gateway, and an image of it that holds the binary and root certificates on Debian.

FROM rust:1.95-slim-bookworm AS build
# One of Cargo's profiles. Tests build `dev`, which is compiled sooner; everybody else wants `release`.
ARG PROFILE=release
WORKDIR /build
# Queries are checked against .sqlx; what a debugger would want stays out of the image.
ENV SQLX_OFFLINE=true \
    CARGO_INCREMENTAL=0 \
    CARGO_PROFILE_RELEASE_DEBUG=false

# The dependencies, in a layer of their own: they are built again only when one of these files changes.
COPY Cargo.toml Cargo.lock ./
COPY crates/bounces/Cargo.toml crates/bounces/
COPY crates/sandbox/Cargo.toml crates/sandbox/
COPY crates/server/Cargo.toml crates/server/
COPY crates/smtp/Cargo.toml crates/smtp/
COPY crates/types/Cargo.toml crates/types/
RUN for crate in . crates/*; do mkdir "$crate/src" && echo '//! Nothing yet.' > "$crate/src/lib.rs" || exit 1; done \
    && printf '//! Nothing yet.\nfn main() {}\n' > src/main.rs \
    && cargo build --profile "$PROFILE" --locked --package mailgate --no-default-features --lib --bins \
    && rm -r src crates/*/src

COPY askama.toml ./
COPY .sqlx .sqlx
COPY config config
COPY migrations migrations
COPY crates crates
COPY src src
COPY templates templates
COPY assets assets
# The portal shows them with an app's own values.
COPY examples examples
# Newer than the empty sources above, whatever time the files came with. The profile dev has its binaries in `debug`.
# Without the sandbox, which has no place in production.
RUN touch src/lib.rs src/main.rs crates/*/src/lib.rs \
    && cargo build --profile "$PROFILE" --locked --package mailgate --no-default-features --bin mailgate \
    && folder=$(test "$PROFILE" = dev && echo debug || echo "$PROFILE") \
    && strip --strip-debug -o /usr/local/bin/mailgate "target/$folder/mailgate"

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="Mailgate" \
      org.opencontainers.image.description="An email gateway that sends through the end users' own connected OAuth mailboxes" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim"

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
EXPOSE 587 465 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
    CMD ["/usr/local/bin/mailgate", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/mailgate"]
CMD ["serve"]
