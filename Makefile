# Two commands matter: `make demo` (set up, run a scored collection) and `make test` (set up, pass the tests; some 9 minutes on two cores).
# PYTHON picks the interpreter; VENV where the environment goes;
# WORKERS how many processes test side by side, of 1 to 1.5 GB each.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test check bench crash clean

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable .
	touch $(STAMP)

$(VENV)/.installed-test: $(STAMP) compat/nemo_gym/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock \
	  --editable '.[test]' --editable compat/nemo_gym
	touch $@

setup: $(STAMP)

demo: $(STAMP)
	$(BIN)/gym eval run --resources-server mcqa --model-type simulated_model --num-repeats 4 \
	  --output results/demo/rollouts.jsonl --overwrite

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src/rollbook compat/nemo_gym/src/nemo_gym

bench: $(VENV)/.installed-test
	$(BIN)/python bench/run.py

crash: N ?= 500
crash: $(VENV)/.installed-test
	PYTHONPATH=tests $(BIN)/python -m crash.campaign --kills $(N)
	PYTHONPATH=tests $(BIN)/python -m crash.cuts

clean:
	rm -rf $(VENV) results
