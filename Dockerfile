# syntax=docker/dockerfile:1

# Both stages are Debian 12, so that libpq and the C library are those with which the binary was linked.
FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends libpq-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The dependencies are fetched again only if the manifest changes. Package.resolved is used if there is one.
COPY Package.swift Package.resolved* ./
RUN swift package resolve
COPY Plugins ./Plugins
COPY sql ./sql
COPY Sources ./Sources
# Not built here, but the package manager requires the directory of every target.
COPY Tests ./Tests
COPY Fuzz ./Fuzz
COPY Examples ./Examples
# The Swift runtime is linked statically, so the final image needs no toolchain.
RUN swift build -c release --product headroom --static-swift-stdlib \
    && install -D --mode=0755 "$(swift build -c release --static-swift-stdlib --show-bin-path)/headroom" \
        /out/usr/local/bin/headroom \
    && strip --strip-debug /out/usr/local/bin/headroom

FROM debian:bookworm-slim
# The CA certificates are for a database on another machine: sslmode=verify-full sslrootcert=/etc/ssl/certs/ca-certificates.crt.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates libpq5 libstdc++6 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin headroom
COPY --from=build /out/ /
USER headroom
# Loopback cannot be reached from outside the container. The container's user decides how the port is protected:
# HEADROOM_TRUSTED_NETWORK=yes, or TLS and tokens. Without either the service does not start.
ENV HEADROOM_LISTEN=0.0.0.0:6747 HEADROOM_HTTP=0.0.0.0:6748
EXPOSE 6747 6748
# The image has no PostgreSQL: set DATABASE_URL or HEADROOM_DATABASE_URL.
ENTRYPOINT ["headroom"]
CMD ["serve"]
# This also works with TLS: ping accepts the plain-text answer that the port requires TLS.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["headroom", "ping", "127.0.0.1:6747"]
