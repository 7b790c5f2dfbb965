# SPDX-License-Identifier: Apache-2.0
"""Other people's programs, as a table: how each is run, and what of its output is not its own.

Each runs in a folder of its own, {folder}, which has a copy of scripts/. In a command, {python} is the
scratch environment's interpreter, {torch} that of the environment with .venv's torch, {bin} its
programs' folder, {sources} the unpacked sources, {frozen} what PyInstaller has made, {port} a free
port, {pg} PostgreSQL's programs.
"""
import collections

TIMES = r" \(\d+:\d\d:\d\d\)|\b\d+\.\d+ ?s\b|\bin \d+\.\d+ seconds?\b|\b\d+:\d\d:\d\d\b"

Program = collections.namedtuple("Program", "name words lines status seconds ignore",
                                 defaults=["", 0, 240, ""])
Server = collections.namedtuple("Server", "name words lines status client requests",
                                defaults=["wsgi.digits", 0, None, 40])

PYTEST = "{python} -m pytest -q -rN -o console_output_style=classic -p no:cacheprovider"

# `lines`: functions for --lines and --line-memory. `status`: the exit status it has alone.
# `ignore`: what differs between two runs of it alone (a regular expression), beside times.
PROGRAMS = [
    Program("black", "{python} -m black --diff -l 70 -q {sources}/jinja2/src/jinja2/lexer.py "
            "{sources}/jinja2/src/jinja2/parser.py", "click.core.Context.invoke", ignore=r"20\d\d-.*"),
    Program("django", "{python} django_site.py", "index", 3),
    Program("sphinx", "{python} -m sphinx -b html -E -j 1 site html", "sphinx.util.docutils.switch_source_input",
            ignore=r"loading pickled environment.*"),
    Program("jinja2", PYTEST + " {sources}/jinja2/tests", "jinja2.lexer.Lexer.wrap"),
    # One test of its own fails in Python 3.11, with an address in what it says.
    Program("attrs", PYTEST + " -k 'not wrapped_annotation' {sources}/attrs/tests", "attr._make.attrib",
            seconds=600),
    Program("xdist", PYTEST + " -n 2 {sources}/jinja2/tests/test_filters.py", "jinja2.filters.do_sort",
            ignore=r"bringing up nodes.*|^\d workers .*"),
    Program("coverage", "{python} -m coverage run --branch coverage_job.py", "collatz", 4),
    Program("debugpy", "{python} -Xfrozen_modules=off -m debugpy --listen 127.0.0.1:{port} coverage_job.py",
            "collatz", 4),
    Program("aiohttp", "{python} aiohttp_both.py", "answer"),
    Program("gevent", "{python} gevent_both.py", "ask"),
    Program("trio", "{python} trio_tasks.py", "square", 1, ignore=r"0x[0-9a-f]+"),
    Program("pandas", "{python} pandas_job.py", "add_up"),
    Program("polars", "{python} polars_job.py", "add_up"),
    Program("numba", "{python} numba_job.py", "main"),
    Program("cython", "{python} cython_job.py", "twice"),
    Program("joblib", "{python} joblib_job.py", "work"),
    # It hands the warnings' filters to processes of its own.
    Program("sklearn", "{python} sklearn_job.py", "search", 5),
    Program("dask", "{python} dask_job.py", "square"),
    # Compiled by mypyc, and ends by os._exit.
    Program("mypy", "{python} -m mypy --cache-dir=/dev/null mypy_input.py", "__main__.py:console_entry", 1),
    # Forked workers, and a Python of its own for each module.
    Program("ansible", "{python} -m ansible playbook playbook.yml", "ansible.executor.task_executor.TaskExecutor.run", 2,
            ignore=r'"(delta|end|start)": "[^"]*"'),
    Program("twisted", "{python} twisted_threads.py", "work"),
    Program("tornado", "{python} tornado_forks.py", "squares"),
    # A kernel that is another process, with sockets and threads.
    Program("nbconvert", "{python} -m nbconvert --to notebook --execute --stdout --log-level=ERROR notebook.ipynb",
            "nbconvert.preprocessors.execute.ExecutePreprocessor.preprocess", ignore=r'"(iopub|shell)\..*'),
    Program("lightning", "{torch} lightning_job.py", "Net.training_step", seconds=600),
    Program("timm", "{torch} timm_job.py", "infer", seconds=600),
    Program("diffusers", "{torch} diffusers_job.py", "make_images", seconds=600),
    Program("pyg", "{torch} -W ignore pyg_job.py", "Net.forward", seconds=600),
]

# Programs without Python, or with one that takes nothing from its environment: recorded from outside, and by --heap.
NATIVE = [
    Program("node", "node node_job.js", status=3),
    Program("java", "java -XX:-UsePerfData JavaJob.java", status=4),
    Program("pyinstaller", "{frozen}/frozen_app", status=7),
]

SERVERS = [
    Server("gunicorn", "{python} -m gunicorn -b 127.0.0.1:{port} -w 2 --log-level warning wsgi:application"),
    Server("gunicorn-threads", "{python} -m gunicorn -b 127.0.0.1:{port} -w 1 --threads 4 --log-level warning "
           "wsgi:application"),
    Server("gunicorn-gevent", "{python} -m gunicorn -b 127.0.0.1:{port} -w 2 -k gevent --log-level warning "
           "wsgi:application"),
    Server("uvicorn", "{python} -m uvicorn --port {port} --log-level warning asgi:application",
           "asgi.digits", 128 + 15),
    # Under load: coroutines, threads, and two workers that are spawned.
    Server("fastapi", "{python} -m uvicorn --port {port} --workers 2 --log-level warning fastapi_app:app",
           "fastapi_app.squares", requests=400),
    Server("uwsgi", "{bin}/uwsgi --http-socket 127.0.0.1:{port} --module wsgi:application --master --processes 2 "
           "--die-on-term --need-app --disable-logging --worker-reload-mercy 5"),
    Server("celery", "{python} -m celery -A celery_app worker --pool prefork -c 2 --without-gossip "
           "--without-mingle --without-heartbeat -l critical", "celery_app.square",
           client="{python} celery_app.py"),
]

# As nobody in particular: PostgreSQL refuses to run as root, and nginx's workers are not root's.
NATIVE_SERVERS = [
    Server("redis", "redis-server --port {port} --bind 127.0.0.1 --save '' --dir {folder} --loglevel warning",
           client="{python} redis_client.py {port}"),
    Server("nginx", "nginx -p {folder}/ -c nginx.conf -g 'daemon off;'", requests=300),
    Server("postgres", "{pg}/postgres -D {folder}/data -p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off",
           client="psql -X -A -t -h 127.0.0.1 -p {port} -U me -d postgres -f postgres.sql"),
]
# What is done before such a server is started, in its folder.
PREPARE = {"postgres": "{pg}/initdb -D {folder}/data -U me --auth=trust --no-sync"}

# C programs with ranges: the libraries they need, and their exit status.
COMPILED = {"lua_ranges": ("lua5.4", 5), "zstd_ranges": ("libzstd", 6)}
