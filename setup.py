"""List the packages, compile the kernels, complete the README; all else is in pyproject.toml."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CCompilerError
from setuptools.modified import newer_group

FOLDER = Path("napari_panoptic", "kernels")
SHARED = "napari_panoptic.kernels._shared"
"""What all kernels need for their arrays; compiled once, by `Cython --generate-shared`."""
IS_CHECKED = os.environ.get("NAPARI_PANOPTIC_CHECKED") == "1"
"""Whether the kernels check every index, for tests: they take two to three times as long."""
IS_ABI3 = os.environ.get("NAPARI_PANOPTIC_ABI3") == "1"
"""Whether one wheel is to serve this and all later versions of Python."""
NO_COMPILER = """
The kernels of napari-panoptic could not be compiled; the reason is above. They need a C compiler
and the headers of Python:
    Debian, Ubuntu: apt-get install gcc libc6-dev python3-dev
    Fedora: dnf install gcc python3-devel
    macOS: xcode-select --install
    Windows: the Build Tools for Visual Studio, with "Desktop development with C++"
Wheels need neither: pip install --only-binary napari-panoptic napari-panoptic"""


class BuildKernels(build_ext):
    """Sets the options of Cython and of the compiler."""

    def finalize_options(self) -> None:
        """Check every index, or none."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        self.shared_utility_qualified_name = SHARED
        self.cython_directives = {
            "language_level": 3,
            "autotestdict": False,
            "boundscheck": IS_CHECKED,
            "initializedcheck": IS_CHECKED,
            "wraparound": False,
            "cdivision": True,
            "show_performance_hints": False,
        }

    def run(self) -> None:
        """Compile, beside the sources, only kernels that have changed."""
        if self.inplace and not self.force:
            self.extensions = [
                own
                for own in self.extensions
                if newer_group([*own.sources, *own.depends], self.get_ext_fullpath(own.name))
            ]
        super().run()

    def build_extensions(self) -> None:
        """Optimise, but give all processors the same figures: no fused multiply-add."""
        if self.compiler.compiler_type == "unix":
            for extension in self.extensions:
                # The attribute of `_clones.pxd` also meets variables, where it means nothing.
                extension.extra_compile_args += [
                    "-O3",
                    "-g0",
                    "-ffp-contract=off",
                    "-Wno-attributes",
                ]
        try:
            super().build_extensions()
        except CCompilerError as error:
            raise type(error)(f"{error}\n{NO_COMPILER}") from error


class BuildModules(build_py):
    """Leaves this file out of wheels: the manifest's package is the top of the repository."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """List package, name and path of each module of a package."""
        found = super().find_package_modules(package, package_dir)
        return [module for module in found if Path(module[2]) != Path("setup.py")]


def kernels(name: str, source: Path) -> Extension:
    """Describe a module of kernels."""
    return Extension(
        name,
        [str(source)],
        depends=["setup.py", *sorted(map(str, FOLDER.glob("*.pxd")))],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if IS_ABI3 else [],
        py_limited_api=IS_ABI3,
    )


def readme() -> str:
    """Return README.md with links that also lead somewhere on PyPI and the napari hub."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    place, tag = project["urls"]["Source Code"], f"v{project['version']}"
    return re.sub(
        r"(!?)(\[[^]]*\]\()(?![a-z]+:|#)",
        lambda link: f"{link[0]}{place}/{'raw' if link[1] else 'blob'}/{tag}/",
        Path("README.md").read_text("utf-8"),
    )


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    # The manifest stands at the top of the repository; pyproject.toml maps it into a package.
    packages=[*find_packages(include=["napari_panoptic*"]), "napari_panoptic_manifest"],
    ext_modules=[
        *(
            kernels(f"napari_panoptic.kernels.{path.stem}", path)
            for path in sorted(FOLDER.glob("*.pyx"))
        ),
        kernels(SHARED, FOLDER / "_shared.c"),
    ],
    cmdclass={"build_ext": BuildKernels, "build_py": BuildModules},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_ABI3 else {},
)
