"""Puts the trackers' jar into what is built: `pip install .` from a checkout has it like the wheel of `make wheel`."""

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

STUBS = Path(__file__).parent / "coprocessor_stubs"
JAR = STUBS / "target" / "status-tool-coprocessors.jar"
READER = Path("io", "github", "statustool", "hdfs")


class WithJar(build_py):
    """Builds the jar where it is not there yet and Maven is; else says what is missing without it."""

    def run(self) -> None:
        """As ever, and the jar."""
        super().run()
        if self.editable_mode or not STUBS.is_dir():
            return  # The sources' own jar is used, or the package has one already.
        if not JAR.is_file() and (mvn := shutil.which("mvn")):
            subprocess.run([mvn, "-q", "package", "-DskipTests"], cwd=STUBS, check=False)
        assets = Path(self.build_lib) / "status_tool" / "assets"
        if JAR.is_file():
            assets.mkdir(parents=True, exist_ok=True)
            shutil.copy(JAR, assets)
        else:
            # What reads HDFS can be compiled without Maven: `clients/java.py` does where it runs.
            shutil.copytree(STUBS / "src" / "main" / "java" / READER, assets / READER, dirs_exist_ok=True)
            print(
                "status-tool: built without the trackers' jar: `status-tool setup --jar-to` cannot write it, and many "
                "files are read over WebHDFS, which is slower, where there is no JDK 17. With JDK 17 and Maven: cd "
                "coprocessor_stubs && mvn package -DskipTests, then install again",
                file=sys.stderr,
            )


setup(cmdclass={"build_py": WithJar})
