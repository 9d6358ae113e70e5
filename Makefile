# One word for each thing a contributor does; CONTRIBUTING.md has the same without make.
PYTHON ?= python3
GPU ?= gpu13# CuPy for the driver: gpu13 (CUDA 13) or gpu12 (CUDA 12)
SENTENCE = Während das Kind schläft, isst mein hungriger Affe den teuren Keks.
BIN := .venv/bin
INSTALLED := .venv/installed
TOY := runs/toy/model.npz
PACKAGE := build/package
LOWEST := build/lowest
ELSEWHERE := cd $(PACKAGE)/empty && ../environment/bin/
# Each process takes a run of tests that stand together, which share trained models and devices, and
# gives some of them to one that has none left.
SIDE_BY_SIDE := -n auto --dist worksteal
NEW_ENOUGH := import sys; v = sys.version_info; \
	v < (3, 11) and sys.exit("Python 3.11 or newer is needed, and this is %d.%d" % v[:2])

.PHONY: help demo lessons site test test-all coverage test-kernels test-lowest lint format gradcheck \
	test-gpu gpu-report cupy package clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 18

demo: $(TOY) ## train the toy translator, see where it looks, and talk to it
	$(BIN)/minitransformer translate runs/toy "$(SENTENCE)" --attention runs/toy/attention.png
	$(BIN)/minitransformer translate runs/toy

lessons: $(INSTALLED) ## build the notebooks of the lessons and execute them
	$(BIN)/python -m pip install --quiet --editable '.[lessons]'
	$(BIN)/python lessons/build.py --all

site: $(TOY) ## build the site of lessons, explorer and API reference: build/site/index.html
	$(BIN)/python -m pip install --quiet --editable '.[site]'
	$(BIN)/sphinx-build -n -W --keep-going -q -j auto -d build/doctrees docs build/site || \
		{ rm -rf build/doctrees; false; }  # else the next time would read the same pages without a word

test: $(INSTALLED) ## install into .venv if need be, run all tests but the slow ones
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow"

test-all: $(INSTALLED) ## run all tests, whole lessons among them
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --require=$(REQUIRE)

coverage: $(INSTALLED) ## run all tests twice as slowly, and tell which lines they leave out
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --cov

test-kernels: $(INSTALLED) ## run make test's with each set of kernels of OpenBLAS, on one thread and two
	$(BIN)/python tests/house/with_kernels.py

test-lowest: $(INSTALLED) ## run make test's in an environment with the lowest versions that setup.cfg allows
	rm -rf $(LOWEST)
	$(BIN)/python -m venv $(LOWEST)
	$(BIN)/python tests/house/lowest_versions.py test mpi pictures lessons site > $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pip install --quiet --only-binary :all: -r $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pip install --quiet --no-deps --editable .
	$(LOWEST)/bin/python -m pytest $(SIDE_BY_SIDE) -m "not slow"

lint: $(INSTALLED) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED) ## mend style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gradcheck: $(INSTALLED) ## compare every backward with numeric gradients
	$(BIN)/python -m minitransformer gradcheck

cupy: $(INSTALLED) # without the one for another driver: two hinder each other
	$(BIN)/python -m pip uninstall --quiet --yes $(if $(filter gpu12,$(GPU)),cupy-cuda13x,cupy-cuda12x)
	$(BIN)/python -m pip install --quiet --editable '.[$(GPU)]'

test-gpu: cupy ## run the tests that need a GPU; GPU=gpu12 for a driver of CUDA 12
	$(BIN)/python -c 'from minitransformer import select_device; print(select_device("cuda"))'
	$(BIN)/python -m pytest -m gpu

gpu-report: cupy ## tests, speed and a training on a GPU, in 20 minutes, as one page
	$(BIN)/python benchmarks/gpu_report.py

package: export PYTHONPATH =
package: $(INSTALLED) ## build sdist and wheel, install into an empty environment, run a short demo there
	rm -rf $(PACKAGE)
	$(BIN)/python -m build --outdir $(PACKAGE) .
	$(BIN)/python tests/house/compare_package.py $(PACKAGE)
	$(BIN)/python -m venv $(PACKAGE)/environment
	$(PACKAGE)/environment/bin/python -m pip install --quiet $(PACKAGE)/*.whl
	mkdir $(PACKAGE)/empty
	$(ELSEWHERE)minitransformer train toy --epochs 1
	$(ELSEWHERE)minitransformer translate runs/toy "$(SENTENCE)" --attention attention.png
	$(ELSEWHERE)minitransformer evaluate runs/toy --beam-size 1
	$(ELSEWHERE)minitransformer gradcheck
	$(ELSEWHERE)minitransformer check ex07 --file $(CURDIR)/lessons/solutions/ex07.py

clean: ## remove .venv and everything made by the tools
	rm -rf .venv build docs/api docs/lessons dist *.egg-info .pytest_cache .hypothesis .ruff_cache .coverage
	find . -name __pycache__ -exec rm -rf {} +

$(TOY): | $(INSTALLED)
	$(BIN)/minitransformer train $$(test -e runs/toy/config.json && echo --resume runs/)toy

$(INSTALLED): setup.cfg pyproject.toml
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo 'try make PYTHON=python3.11'; exit 1; }
	@echo 'installing into .venv, which takes a minute or so'
	@$(BIN)/python -c '$(NEW_ENOUGH); import pip' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@
