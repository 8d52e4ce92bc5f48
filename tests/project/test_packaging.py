"""Wheel and sdist: what is in them, what they ask for, and that napari finds the manifest."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from npe2 import PluginManifest
from packaging.requirements import Requirement

from tests.support.paths import REPOSITORY

NAME = "napari-panoptic"
QT_BINDINGS = {"pyqt5", "pyqt6", "pyside2", "pyside6"}
KERNELS = Path("napari_panoptic", "kernels")
SOURCES = {".py", ".pyi", ".pyx", ".pxd"}
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
DESCRIBE_MANIFEST = f"""
import importlib.metadata, json
from npe2 import PluginManifest
manifest = PluginManifest.from_distribution("{NAME}")
found = importlib.metadata.distribution("{NAME}").locate_file("")
commands = [command.id for command in manifest.contributions.commands]
print(json.dumps({{"place": str(found), "title": manifest.display_name, "commands": commands}}))
"""


def _run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environment or None, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the repository: building leaves its traces beside the sources."""
    copy = tmp_path_factory.mktemp("package") / "source"
    return shutil.copytree(REPOSITORY, copy, ignore=_not_part_of_a_checkout)


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    """Build a wheel with the kernels of this environment, as long as they are up to date."""
    compiled = source / "build" / "lib" / KERNELS
    compiled.mkdir(parents=True)
    for module in (source / KERNELS).glob(f"*{SUFFIX}"):
        module.rename(compiled / module.name)
    (source / "setup.cfg").write_text("[build]\nbuild_lib = build/lib\n")
    return _build("--wheel", source)


@pytest.fixture(scope="module")
def sdist(source: Path) -> Path:
    return _build("--sdist", source)


def _build(kind: str, source: Path) -> Path:
    output = source.parent / kind.strip("-")
    build = (sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", str(output))
    _run(*build, str(source), cwd=source.parent)
    (built,) = output.iterdir()
    return built


def _not_part_of_a_checkout(_folder: str, names: list[str]) -> set[str]:
    made = {"build", "dist", "sample-cohort", "__pycache__", "demo.png"}
    return {name for name in names if name.startswith(".") or name in made or "egg-info" in name}


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_holds_the_package_and_the_manifest_and_nothing_else(wheel: Path) -> None:
    # The manifest's package is the top of the repository: a module there would be taken along.
    assert _contents(wheel) == {
        "napari_panoptic_manifest/napari.yaml",
        "napari_panoptic/py.typed",
        "napari_panoptic/report/templates/base.html.j2",
        "napari_panoptic/report/templates/methods_detections.html.j2",
        "napari_panoptic/report/templates/methods_nuclei.html.j2",
        "napari_panoptic/report/templates/methods_raters.html.j2",
        "napari_panoptic/report/templates/package.css",
        "napari_panoptic/report/templates/package.html.j2",
        "napari_panoptic/report/templates/package.js",
        "napari_panoptic/report/templates/report.css",
        "napari_panoptic/report/templates/report.js",
        "napari_panoptic/samples/data/README.md",
        "napari_panoptic/samples/data/detections.tar.xz",
        "napari_panoptic/samples/data/nuclei.tar.xz",
        "napari_panoptic/samples/data/raters.tar.xz",
        *(
            path.relative_to(REPOSITORY).as_posix()
            for path in (REPOSITORY / "napari_panoptic").rglob("*.py")
        ),
        *((KERNELS / f"{name}.pyi").as_posix() for name in _kernels()),
        *((KERNELS / f"{name}{SUFFIX}").as_posix() for name in (*_kernels(), "_shared")),
    }


def test_the_samples_are_small() -> None:
    packed = REPOSITORY.glob("napari_panoptic/samples/data/*.tar.xz")
    assert sum(path.stat().st_size for path in packed) < 2_500_000


def _kernels() -> list[str]:
    return [path.stem for path in (REPOSITORY / KERNELS).glob("*.pyx")]


def _contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_sdist_holds_the_sources_of_the_kernels_and_nothing_compiled(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    of_kernels = [path for path in (REPOSITORY / KERNELS).iterdir() if path.suffix in SOURCES]
    assert {"setup.py", "pyproject.toml", "napari.yaml", "LICENSE"} <= names
    assert {path.relative_to(REPOSITORY).as_posix() for path in of_kernels} <= names
    assert not [name for name in names if name.endswith((".so", ".pyd", ".c", ".pyc"))]


@pytest.mark.long
def test_the_sdist_makes_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert _contents(_build("--wheel", unpacked)) == _contents(wheel)


def test_the_wheel_holds_the_licence(wheel: Path, metadata: Message) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
        assert archive.read(name) == (REPOSITORY / "LICENSE").read_bytes()
    assert metadata["License-Expression"] == "BSD-3-Clause"


def test_the_base_install_names_no_qt_binding_and_the_extras_do(metadata: Message) -> None:
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    base = {r.name.lower() for r in requirements if r.marker is None}
    assert base
    assert not base & QT_BINDINGS
    for extra in ("pyqt6", "pyside6"):
        (chosen,) = [r for r in requirements if r.marker and r.marker.evaluate({"extra": extra})]
        assert chosen.name.lower() == extra
    assert {r.name for r in requirements if r.name.startswith("openslide")} == {
        "openslide-bin",
        "openslide-python",
    }


def test_the_description_has_no_link_that_only_works_in_the_repository(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = re.findall(r"\]\(([^)]+)\)", metadata.get_payload())
    ours = [link for link in links if "/v" + metadata["Version"] + "/" in link]
    assert all(link.startswith("https://") for link in links)
    for link in ours:
        path = link.partition("/v" + metadata["Version"] + "/")[2].partition("#")[0]
        assert (REPOSITORY / path).exists(), link
    assert [link for link in ours if "/raw/" in link and link.endswith(".jpg")]


def test_npe2_finds_the_manifest_of_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    install = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    # Modules that nothing imports need no compiling, which takes longer than the rest.
    install += ("--no-compile", "--disable-pip-version-check", "--target", str(target))
    _run(*install, str(wheel), cwd=tmp_path)
    # PYTHONPATH comes before the environment's own packages.
    output = _run(
        sys.executable, "-c", DESCRIBE_MANIFEST, cwd=tmp_path, PYTHONPATH=str(target), PATH=""
    )
    found = json.loads(output)
    assert Path(found["place"]).resolve() == target.resolve()
    assert found["title"] == "Panoptic"
    assert "napari-panoptic.inspector" in found["commands"]


@pytest.fixture
def installed() -> PluginManifest:
    try:
        importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("napari-panoptic is not installed in this environment (make test installs it)")
    return PluginManifest.from_distribution(NAME)


def test_npe2_finds_the_manifest_of_this_environment(installed: PluginManifest) -> None:
    assert installed.name == NAME
    ours = PluginManifest.from_file(REPOSITORY / "napari.yaml")
    assert installed.contributions == ours.contributions


def test_every_command_of_the_manifest_leads_to_code(installed: PluginManifest) -> None:
    for command in installed.contributions.commands or ():
        assert callable(command.python_name and _resolve(command.python_name)), command.id


def _resolve(python_name: str) -> object:
    module, _, name = python_name.partition(":")
    return getattr(importlib.import_module(module), name)


def test_the_manifest_offers_what_the_documentation_promises(installed: PluginManifest) -> None:
    contributions = installed.contributions
    widgets = [widget.display_name for widget in contributions.widgets or ()]
    assert widgets == ["Panoptic Inspector", "Compare layers"]
    samples = [sample.key for sample in contributions.sample_data or ()]
    assert samples == ["sample-cohort", "sample-detections", "sample-raters"]
    assert [reader.accepts_directories for reader in contributions.readers or ()] == [True, False]
    assert "napari/file/io_utilities" in contributions.menus
