# syntax=docker/dockerfile:1

# Both stages are Debian 12, so that the binary meets the libpq and the C library it was linked with.
FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends libpq-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The dependencies are fetched anew only when the manifest changes. Package.resolved is taken where there is one.
COPY Package.swift Package.resolved* ./
RUN swift package resolve
COPY Plugins ./Plugins
COPY sql ./sql
COPY Sources ./Sources
# Not built here, but the manifest names them, and the package manager wants every target's directory.
COPY Tests ./Tests
COPY Fuzz ./Fuzz
COPY Examples ./Examples
# The Swift runtime goes into the binary: the image that runs it needs no toolchain.
RUN swift build -c release --product headroom --static-swift-stdlib \
    && install -D --mode=0755 "$(swift build -c release --static-swift-stdlib --show-bin-path)/headroom" \
        /out/usr/local/bin/headroom \
    && strip --strip-debug /out/usr/local/bin/headroom

FROM debian:bookworm-slim
# The certificates are for a database elsewhere: sslmode=verify-full sslrootcert=/etc/ssl/certs/ca-certificates.crt.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates libpq5 libstdc++6 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin headroom
COPY --from=build /out/ /
USER headroom
# Loopback inside a container is nobody's. Whether those who reach the port are trusted is known where it is published and
# not here, so it is said there: HEADROOM_TRUSTED_NETWORK=yes, or TLS and tokens. Without either it does not start.
ENV HEADROOM_LISTEN=0.0.0.0:6747 HEADROOM_HTTP=0.0.0.0:6748
EXPOSE 6747 6748
# There is no PostgreSQL in here: give it DATABASE_URL, or HEADROOM_DATABASE_URL.
ENTRYPOINT ["headroom"]
CMD ["serve"]
# Also with TLS, of which the answer in plain text is that the port speaks it.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["headroom", "ping", "127.0.0.1:6747"]
