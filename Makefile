# Two commands do everything: `make demo` and `make test`. Both make their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= runs/demo

.PHONY: install demo desk test slow bench check format docs clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@touch $@

demo: install  ## simulate recordings, train two ensembles on them, attack and measure them, write the report
	$(BIN)/ecgquorum study demo --out $(OUT) --workers 2

desk: install  ## the review desk with simulated recordings, at http://127.0.0.1:8000
	$(BIN)/ecgquorum serve --demo

test: install  ## the fast suite; tests of real recordings are skipped where those are absent
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

slow: install  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

bench: install  ## how fast, as ratios against the published arithmetic; wants an idle machine
	$(BIN)/python -m benchmarks

check: install  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) runs

MODELS := physionet2017-compact cpsc2018-compact

docs: install  ## what is generated: the command line reference, the results page, the model cards
	$(BIN)/python -m typer ecgquorum.cli utils docs --name ecgquorum --title "Command line" --output docs/cli.md
	$(BIN)/ecgquorum report $(MODELS:%=docs/results/%.json) --out docs/results.md
	$(foreach model,$(MODELS),$(BIN)/ecgquorum card $(model) --out docs/models/$(model).md &&) true
