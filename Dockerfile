# syntax=docker/dockerfile:1

# Two ways to the same image:
#
#   docker build --tag headroom:0.2.0 .
#       compiles these sources
#   docker build --tag headroom:0.2.0 --target release --build-arg VERSION=0.2.0 .
#       takes the binary of a release, from dist/headroom-VERSION-linux-x86_64.tar.gz
#
# The base images are pinned: a tag to read, and the digest, by which it is found. The digests are those of docker-library/repo-info of
# 2026-09-19. Renew both together; `apt-get upgrade` below brings what Debian has corrected since.

# All stages are Debian 12, so that libpq and the C library are those with which the binary was linked.
FROM swift:6.3-bookworm@sha256:7060a792f4cd9eaa0d00826d941cec00ab8d252d33b8b28bc8e105f51f2dba73 AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends libpq-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# What `headroom --version` prints beside the version: --build-arg HEADROOM_COMMIT="$(git rev-parse --short=12 HEAD)".
ARG HEADROOM_COMMIT=
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

FROM debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251 AS debian

FROM debian AS runtime
# The newest versions of Debian 12's packages, which have its security updates. The CA certificates are for a database on another machine:
# sslmode=verify-full sslrootcert=/etc/ssl/certs/ca-certificates.crt. The account's number is fixed, because Kubernetes and the owners of
# mounted files name it.
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get upgrade --yes \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates libpq5 libstdc++6 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 headroom \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin headroom
# By number, or Kubernetes cannot know that it is not root.
USER 10001:10001
# Loopback cannot be reached from outside the container. The container's user decides how the port is protected:
# HEADROOM_TRUSTED_NETWORK=yes, or TLS and tokens. Without either the service does not start.
ENV HEADROOM_LISTEN=0.0.0.0:6747 HEADROOM_HTTP=0.0.0.0:6748
EXPOSE 6747 6748
LABEL org.opencontainers.image.title="Headroom" \
    org.opencontainers.image.description="Counts a chat product's messages, and says who may send another one" \
    org.opencontainers.image.licenses="Apache-2.0"
# The image has no PostgreSQL: set DATABASE_URL or HEADROOM_DATABASE_URL.
ENTRYPOINT ["headroom"]
CMD ["serve"]
# This also works with TLS: ping accepts the plain-text answer that the port requires TLS.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["headroom", "ping", "127.0.0.1:6747"]

# The binary of a release, wherever in the tarball its bin/ is.
FROM debian AS unpack
ARG VERSION
WORKDIR /release
COPY dist/headroom-${VERSION}-linux-x86_64.tar.gz release.tar.gz
RUN tar --extract --gzip --file=release.tar.gz --wildcards --no-anchored 'bin/headroom' \
    && install -D --mode=0755 "$(find . -path '*bin/headroom' -type f)" /out/usr/local/bin/headroom

# This target and the next one are the same but for where the binary is from. `--version` fails if a library is missing.
FROM runtime AS release
ARG VERSION
LABEL org.opencontainers.image.version="${VERSION}"
COPY --from=unpack /out/ /
RUN ["headroom", "--version"]

FROM runtime AS source
COPY --from=build /out/ /
RUN ["headroom", "--version"]
