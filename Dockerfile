# SPDX-License-Identifier: Apache-2.0
#
# A gateway in a container: the Debian packages, built in a first stage and installed in a second one
# that has no compiler. Needs nothing but this tree:
#
#   docker build -t pegboard .
#   docker run --rm pegboard --help
#
# docs/operating.md has how to run it with tokens.
FROM debian:12-slim AS build

WORKDIR /src/pegboard
# The packages that it is built with change rarely: a layer of their own.
COPY debian/control debian/
# Debian has one version of each package at a time, and bookworm's get security fixes only.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential \
    && apt-get build-dep -y --no-install-recommends ./ \
    && rm -rf /var/lib/apt/lists/*
COPY . .
ARG DEB_BUILD_OPTIONS=noautodbgsym
RUN DEB_BUILD_OPTIONS="$DEB_BUILD_OPTIONS" dpkg-buildpackage -b -us -uc \
    && mkdir /packages \
    && cp ../libpegboard0_*.deb ../pegboard_*.deb /packages/

FROM debian:12-slim

COPY --from=build /packages /packages
# The folder has to belong to the user below: a volume that is mounted there takes its owner over.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates=* /packages/*.deb \
    && rm -rf /var/lib/apt/lists/* /packages \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/pegboard

USER 10001:10001
VOLUME /var/lib/pegboard
EXPOSE 9090
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/pegboard"]
# Beyond the container it listens only with --token-file, --tls-client-ca or --insecure.
CMD ["serve", "--addr", ":9090", "--data-dir", "/var/lib/pegboard", "--token-file", "/run/secrets/tokens"]
