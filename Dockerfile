# One image with both programs, since the indexer has to match the schema that the server reads. `make image`
# builds it; docs/operations/install.md describes it.
#
# BASE_BUILD needs Rust and a C compiler. BASE_RUNTIME needs glibc, at least of the version of BASE_BUILD,
# libgcc_s, and certificate authorities.
ARG BASE_BUILD=docker.io/library/rust:1.95.0-slim-bookworm
ARG BASE_RUNTIME=gcr.io/distroless/cc-debian12:nonroot

FROM ${BASE_BUILD} AS build
WORKDIR /src
COPY . .
ENV CARGO_PROFILE_RELEASE_DEBUG=none CARGO_PROFILE_RELEASE_STRIP=symbols
# Dependencies that an earlier build compiled are not compiled again. The files of the workspace are new to
# Cargo, which compares times: one that is older than the cache, such as that of an earlier release, would count
# as unchanged.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,id=chart-index-target,target=/src/target,sharing=locked \
    find . -path ./target -prune -o -type f -exec touch {} + && \
    cargo build --release --locked -p chart-index-server -p chart-index-indexer && \
    mkdir /programs && \
    cp target/release/chart-index target/release/chart-indexer /programs/

FROM ${BASE_RUNTIME}
ARG BASE_RUNTIME
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="chart-index" \
      org.opencontainers.image.description="The index behind a Browse page for vertical-scrolling rhythm games: API server and indexer" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE_RUNTIME}"
COPY --from=build /programs/ /usr/local/bin/
USER 65532:65532
WORKDIR /
ENV LISTEN=0.0.0.0:8080 ADMIN_LISTEN=0.0.0.0:9090
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/usr/local/bin/chart-index", "healthcheck", "readyz"]
ENTRYPOINT ["/usr/local/bin/chart-index"]
CMD ["serve"]
