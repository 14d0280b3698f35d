# status-tool: `make demo` and `make test` do everything on a fresh machine with Python 3.11+, JDK 17 and Maven.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAR := coprocessor_stubs/target/status-tool-coprocessors.jar
ARCHIVE := tests/lab/target/servers-2.6.1.jsa
JAVA_SOURCES := $(shell find coprocessor_stubs/src -name '*.java' 2>/dev/null) coprocessor_stubs/pom.xml
MVN := mvn -q -B -ntp
# A JVM that ends within two minutes gains nothing by compiling well.
export MAVEN_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: requirements.lock pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --disable-pip-version-check -q --require-hashes -r requirements.lock
	$(BIN)/pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
	@touch $@

# gssapi and krb5 are compiled, against Kerberos' own headers, while the other packages are installed.
$(VENV)/kerberos-wheels: requirements-kerberos.lock | $(BIN)/pip
	@rm -rf $@ $@.new; \
	if ! command -v krb5-config >/dev/null; then \
	  echo "Kerberos is left out, its tests are skipped: apt-get install libkrb5-dev, then make setup"; \
	elif $(BIN)/pip wheel --disable-pip-version-check -q --no-deps --require-hashes -r $< -w $@.new; then mv $@.new $@; \
	else echo "Kerberos is left out: its packages cannot be built here, see above"; [ -z "$$CI" ]; fi

kerberos: $(VENV)/installed $(VENV)/kerberos-wheels
	@if [ -d $(VENV)/kerberos-wheels ] && ! [ $(VENV)/kerberos -nt $(VENV)/kerberos-wheels ]; then \
	  $(BIN)/pip install --disable-pip-version-check -q --no-deps --no-index $(VENV)/kerberos-wheels/*.whl && \
	  touch $(VENV)/kerberos; fi

$(JAR): $(JAVA_SOURCES)
	@command -v mvn >/dev/null || { echo "Maven is needed to build the trackers"; exit 2; }
	cd coprocessor_stubs && $(MVN) package -DskipTests
	@touch $@

# Of the servers' classes. A JVM that it does not fit, because another one made it, does without.
$(ARCHIVE): tests/lab/pom.xml tests/lab/warm.py tests/lab/classpath.py | $(VENV)/installed $(JAR)
	@$(BIN)/python -m tests.lab warm

# At once: what is installed, what is compiled for Kerberos, and Maven, which shares its repository with no other Maven.
# Bytecode: with PYTHONDONTWRITEBYTECODE, as in many images, each command would compile the tool for most of a second.
setup: ## Install the tool and build the trackers
	@$(MAKE) --no-print-directory -j 3 kerberos $(ARCHIVE)
	@$(BIN)/python -m compileall -q status_tool tests bench
	@$(BIN)/python -m tests.spark_classes

setup-tool: $(VENV)/installed kerberos ## Install the tool alone

wheel: $(VENV)/installed $(JAR) ## A wheel in dist/ that carries the trackers' jar
	$(BIN)/python -m tests.wheel dist

image: wheel ## An OCI image in dist/image, of Debian's packages: needs root, mmdebstrap and umoci
	docs/watch/image.sh dist/image

demo: setup ## Two real clusters: a complete verdict, then a caught loss
	$(BIN)/python -m tests.demo

# What needs no cluster runs beside three pairs of clusters, and is printed when it has ended. Two pairs leave 0.8 of two
# cores idle, as their tests wait for timers; each pair takes 3 GB.
test: setup ## All tests
	@(output=$$($(MAKE) --no-print-directory lint test-java test-local WORKERS=0 2>&1); code=$$?; printf '\n%s\n' "$$output"; exit $$code) & \
	beside=$$!; trap 'kill $$beside 2>/dev/null' INT TERM; \
	$(MAKE) --no-print-directory test-clusters; code=$$?; wait $$beside && exit $$code || { echo "a test without clusters failed, see above"; exit 1; }

lint: $(VENV)/installed ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-java: ## Tests of the trackers
	cd coprocessor_stubs && mvn -B -ntp test

test-clusters: setup ## Tests on real clusters
	$(BIN)/python -m pytest tests/cluster tests/lab -m cluster -n 3 --dist loadfile --no-loadscope-reorder

WORKERS ?= 2
test-local: setup ## All tests of Python without clusters
	$(BIN)/python -m pytest -m "not cluster" -n $(WORKERS) --dist loadfile

test-unit: $(VENV)/installed ## Tests without clusters, Spark and other JVMs, with a tenth of the simulation's steps
	SIMULATION_STEPS=15000 $(BIN)/python -m pytest -m "not cluster and not slow and not spark" -n 2 --dist loadfile

PYTHONS ?= python3.12 python3.13
test-pythons: ## The same tests without clusters on other versions of Python: make test-pythons PYTHONS="python3.13"
	@for python in $(PYTHONS); do \
	  command -v $$python >/dev/null || { echo "$$python is not installed: skipped"; continue; }; \
	  echo "--- $$python"; \
	  $$python -m venv .venv-$$python && \
	  .venv-$$python/bin/pip install --disable-pip-version-check -q --require-hashes -r requirements.lock && \
	  .venv-$$python/bin/pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e . && \
	  SIMULATION_STEPS=15000 .venv-$$python/bin/python -m pytest -m "not cluster" -n 2 --dist loadfile || exit 1; \
	done

SEED ?= 1
N ?= 3
campaign: setup ## Fault campaign against the truth: make campaign SEED=1 N=3
	$(BIN)/python -m tests.campaign --seed $(SEED) --count $(N) --shrink

docs: $(VENV)/installed ## The documents as a site, in build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

playground: setup ## Two clusters for docs/tutorial.md, until Ctrl-C
	@$(BIN)/python -m tests.playground

# README.md shows what the check of one of them prints: the test names the line that is another now.
samples: setup ## Record sample_status/ anew from real clusters
	$(BIN)/python -m tests.record_samples sample_status
	$(BIN)/python -m pytest -q -n 0 tests/unit/test_doc_commands.py -k samples

bench: setup ## Measure everything; prints ratios within one run (about an hour)
	$(BIN)/python -m bench

bench-docs: $(VENV)/installed ## The table in docs/performance.md from bench/results.jsonl; all results in build/bench
	$(BIN)/python -m bench.table

soak: setup ## The trackers at full speed and under fault for SOAK seconds (600), and ten times the simulation's steps
	cd coprocessor_stubs && mvn -B -ntp test -Dtest=SoakTest -DargLine="-Dsoak.seconds=$(or $(SOAK),600)"
	SIMULATION_STEPS=1000000 GRAPH_STEPS=60000 $(BIN)/python -m pytest tests/simulation

clean: ## Remove what was built
	rm -rf $(VENV) coprocessor_stubs/target tests/lab/target *.egg-info build dist

.PHONY: help kerberos setup setup-tool wheel image demo test lint test-java test-clusters test-local test-unit test-pythons campaign docs playground samples bench bench-docs soak clean
