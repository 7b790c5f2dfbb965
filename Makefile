# SPDX-License-Identifier: Apache-2.0
#
# The short way in; the build itself is Meson's (meson.build).
#
#   make           builds all and installs it in .venv: bin/sonde, lib/, include/, the Python package
#   make install   builds and installs below PREFIX (/usr/local); DESTDIR is put in front of it
#   make dist      the committed tree as an archive that builds by itself, in dist/
#   make docs      the site of docs/, the manual pages and the interfaces, in build-docs/site; fails where a link leads nowhere
#   make demo      profiles ResNet-18 and a training loop in PyTorch; leaves its files in demo/
#   make test      what every change must pass: unit, golden, end to end, lint; 15 minutes on two quiet cores
#   make test-all  that, then the stages that take longer: every CPython, sanitizers, aarch64, ..
#   make wheel     a manylinux wheel for the Python of .venv (WHEEL_PYTHONS: for others), in dist/
#                  WHEEL_MACHINE=aarch64: for that machine
#   make wheels    the same for each CPython from 3.9 to 3.15 that the machine has, 3.14t too
#   make wheel-probes  compiles the torch probe for TORCHES="2.8 2.15" (all: each since 2.4), for the next wheel to carry;
#                  WHEEL_MACHINE=aarch64: for that machine's
#   make static    a `sonde` that needs no other file, for any Linux, in dist/
#   make test-wheel  builds it and runs every command of it in an environment of its own
#   make test-wheels  one for each CPython of the machine, each in an environment without compilers or other packages
#   make test-programs    other people's programs, from the registry, under every mode (two hours)
#   make test-distros  the committed tree on fresh minimal Debian 12, 13 and sid (DISTROS="trixie": on one; QUICK=1: less); needs root
#   make test-torch  the PyTorch tests against older versions of it (TORCH_VERSIONS), each in its own environment
#   make test-gpu  what is recorded of a GPU against torch.profiler; needs an NVIDIA GPU, and says so
#   make bench-gpu what recording a GPU costs, against torch.profiler
#   make bench     what recording and reading cost, as ratios; makes docs/OVERHEAD.md
#   make bench-against REV=COMMIT  the core's costs over those of that commit, both run in turn
#   make long pairs ranks pythons asan tsan valgrind aarch64 clang bare musl abi deb    one stage of `make test-all` alone
#   make test-static  builds the static `sonde` and runs it where there is no other file
#   make fuzz      libFuzzer on every parser, FUZZ_SECONDS each (60)
#   make mutants   changes single places of the source and lists those that no test notices (SEED, COUNT, FILES)
#   make measure-diff  how often sonde diff is wrong on this machine: 500 live runs
#   make soak      100 million events from 8 threads, in bounded memory
#   make lint      layers, schema, words, symbols, clang-format, clang-tidy with the static analyzer
#   make raise-requirements  the newest versions of torch and of what the tests need, locked for the Python of .venv
#   make clean     removes what was built
#
# Each installs what it needs (Debian packages when root, else it prints the line to run).

PYTHON       ?= python3
FUZZ_SECONDS ?= 60
TORCH_VERSIONS ?= 2.4 2.8 2.11
BUILD        := build
VENV         := .venv
HERE         := $(CURDIR)/$(VENV)
PREFIX       ?= /usr/local
NATIVE       := $(VENV)/meson-native.ini
BENCHES      := torch_ops torch_start torch_table python_functions python_lines python_sample python_programs \
                pipe_layers native native_report heap counters page exports imports ranks
STAGES       := long pairs ranks pythons asan tsan valgrind aarch64 clang bare musl abi deb
CHECKS       := test test-all lint

export MESON ?= meson

.DEFAULT_GOAL := all
.PHONY: all docs install dist raise-requirements setup static test-static demo test test-distros test-torch test-gpu bench-gpu test-programs test-all bench bench-against wheel wheels test-wheel test-wheels wheel-probes soak measure-diff mutants fuzz lint clean $(STAGES)

all: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@$(MESON) install -C $(BUILD) --no-rebuild --quiet

# A build of its own: the one in build/ looks into .venv. MESON_OPTIONS: more options of meson setup.
install: setup
	@printf "[binaries]\npython = '%s'\n" "$$(command -v $(PYTHON))" > build-install.ini
	@[ -e build-install/build.ninja ] || $(MESON) setup build-install --native-file build-install.ini --libdir lib \
	    --buildtype release -Dtests=false $(MESON_OPTIONS)
	@$(MESON) configure build-install -Dprefix='$(abspath $(PREFIX))'
	@ninja -C build-install
	@DESTDIR='$(DESTDIR)' $(MESON) install -C build-install --no-rebuild --quiet

# The committed tree as an archive, which builds by itself and which pip takes: dist/sonde-VERSION.tar.gz.
dist: all
	@tools/wheel --source

setup:
	@tools/setup build

$(VENV)/bin/python: | setup
	$(PYTHON) -m venv $(VENV)

# The Python package is built for the interpreter that will import it.
$(NATIVE): $(VENV)/bin/python
	@printf "[binaries]\npython = '%s'\n" '$(HERE)/bin/python' > $@

# With symbols, so that valgrind and gdb can name lines; they cost disk, not time.
$(BUILD)/build.ninja: | $(NATIVE)
	$(MESON) setup $(BUILD) --native-file $(NATIVE) --prefix '$(HERE)' --libdir lib \
	    --buildtype release -Ddebug=true -Dpython=enabled -Dpython.install_env=venv

# A warning fails what we check ourselves, never a user's build: their compiler may be newer than ours.
# Once set it stays set, since a change compiles everything anew. WERROR=false tests without it.
$(BUILD)/.werror: | $(BUILD)/build.ninja
	@$(MESON) configure $(BUILD) -Dwerror=true
	@touch $@

ifneq ($(filter $(CHECKS),$(MAKECMDGOALS)),)
ifneq ($(WERROR),false)
all: | $(BUILD)/.werror
endif
endif

# PyTorch (some gigabytes, minutes), only for what needs it.
$(VENV)/.torch: tools/torch-requirements.txt $(wildcard tools/requirements-*.lock) | $(VENV)/bin/python
	@tools/setup torch
	@echo "installing PyTorch in $(VENV), once"
	@tools/install-requirements $<
	@touch $@

# Python packages that only the tests need; the stamp makes the second time quick.
$(VENV)/.test-packages: tools/test-requirements.txt $(VENV)/.torch | $(VENV)/bin/python
	@tools/install-requirements $<
	@touch $@

# All packages of .venv at their newest, written to the lock: then run the tests, and commit it.
raise-requirements: all $(VENV)/.test-packages
	@tools/raise-requirements
	@touch $(VENV)/.torch $(VENV)/.test-packages

demo: all $(VENV)/.torch
	@tools/demo

# The site: build-docs/site/index.html.
docs: all
	@tools/docs

# The committed tree on fresh machines (tools/test-distros): DISTROS are the suites, QUICK=1 only builds and runs the stage gcc.
test-distros:
	@tools/test-distros $(if $(QUICK),--quick) $(DISTROS)

# The newest torch is what `make test` has.
test-torch: all $(VENV)/.torch
	@tools/test-torch $(TORCH_VERSIONS)

# These need an NVIDIA GPU, and say so where there is none.
test-gpu: all $(VENV)/.test-packages
	@$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider tests/gpu

bench-gpu: all $(VENV)/.test-packages
	@status=0; for part in gpu gpu_step; do $(VENV)/bin/python bench/$$part.py || status=1; done; exit $$status

test: all $(VENV)/.test-packages
	@tools/test

test-all: all $(VENV)/.test-packages
	@tools/test --all

$(STAGES): all
	@tools/test $@

# PROGRAMS: an expression of pytest's -k, for some of them alone.
test-programs: all $(VENV)/.test-packages
	@tools/setup programs
	@tools/programs $(HERE)/bin/python
	@$(VENV)/bin/python -m pytest -q -rf tests/programs $(if $(PROGRAMS),-k '$(PROGRAMS)')

# Each part prints its figures whatever the one before it said; over budget is the exit status. Without the
# variable, torch.profiler writes two lines each time it starts and stops.
bench bench-gpu: export KINETO_LOG_LEVEL ?= 99
bench: all $(VENV)/.test-packages
	@tools/setup bench
	@tools/programs $(HERE)/bin/python
	@status=0; bench/run || status=1; \
	for part in $(BENCHES); do $(VENV)/bin/python bench/$$part.py || status=1; done; \
	tools/overhead; exit $$status

# Builds the commit REV in build-compare/ and runs both in turn: instructions, and times.
bench-against: setup
	@tools/setup bench
	@bench/compare $(REV)

# A manylinux wheel for the Python of .venv, or for each of WHEEL_PYTHONS, in dist/; for this machine or WHEEL_MACHINE.
wheel: all
	@tools/wheel $(addprefix --machine ,$(WHEEL_MACHINE)) $(WHEEL_PYTHONS)

wheels: all
	@tools/wheel $(addprefix --machine ,$(WHEEL_MACHINE)) --all

test-wheel: all $(VENV)/.test-packages
	@tools/test wheel

test-wheels: all $(VENV)/.test-packages
	@tools/test wheels

# One file for any Linux: report, export, run and attach, of native programs.
static: setup
	@tools/static

test-static: all $(VENV)/.test-packages
	@tools/test static

# The probe for each of TORCHES (versions, or folders of environments; without: for .venv's torch), which
# the next wheel then carries.
wheel-probes: all
	@tools/wheel-probes $(addprefix --machine ,$(WHEEL_MACHINE)) $(TORCHES)

# Places are drawn by SEED; FILES: patterns of paths, such as 'src/view/*'. tools/mutants has more options.
mutants: setup
	@tools/mutants $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(FILES),--files $(FILES))

measure-diff: all
	@tools/measure-diff

soak: all
	@tools/setup bench
	@bench/run --soak

fuzz: setup
	@tools/setup fuzz
	@tools/fuzz $(FUZZ_SECONDS)

lint: all
	@tools/setup lint
	@tools/lint --analyze

clean:
	rm -rf $(BUILD) build-* $(VENV) demo bench/results.json
