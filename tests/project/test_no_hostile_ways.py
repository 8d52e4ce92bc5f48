"""Ways in which a file could make this program do something: none of them is in the package.

Read from the syntax of every module, so that a new one is noticed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.support.sources import modules, nodes

FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"),
    *("subprocess", "pty", "socket", "urllib", "http", "requests", "ftplib", "webbrowser"),
    *("lxml", "yaml", "xml.etree", "xml.dom", "xml.sax.expatreader", "xmlrpc", "code", "runpy"),
}
KNOWN = {
    # By one parser that opens nothing else, and refuses document types; see ONLY_THERE.
    ("io/files/xml_files.py", "lxml"),
    ("io/files/xml_files.py", "lxml.etree"),
    ("io/formats/polygons/imagescope.py", "lxml"),
    ("io/formats/polygons/imagescope.py", "lxml.etree"),
    ("io/formats/polygons/imagescope_edits.py", "lxml"),
    ("io/formats/polygons/imagescope_edits.py", "lxml.etree"),
    ("io/formats/class_numbers.py", "yaml"),  # for texts, lists and mappings
    ("io/files/locking.py", "socket"),  # for this machine's name
    # Only its machine in Python, in which functions and calls are records.
    ("io/pixels/inert_pickle.py", "pickle"),
}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "os.system", "os.popen", "os.startfile", "pd.read_pickle"),
    *("pandas.read_pickle", "np.fromregex", "np.loadtxt", "np.genfromtxt", "tempfile.mktemp"),
    *("etree.fromstring", "etree.XML", "etree.iterparse", "etree.HTML", "etree.XSLT"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler"),
    *("tifffile.imread", "tifffile.TiffSequence", "tifffile.xml2dict", "zarr.load"),
}
ONLY_THERE = {
    "tifffile.TiffFile": ("io/pixels/decode.py",),  # with the dialects that read XML switched off
    "Image.open": ("io/pixels/decode.py",),  # with the formats that are pictures
    # With a schema that is not trusted.
    "sqlite3.connect": ("review/file.py", "io/formats/polygons/annotation_store.py"),
    "etree.XMLParser": ("io/files/xml_files.py",),  # which opens nothing else
    "etree.parse": ("io/files/xml_files.py",),  # by that parser
    "pickle._Unpickler": ("io/pixels/inert_pickle.py",),  # which neither imports nor calls
    "yaml.load": ("io/formats/class_numbers.py",),  # which makes no objects
    "zarr.open": ("io/pixels/label_windows.py",),  # with the codecs that are known
}


def dotted(node: ast.AST) -> str:
    """Give the name of what is called, such as ``np.load``."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def imported() -> Iterator[tuple[str, str]]:
    """Yield a module and the name of what it imports."""
    for name, node in nodes():
        if isinstance(node, ast.Import):
            yield from ((name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield name, node.module or ""
            yield from ((name, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def all_calls() -> list[tuple[str, str, ast.Call]]:
    """Return module, name and node of every call."""
    return [(name, dotted(node.func), node) for name, node in nodes() if isinstance(node, ast.Call)]


@cache
def named() -> set[tuple[str, str]]:
    """Return what modules call, derive from or pass on."""
    return {(name, dotted(node)) for name, node in nodes() if isinstance(node, ast.Attribute)}


def test_nothing_is_imported_that_runs_or_fetches() -> None:
    for name, module in imported():
        parts = module.split(".")
        prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        assert not prefixes & FORBIDDEN_MODULES or (name, module) in KNOWN, (name, module)


def test_nothing_listens_or_connects_but_the_local_socket_of_links() -> None:
    """Local sockets only: those of one user on one machine, which no other machine can reach."""
    found = {(name, module) for name, module in imported() if "QtNetwork" in module}
    place, module = "viewer/kit/link_socket.py", "qtpy.QtNetwork"
    names = {f"{module}.{name}" for name in ("QLocalServer", "QLocalSocket")}
    assert found == {(place, module), *((place, name) for name in names)}
    options = {said for name, said in named() if name == place and "Option" in said}
    assert "QLocalServer.SocketOption.UserAccessOption" in options


def test_nothing_is_called_that_runs_what_is_in_a_file() -> None:
    for name, call, node in all_calls():
        assert call not in FORBIDDEN_CALLS, (name, node.lineno, call)
        if call == "np.load":
            words = {word.arg: word.value for word in node.keywords}
            allowed = words.get("allow_pickle")
            assert isinstance(allowed, ast.Constant), (name, node.lineno)
            assert allowed.value is False


def test_what_is_guarded_is_named_in_one_place() -> None:
    for name, said in named():
        assert name in ONLY_THERE.get(said, (name,)), (name, said)


def test_sql_holds_no_values() -> None:
    """In statements put together stand names of columns, which are constants; nothing else."""
    for name, call, node in all_calls():
        of_review = name.startswith("review/") and call.endswith(("file.read", "changes.read"))
        if not (of_review or call.endswith((".execute", ".executemany"))) or not node.args:
            continue
        for part in ast.walk(node.args[0]):
            if isinstance(part, ast.FormattedValue):
                assert isinstance(part.value, ast.Name | ast.IfExp), (name, node.lineno)
                text = ast.unparse(part.value)
                assert text.isupper() or text in CONSTANT_PARTS, (name, node.lineno, text)
            assert not isinstance(part, ast.BinOp | ast.Call), (name, node.lineno)


CONSTANT_PARTS = {"wanted", "'FULL' if mode == 'wal' else 'EXTRA'", "condition", "table"}
"""Put together of constants where they are used: looked at by hand."""


def test_there_are_modules() -> None:
    assert "io/files/replacing.py" in modules()
    assert "np.load" in {call for _, call, _ in all_calls()}
    assert {said for _, said in named()} >= {*ONLY_THERE}
