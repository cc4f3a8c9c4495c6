# SPDX-License-Identifier: Apache-2.0
#
# A thin front door: meson and ninja do the building, tools/ and .ci/run the rest.

BUILD ?= build
PREFIX ?= /usr/local
CHAOS_SCHEDULES ?= 200
CHAOS_CALLS ?= 100000

.PHONY: build test demo bench chaos fuzz check ci format install dist packages packages-test clean help setup

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

# Without the tests, which need programs that only they use. `make test` adds them.
$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD) --prefix=$(PREFIX) -Dtests=false

setup:
	@tools/setup

test: | $(BUILD)/build.ninja
	@tools/setup --test
	@tools/with-tests $(BUILD)
	@ninja -C $(BUILD)
	@tools/run-tests -C $(BUILD)

demo: setup
	@tools/demo

bench:
	@tools/setup --bench
	@bench/run

chaos: | $(BUILD)/build.ninja
	@tools/setup --test
	@tools/with-tests $(BUILD)
	@ninja -C $(BUILD)
	@tests/cluster/chaos.py --build $(BUILD) --schedules $(CHAOS_SCHEDULES) --calls $(CHAOS_CALLS)

fuzz:
	@tools/setup --check
	@tools/fuzz

check:
	@.ci/run format tidy analyze shell layers headers

ci:
	@.ci/run

format:
	@tools/setup --check
	@tools/check-format --fix

# Only what is installed is built. A PREFIX that was given holds also where BUILD was set up with another, as by `make demo`. What
# root installs for the system is found by its programs only after ldconfig, which is not on the PATH
# that su(1) leaves.
install: $(BUILD)/build.ninja
	@$(if $(filter-out file,$(origin PREFIX)),meson configure $(BUILD) --prefix=$(PREFIX))
	@ninja -C $(BUILD) product
	@meson install -C $(BUILD) --no-rebuild
	@if [ -z "$$DESTDIR" ] && [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/usr/sbin:/sbin" ldconfig; fi

dist:
	@tools/dist

packages:
	@tools/setup --packages
	@tools/packages

# As CI does, with the compiler's optimization.
packages-test:
	@tools/setup --packages
	@tests/packages/test_packages.py

clean:
	@rm -rf build build-* dist

help:
	@echo 'make            build into $(BUILD)/ (on a fresh Debian 12 it installs what is needed first)'
	@echo 'make test       build and run every test; the last line counts them'
	@echo 'make demo       show agents that learn from a bad call, and tools found and called through a gateway'
	@echo 'make bench      measure beside other parsers, validators, tool runtimes and gRPC servers'
	@echo 'make chaos      kill, stop and cut nodes and Redis at random, CHAOS_SCHEDULES=$(CHAOS_SCHEDULES) times, and check every call'
	@echo 'make fuzz       run the fuzz targets, FUZZ_SECONDS=60 each'
	@echo 'make check      format, clang-tidy, shellcheck, layers, public headers'
	@echo 'make format     format the C files'
	@echo 'make ci         everything that CI runs'
	@echo 'make install    install into PREFIX=$(PREFIX)'
	@echo 'make dist       write the release tarball of what is committed into dist/'
	@echo 'make packages   build Debian packages of that tarball into dist/; make packages-test also installs and purges them'
	@echo 'make clean      remove what was built'
