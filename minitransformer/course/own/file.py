"""The learner's file: what is written in it, and what it stands in for."""

import ast
import hashlib
import sys
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from functools import partial, wraps
from inspect import unwrap
from pathlib import Path

from minitransformer.core.backend import is_array, on_host
from minitransformer.core.twins import Twin, standing_in
from minitransformer.course.exercises import parts_of
from minitransformer.course.own import layers, search
from minitransformer.course.own.package import (
    CALLED_ALIKE,
    FUNCTIONS,
    STANDS_FOR,
    parts_of_the_transformer,
)
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.learner import content_of, run_file
from minitransformer.gradcheck.pair import call

FOR_GPU = (
    "it was given arrays of a GPU: ask them for their library, xp = array_namespace(x) with "
    "from minitransformer.core.backend import array_namespace, or stay on the CPU: --device cpu"
)
# The names of a learner's functions that are running: one that calls the package's of its own name
# gets that, and not itself.
_running = ContextVar("a learner's functions that are running", default=frozenset())
CALLED_OTHERWISE = {
    "encoder_layer": layers.encoder_layer_twin,
    "decoder_layer": layers.decoder_layer_twin,
    "greedy": search.greedy_twin,
    "beam_search": search.beam_search_twin,
}
AROUND = {"grouped_query_attention": layers.self_attention_twin}


@contextmanager
def own(path, parts=None):
    """Inside the ``with`` the functions written in the file at ``path`` stand in for the package's.

    It runs the file. What is still a stub there is the package's. Nothing is checked, which is for
    ``minitransformer check own``. Twins sleep meanwhile. It holds for the thread it is entered in
    and for its Workers. Make the model inside, as its table of positions comes of one of the
    functions, and go through whatever generator translates inside.

    Args:
        path: of the file.
        parts: those that count; None for those of the first part, a whole Transformer.

    Yields:
        The :class:`OwnFile`.

    Raises:
        CheckError: the file is missing or cannot be run; or, inside, one of its functions fails.
    """
    file = OwnFile(path, parts or parts_of_the_transformer())
    with file.standing_in():
        yield file


class OwnFile:
    """A learner's functions, by the parts of the exercise ``own``.

    Args:
        path: of the file.
        parts: those that count, all of them if it is None.

    Attributes:
        path: of the file.
        content: what it holds, bytes.
        functions: by their names; where one is not written, the package's, for those that call it.
        parts: those that count.
        there: by their names those that are there, and neither stubs nor the package's.
        written: the parts of which all is there, in the order of the lessons.
        wrong: the names of those of ``written`` that a check has found wrong.
        used: the names of the learner's functions that have run while they stood in.
        others: those of the package's that have run where the learner's could have stood.

    Raises:
        CheckError: the file is missing, is no regular file, or cannot be run.
    """

    def __init__(self, path, parts=None):
        self.path, self.parts = Path(path), parts or parts_of("own")
        self.content = content_of(self.path)
        with redirect_stdout(sys.stderr):  # standard output is for what the commands print
            self.functions = vars(run_file(self.path, self.content))
        self._names = {name for part in self.parts for name in part.functions}
        self.used, self.others, self.wrong = set(), set(), []
        self._twins = {}
        stubs = _stubs(self.content)
        self.there = {
            name: self.functions[name]
            for name in FUNCTIONS.keys() & self.functions.keys()
            if not (_place(self.functions[name]) in stubs or _is_packages(self.functions[name]))
        }
        self.written = list(self.parts)
        for part in self.parts:
            if not self.there.keys() >= set(part.functions):
                self.leave_out(part)

    @property
    def fingerprint(self):
        """The SHA-256 of the file."""
        return hashlib.sha256(self.content).hexdigest()

    def sources(self):
        """The text of each function that stands in, by its name, where the file has its ``def``."""
        lines = self.content.decode("utf-8-sig").splitlines(keepends=True)
        names = {name for part in self.written for name in part.functions}
        return {
            node.name: "".join(lines[_first_line(node) - 1 : node.end_lineno]).rstrip("\n")
            for node in ast.parse(self.content).body
            if isinstance(node, ast.FunctionDef) and node.name in names
        }

    def leave_out(self, part):
        """Take ``part`` as not written: those that call it get the package's."""
        self.written.remove(part)
        self.functions.update(_packages(part))

    @contextmanager
    def without(self, parts):
        """Inside the ``with`` what is written calls the package's functions for these parts."""
        with self._replaced({n: f for part in parts for n, f in _packages(part).items()}):
            yield

    @contextmanager
    def standing_in(self):
        """Inside the ``with`` what is written stands in for the package's functions."""
        names = [name for part in self.written for name in part.functions]
        with self._replaced({name: self._watched(name) for name in names}):
            self._twins = {
                FUNCTIONS[name]: self._twin(name)
                for name in names
                if not name.endswith("_backward")
            }
            self._twins |= {
                function: AROUND[name](*(self.functions[n] for n in (name, f"{name}_backward")))
                for name, function in STANDS_FOR.items()
                if name in names
            }
            with standing_in(self):
                yield

    def twin_of(self, function):
        """What stands in for a function of the package, a Twin, or None; asked at every call."""
        name = NAMES.get(function)
        twin = None if name in _running.get() else self._twins.get(function)
        if twin is None and name in self._names:
            self.others.add(name)
        return twin

    def _twin(self, name):
        pair = [self.functions[n] for n in (name, f"{name}_backward") if n in FUNCTIONS]
        return CALLED_OTHERWISE.get(name, Twin)(*pair)

    def _watched(self, name):
        """The function of this name, noting that it runs, and saying where it fails."""
        function = self.functions[name]

        @wraps(function)
        def watched(*args, **kwargs):
            self.used.add(name)
            token = _running.set(_running.get() | {name})
            try:
                return call(name, partial(function, **kwargs), *args)
            except CheckError as error:
                if isinstance(error.__cause__, CheckError):  # of a function that this one calls
                    raise error.__cause__ from error.__cause__.__cause__
                if any(is_array(x) and not on_host(x) for x in args):
                    raise CheckError(f"{error}; {FOR_GPU}") from error.__cause__
                raise
            finally:
                _running.reset(token)

        return watched

    @contextmanager
    def _replaced(self, functions):
        before = {name: self.functions[name] for name in functions}
        self.functions.update(functions)
        try:
            yield
        finally:
            self.functions.update(before)


NAMES = {f: name for functions in (FUNCTIONS, STANDS_FOR) for name, f in functions.items()}


def _packages(part):
    """The package's functions for a part, as far as they can be called from the learner's."""
    return {name: CALLED_ALIKE[name] for name in part.functions if name in CALLED_ALIKE}


def _is_packages(function):
    return any(function is f for named in NAMES for f in (named, unwrap(named)))


def _place(function):
    """Name and line of a function in its file, or None for what is no function."""
    code = getattr(function, "__code__", None)
    return code and (code.co_name, code.co_firstlineno)


def _stubs(content):
    """Name and line of each function in a file that does nothing but raise NotImplementedError."""
    return {
        (node.name, _first_line(node))
        for node in ast.parse(content).body
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.body[-1], ast.Raise)
        and "NotImplementedError" in ast.unparse(node.body[-1])
        and all(isinstance(line, ast.Expr) for line in node.body[:-1])  # the docstring
    }


def _first_line(definition):
    """That of a function in its file, or of its first decorator."""
    return min(node.lineno for node in (definition, *definition.decorator_list))
