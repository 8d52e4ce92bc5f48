"""The tests on every supported Python, with both Qt bindings, oldest and newest dependencies.

``make test-all`` runs all of it; ``nox -f scripts/noxfile.py --list`` names the sessions; what
follows ``--`` goes to pytest. Windows need a display: without one, run it under xvfb-run, as
``make test-all`` does.
"""

from __future__ import annotations

from pathlib import Path

import nox

# Every session goes there first: nox starts it in the folder of this file.
ROOT = Path(__file__).resolve().parent.parent
nox.options.envdir = str(ROOT / ".nox")
nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = False
PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
TEST_TOOLS = nox.project.dependency_groups(PROJECT, "test")
OLDER_QT = {"pyqt6": "PyQt6==6.7.*", "pyside6": "PySide6==6.10.*"}
NO_COMPILER = """
from importlib.util import find_spec
from shutil import which
assert not any(map(which, ("cc", "gcc", "clang", "x86_64-linux-gnu-gcc"))), "there is a compiler"
assert not find_spec("Cython") and not find_spec("numba"), "there is something that compiles"
"""


@nox.session(python=PYTHONS)
@nox.parametrize("qt", ["pyqt6", "pyside6"])
def newest(session: nox.Session, qt: str) -> None:
    """Test with the newest dependencies."""
    session.chdir(ROOT)
    session.install("--upgrade", "--editable", f".[{qt},dask,dicom,matlab,nifti]", *TEST_TOOLS)
    _test(session, qt)


@nox.session(python=PYTHONS[0])
@nox.parametrize("qt", ["pyqt6", "pyside6"])
def oldest(session: nox.Session, qt: str) -> None:
    """Test with the oldest dependencies that pyproject.toml allows."""
    session.chdir(ROOT)
    limits = Path(session.create_tmp(), f"oldest-{qt}.txt")
    extras = (f"--extra={qt}", "--extra=dask", "--extra=dicom", "--extra=matlab", "--extra=nifti")
    lowest = ("uv", "pip", "compile", "pyproject.toml", "--resolution=lowest-direct", "--quiet")
    # --upgrade: or uv keeps to what the file of an earlier run says.
    session.run(*lowest, "--upgrade", *extras, f"--output-file={limits}", external=True)
    package = ("--editable", f".[{qt},dask,dicom,matlab,nifti]")
    session.install(*package, "--constraint", str(limits), *TEST_TOOLS)
    _test(session, qt)


@nox.session(python=PYTHONS[0])
def package(session: nox.Session) -> None:
    """Build sdist and wheel, check them, and use the wheel where nothing can be compiled."""
    session.chdir(ROOT)
    session.install("abi3audit", "build", "twine")
    dist = Path(session.create_tmp(), "dist")
    for old in dist.glob("*"):
        old.unlink()
    abi3 = {"NAPARI_PANOPTIC_ABI3": "1"}
    session.run("python", "-m", "build", "--outdir", str(dist), env=abi3)
    session.run("twine", "check", "--strict", *map(str, dist.iterdir()))
    (wheel,) = dist.glob("*-cp311-abi3-*.whl")
    session.run("abi3audit", "--strict", str(wheel))
    for python in PYTHONS:
        session.notify(f"wheel-{python}", [str(wheel)])
    for qt in OLDER_QT:
        session.notify(f"beside(qt='{qt}')", [str(wheel)])


@nox.session(python=PYTHONS, default=False)
def wheel(session: nox.Session) -> None:
    """Install the wheel that `package` has built and use it, without compiler and Cython."""
    place = Path(session.create_tmp()).resolve()
    session.chdir(place)
    session.install("--force-reinstall", "--only-binary", ":all:", f"{session.posargs[0]}[pyqt6]")
    alone = {"PATH": session.bin}
    session.run("python", "-c", NO_COMPILER, env=alone)
    session.run("npe2", "validate", "napari-panoptic", env=alone)
    session.run("napari-panoptic", "sample", "sample", env=alone)
    session.run("napari-panoptic", "evaluate", "sample", "--output", "tables", env=alone)
    session.run(
        "napari-panoptic", "demo", "--cohort", "sample", "--screenshot", "demo.png", env=alone
    )


@nox.session(python=PYTHONS[0], default=False)
@nox.parametrize("qt", list(OLDER_QT))
def beside(session: nox.Session, qt: str) -> None:
    """Install the wheel that `package` has built beside a napari, and change nothing there."""
    session.install("napari==0.9.0", OLDER_QT[qt])
    freeze = ("uv", "pip", "freeze", "--quiet")
    before = session.run(*freeze, silent=True, external=True)
    session.install("--only-binary", ":all:", session.posargs[0])
    after = session.run(*freeze, silent=True, external=True)
    if changed := set(before.splitlines()) - set(after.splitlines()):
        session.error(f"packages that were there have changed: {', '.join(sorted(changed))}")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """Build the documentation; warnings are errors."""
    session.chdir(ROOT)
    session.install(".[pyqt6]", *nox.project.dependency_groups(PROJECT, "docs"))
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "site")


@nox.session(python=PYTHONS[0])
def audit(session: nox.Session) -> None:
    """Ask whether the newest dependencies have known weaknesses."""
    session.chdir(ROOT)
    session.install(".[pyqt6,dask,dicom,matlab,nifti]", "pip-audit>=2.7")
    session.run("python", "scripts/audit.py")


def _test(session: nox.Session, qt: str) -> None:
    """Run the tests of the checkout, which needs kernels for this Python."""
    session.run("python", "setup.py", "--quiet", "build_ext", "--inplace")
    versions = "import sys, qtpy, numpy, napari; print(sys.version.split()[0], qtpy.API_NAME, "
    versions += "qtpy.QT_VERSION, 'numpy', numpy.__version__, 'napari', napari.__version__)"
    environment = {"QT_API": qt, "PYTEST_QT_API": qt}
    session.run("python", "-c", versions, env=environment)
    session.run("python", "-m", "pytest", *session.posargs, env=environment)
