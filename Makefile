# Permalake. Every target makes what it needs first; `make` alone lists the targets.
.DEFAULT_GOAL := help
# Images often set it; Python would then compile all that each process imports anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help install demo fast test long bench tour site-tour up down env lint format docs sbom outdated lock clean

VENV := .venv
PYTHON := $(VENV)/bin/python
HOME_FOLDER := $(or $(PERMALAKE_HOME),.permalake)
STAMP := $(VENV)/.installed
LOCKED := requirements.in requirements-airflow.in requirements-notebook.in requirements-dev.in \
  --output-file requirements.txt --python-version 3.11 --generate-hashes --no-header
JARS := $(HOME_FOLDER)/jars/.fetched
# Official client libraries in JavaScript, for tests that compare with them; what tests of the pages need.
CLIENTS := tests/support/clients/node_modules/.package-lock.json
BROWSER := tests/support/web_tools/node_modules/.package-lock.json

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile | expand -t 18

install: $(JARS) ## environment and jars

demo: install ## build the bundled real days through Airflow and say what came out
	@$(PYTHON) -m permalake.local.demo

fast: install ## tests without JVM, server or other process: run them before each commit
	@$(PYTHON) -m pytest -m fast -p no:schemathesis --numprocesses 2 --quiet

# A third process works while the others wait for a server or a starting job.
test: install $(CLIENTS) $(BROWSER) ## the test suite, in three processes, on real servers
	@$(PYTHON) -m pytest -m "not long" -p no:schemathesis --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 20 --cov --cov-report=

long: install $(CLIENTS) $(BROWSER) ## what `make test` leaves out or shortens: kills at every point, YARN, S3, GCS, ten minutes of load
	@PERMALAKE_TESTS=long $(PYTHON) -m pytest -m "long or scaled"

bench: install $(BROWSER) ## the benchmarks, each beside its peer; writes bench/results.json and a picture
	@$(PYTHON) -m bench

up: install ## Airflow and the REST API on this machine, with the sample loaded; prints addresses and login
	@$(PYTHON) -m permalake.local.demo --quiet
	@$(PYTHON) -m permalake.local.airflow_server up
	@$(PYTHON) -m permalake.local.api_server up

down: ## stop what `make up` started
	@if [ -x $(PYTHON) ]; then $(PYTHON) -m permalake.local.airflow_server down; $(PYTHON) -m permalake.local.api_server down; fi

env: ## fresh secrets for docker compose, in .env
	@[ -e .env ] || { umask 077; sh docker/secrets.sh > .env; }

tour: install ## Airflow in a real browser (Chromium), with screenshots into docs/tour
	@PYTHONPATH=tests $(PYTHON) -m browser.tour

site-tour: install $(BROWSER) ## the pages of permalake serve in a real browser, over the demo's lake
	@PYTHONPATH=tests $(PYTHON) -m browser.site_tour

lint: install ## style, types, direction of imports, generated docs
	@$(VENV)/bin/ruff check && $(VENV)/bin/ruff format --check --quiet
	@$(VENV)/bin/mypy && $(VENV)/bin/mypy --config-file tests/mypy.ini tests bench
	@$(VENV)/bin/lint-imports
	@$(PYTHON) -m permalake.cli.docs --check
	@$(PYTHON) -m bench.scale --check

format: install ## put the code into shape
	@$(VENV)/bin/ruff check --fix --quiet; $(VENV)/bin/ruff format

docs: install ## write the generated docs again
	@$(PYTHON) -m permalake.cli.docs

sbom: install ## write the software bill of materials, sbom.json (CycloneDX)
	@$(PYTHON) tools/sbom.py sbom.json

outdated: install ## list packages and jars that are behind the newest, and why each stays
	@$(PYTHON) tools/outdated.py

lock: install ## write requirements.txt again, with the newest versions that fit
	@$(VENV)/bin/uv pip compile $(LOCKED) --upgrade --quiet

# Nothing can make the private key of a signed log again.
clean: down ## remove environment, jars, lake and logs; keys stay
	@if [ -x $(VENV)/bin/permalake ]; then $(VENV)/bin/permalake services down; fi
	rm -rf $(VENV)
	@[ ! -d "$(HOME_FOLDER)" ] || find "$(HOME_FOLDER)/" -mindepth 1 -maxdepth 1 ! -name keys -exec rm -rf {} +
	@[ ! -d "$(HOME_FOLDER)" ] || rmdir "$(HOME_FOLDER)" 2>/dev/null || echo "kept $(HOME_FOLDER)/keys"

# Java is asked for first: the rest takes a minute and would be in vain without it.
$(STAMP): requirements.txt pyproject.toml
	@{ [ -n "$$JAVA_HOME" ] && [ -x "$$JAVA_HOME/bin/java" ]; } || command -v java >/dev/null || { \
	  echo "permalake: Java is missing; install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2; exit 1; }
	@if [ ! -x $(PYTHON) ]; then \
	  for candidate in python3.12 python3.11 python3; do \
	    if $$candidate -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then \
	      found=$$candidate; break; fi; done; \
	  if [ -z "$$found" ]; then echo "permalake: Python 3.11 or 3.12 is missing; install one (Debian: apt-get install python3 python3-venv)" >&2; exit 1; fi; \
	  echo "environment in $(VENV), from $$found"; \
	  $$found -m venv $(VENV) || { echo "permalake: $$found has no venv; install it (Debian: apt-get install python3-venv)" >&2; rm -rf $(VENV); exit 1; }; fi
	@[ -x $(VENV)/bin/uv ] || sh docker/uv.sh $(PYTHON)
	@echo "libraries from the lock"
	@$(VENV)/bin/uv pip sync --quiet --require-hashes --python $(PYTHON) requirements.txt
	@$(VENV)/bin/uv pip install --quiet --python $(PYTHON) --no-deps --editable .
	@touch $@

$(CLIENTS) $(BROWSER): tests/support/%/node_modules/.package-lock.json: tests/support/%/package-lock.json | $(STAMP)
	@PYTHONPATH=tests $(PYTHON) -m support.npm tests/support/$*

$(JARS): $(STAMP) include/permalake/spark/jars.py
	@$(PYTHON) -m permalake.spark.jars
	@$(PYTHON) -m permalake.local.archive_classes
	@mkdir -p $(@D) && touch $@
