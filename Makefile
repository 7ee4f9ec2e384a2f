# On a bare machine with git, make, Python 3.10 or 3.11 and the package registry: `make demo` or `make test`.

# A pyenv shim may exist for a Python that does not run, so each candidate has to answer.
PYTHON ?= $(shell for python in python3.11 python3.10 python3; do \
	$$python -c 'import ensurepip, sys, venv; assert (3, 10) <= sys.version_info[:2] <= (3, 11); print(sys.executable)' \
	2>/dev/null && break; done)
VENV := .venv
BIN := $(VENV)/bin
# As many tests at a time as there are cores, two at least: one of two mostly waits for processes to start. What stays
# together: tests/conftest.py.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); [ $$cores -ge 2 ] && echo $$cores || echo 2)
PYTEST := $(BIN)/pytest -n $(WORKERS)
STAMP := $(VENV)/.installed
step = @printf '\n== %s\n' '$(1)'
# Runs a command as a part whose seconds `make test` shows at its end.
TOOK := $(VENV)/.took
timed = @started=$$(date +%s); $(2); code=$$?; echo "$(1): $$(($$(date +%s) - started)) s" >> $(TOOK); exit $$code
show-times = @printf '\n== how long each part took\n'; cat $(TOOK); rm -f $(TOOK)

.DEFAULT_GOAL := help
.PHONY: help venv environments lint format types test-fast test test-all demo docs site release clean

help: ## say what each target does
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 16

venv: $(STAMP) ## make the tool environment in .venv

$(STAMP): setup.cfg setup.py pyproject.toml
	$(call step,tool environment)
	@test -n '$(PYTHON)' || { echo 'No Python 3.10 or 3.11 with venv was found; name one: make PYTHON=/path/to/python'; exit 1; }
	'$(PYTHON)' -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[verify,dev]'
	@# Tests start `python -m migrator` in other folders, where the name is not known.
	@echo '$(CURDIR)' > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/checkout.pth"
	@touch $@

environments: venv ## make the TensorFlow environments of the two programs, once, in the user's cache
	$(call step,TensorFlow environments)
	$(call timed,TensorFlow environments,$(BIN)/python -m migrator.harness.environments)

lint: venv ## ruff
	@rm -f $(TOOK)
	$(call step,lint)
	$(call timed,lint,$(BIN)/ruff check .)

types: venv ## mypy --strict
	$(call step,types)
	$(call timed,types,$(BIN)/mypy)

# mypy takes one core for a while: it runs beside the tests, and says at their end what it found.
test-fast: lint ## lint, types and all tests that need no TensorFlow
	$(call step,types and fast tests)
	$(call timed,types and fast tests,$(BIN)/mypy > $(VENV)/.types 2>&1 & types=$$!; \
		$(PYTEST) -q --durations=20 -m 'not tensorflow and not release'; tests=$$?; \
		wait $$types; types=$$?; cat $(VENV)/.types; [ $$types -eq 0 ] && (exit $$tests))

# What was green is noted in tests/green.json: commit it, and those tests wait until what they see changes.
test: test-fast environments ## the fast tests, then what is due of a training of every kind: what .ci/run calls
	$(call step,training matrix)
	$(call timed,training matrix,$(PYTEST) -v --durations=60 --note-green -m 'tensorflow and not release')
	$(show-times)

test-all: test-fast environments ## everything, which a release has to pass; notes the fixtures and tables that did
	$(call step,whole training matrix)
	$(call timed,whole training matrix,$(PYTEST) -v --durations=150 --note-green -m 'tensorflow or release')
	$(show-times)
	@$(BIN)/python -m tests.release

demo: environments ## migrate the multi-worker guide's program and verify it on a local cluster
	@tools/demo $(BIN)

docs: venv ## write the rule pages, and what the examples and tutorials show now
	$(call step,docs)
	@$(BIN)/python tools/make_docs.py

site: venv ## build the documents as a site in build/site
	$(call step,site)
	@$(BIN)/python tools/make_docs.py --pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	@echo build/site/index.html

release: venv ## make the tag of a release on a clean tree; what a release has to pass is test-all
	@$(BIN)/python tools/release.py

clean: ## remove what the other targets made here (not the TensorFlow environments)
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find migrator tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
