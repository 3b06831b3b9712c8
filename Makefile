# `make demo` and `make test` make their own virtual environment in .venv and install what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= runs/demo
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c constraints.txt

.PHONY: install install-all demo desk test test-long test-all slow bench check site format docs clean mutate campaign

install: $(VENV)/.installed-core  ## the library and the command line
install-all: $(VENV)/.installed-all  ## everything: review desk, Ray, ONNX, Optuna, test tools

$(VENV)/.installed-core: pyproject.toml constraints.txt
	@echo "== install: ecgquorum with PyTorch, without optional parts, in $(VENV) (minutes on the first run)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@start=$$(date +%s); $(PIP) torch==2.13.0 && $(PIP) -e . \
	    && echo "== installed in $$(( $$(date +%s) - start )) s; the environment takes $$(du -sh $(VENV) | cut -f1)"
	@touch $@

$(VENV)/.installed-serve: $(VENV)/.installed-core
	@echo "== install: the review desk (FastAPI, SQLAlchemy)"
	@$(PIP) -e ".[serve]"
	@touch $@

$(VENV)/.installed-all: $(VENV)/.installed-core
	@echo "== install: optional parts and test tools (Ray, ONNX, a browser driver, ...)"
	@$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.installed-serve

demo: install  ## simulate recordings, train two ensembles, attack and evaluate them, write the report
	@echo "== demo: simulate 1,200 recordings, train two ensembles, attack them, write the report: minutes on two cores"
	@start=$$(date +%s); $(BIN)/ecgquorum study demo --out $(OUT) --workers 2 \
	    && echo "== done in $$(( $$(date +%s) - start )) s; open $(OUT)/report/report.html in a browser"

desk: $(VENV)/.installed-serve  ## the review desk with simulated recordings, at http://127.0.0.1:8000
	$(BIN)/ecgquorum serve --demo

PYTEST := $(BIN)/python -m pytest -n logical --dist loadfile --no-loadscope-reorder --durations 15

test: install-all  ## the fast tests: at most five minutes on two cores; tests with real recordings are skipped where those are absent
	$(PYTEST)

test-long: install-all  ## tests that take seconds each: whole commands, servers, browsers, clusters; CI runs them too
	$(PYTEST) -m "long and not slow"

test-all: install-all  ## all tests: the fast, the long and those that take minutes or hours
	$(PYTEST) -m "slow or not slow"

slow: install-all  ## the tests that take minutes or hours
	$(BIN)/python -m pytest -m slow

mutate: install-all  ## small errors in a copy of the package: do the tests notice them? half an hour
	$(BIN)/python -m tests.mutate

campaign: install-all  ## kills, damaged files, full disks and large inputs: an hour; run it again until all counts are reached; see docs/reliability.md
	$(BIN)/python -m tests.campaign --minutes 60

bench: install-all  ## speed, as ratios to the published code and to version 0.1, and a plot of growth; needs an idle machine
	$(BIN)/python -m benchmarks --plot runs/growth.png

check: install-all site  ## format, lint, types, layers, the documentation site
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

site: install-all  ## the documentation as a site, in site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: install-all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) runs site

RESULTS := physionet2017-replica cpsc2018-replica
MODELS := physionet2017 physionet2017-robust cpsc2018

docs: install-all  ## generated pages: the command line reference, recipe keys, JSON Schemas, results, model cards
	$(BIN)/python -m typer ecgquorum.cli utils docs --name ecgquorum --title "Command line" --output docs/reference/cli.md
	$(BIN)/python docs/generators/recipe_keys.py
	$(BIN)/python docs/generators/schemas.py
	$(BIN)/ecgquorum report $(RESULTS:%=docs/results/%.json) --out docs/results.md --intro docs/results-intro.md
	$(BIN)/ecgquorum report docs/results/physionet2017-shift.json docs/results/cpsc2018-shift.json --out docs/results-shift.md --intro docs/results-shift-intro.md
	$(BIN)/ecgquorum report docs/results/physionet2017.json docs/results/cpsc2018.json --out docs/results-shipped.md --intro docs/results-shipped-intro.md
	$(BIN)/ecgquorum report docs/results/physionet2017-robust.json --out docs/results-robust.md --intro docs/results-robust-intro.md
	$(BIN)/ecgquorum report docs/results/cpsc2018-seven.json --out docs/results-cpsc2018-seven.md --intro docs/results-cpsc2018-seven-intro.md
	$(BIN)/ecgquorum report docs/results/physionet2017-compact.json --out docs/results-hardened.md
	$(foreach model,$(MODELS),$(BIN)/ecgquorum card $(model) --out docs/models/$(model).md &&) true
