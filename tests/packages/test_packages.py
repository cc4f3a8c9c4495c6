#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the Debian packages that the release tarball gives install, work, and leave nothing when they are purged. Prints TAP.

    test_packages.py                     installs them over this machine's own system, in an overlay that is thrown away
    test_packages.py --packages FOLDER   as before, with packages that tools/packages has put there
    test_packages.py --bare ROOT         into a bare Debian 12 (a folder that mmdebstrap filled), their dependencies with apt-get

Needs root, for mounts that only this process sees. DEB_BUILD_OPTIONS goes to the build: CI builds without optimization.
"""

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

BUILD_S, STEP_S = 3000, 300
NAMES = ("pegboard", "libpegboard0", "libpegboard-dev")
# What dpkg, its triggers and apt-get keep for themselves: logs, caches, and the list of what was ever there.
NOT_OURS = ("var/lib/dpkg", "var/log", "var/cache", "var/lib/apt", "etc/ld.so.cache", "var/lib/systemd/deb-systemd-helper-masked")

parser = argparse.ArgumentParser()
parser.add_argument("--bare")
parser.add_argument("--packages")
options = parser.parse_args()
bare = options.bare


def run(*command, timeout=STEP_S, **how):
    return subprocess.run(command, check=False, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)


def expect(done):
    assert done.returncode == 0, f"{done.args}: exit status {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


class World:
    """A folder with the packages, and one that looks like a machine of its own. Both are gone at the end."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())
        self.packages = Path(options.packages or self.folder / "packages")
        self.root = self.folder / "root"
        self.changed = self.folder / "layer" / "changed"
        self.lower = Path(bare or "/")
        self.is_mounted = False

    def files(self):
        found = [next(iter(self.packages.glob(f"{name}_*.deb")), None) for name in NAMES]
        assert all(found), "packages were not built"
        return found

    def mount(self):
        """Everything below is this process's alone, and ends with it. A tmpfs holds what changes: not every system can have
        the layer of an overlay where its own files are. Running services and /usr/local, which may have another Pegboard,
        are not to be seen."""
        if self.is_mounted:
            return
        self.root.mkdir()
        (self.folder / "layer").mkdir()
        expect(run("mount", "-t", "tmpfs", "tmpfs", str(self.folder / "layer")))
        for name in ("changed", "work"):
            (self.folder / "layer" / name).mkdir()
        done = run("mount", "-t", "overlay", "overlay", "-o",
                   f"lowerdir={self.lower},upperdir={self.changed},workdir={self.folder / 'layer' / 'work'}", str(self.root))
        if done.returncode:
            raise tap.Skip(f"no overlay can be mounted here: {done.stdout.strip()}")
        for place in ("run", "tmp", "usr/local", "mnt"):
            expect(run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(self.root / place)))
        expect(run("mount", "-t", "proc", "proc", str(self.root / "proc")))
        expect(run("mount", "--rbind", "/dev", str(self.root / "dev")))
        for file in self.files():
            shutil.copy(file, self.root / "mnt")
        self.is_mounted = True

    def inside(self, script, **how):
        """What a shell prints in there, which has to succeed."""
        return expect(run("chroot", str(self.root), "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
                          "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "sh", "-euc", script, **how))

    def leftovers(self):
        """What is there now and was not, or the other way round."""
        found = []
        for place, folders, files in os.walk(self.changed):
            for name in folders + files:
                path = Path(place, name)
                inner = path.relative_to(self.changed)
                is_whiteout = stat.S_ISCHR(path.lstat().st_mode) and path.lstat().st_rdev == 0
                if not str(inner).startswith(NOT_OURS) and (is_whiteout or not os.path.lexists(self.lower / inner)):
                    found.append(str(inner))
        return found


world = World()


# ---- the build -------------------------------------------------------------------

def test_the_tarball_builds_into_three_packages():
    if not options.packages:
        expect(run(str(ROOT / "tools" / "packages"), str(world.packages), timeout=BUILD_S))
    for name, file in zip(NAMES, world.files()):
        assert expect(run("dpkg-deb", "-f", str(file), "Package")).strip() == name


def test_lintian_finds_no_error():
    if not shutil.which("lintian"):
        raise tap.Skip("there is no lintian: tools/setup --packages installs it")
    expect(run("lintian", "--fail-on", "error", "--allow-root", *map(str, world.files())))


def test_only_the_module_for_mongodb_would_bring_libmongoc():
    depends = {name: expect(run("dpkg-deb", "-f", str(file), "Depends")) for name, file in zip(NAMES, world.files())}
    suggests = expect(run("dpkg-deb", "-f", str(world.files()[1]), "Suggests"))
    assert "libmongoc" not in " ".join(depends.values()) and "libmongoc" in suggests, (depends, suggests)
    assert "libpegboard0 (=" in depends["pegboard"], "the command loads libpegboard-engine, which no link tells"


# ---- a machine that has them -----------------------------------------------------

def test_they_install():
    world.mount()
    if bare:
        shutil.copy("/etc/resolv.conf", world.root / "etc")
        world.inside("apt-get update && apt-get install -y --no-install-recommends /mnt/*.deb gcc libc6-dev pkg-config", timeout=BUILD_S)
    else:
        world.inside("dpkg --install /mnt/*.deb")
    assert world.inside("dpkg-query -W -f '${db:Status-Abbrev}' " + " ".join(NAMES)) == "ii ii ii "


def test_the_installed_command_serves_a_gateway_and_calls_a_tool_of_it():
    world.mount()
    (world.root / "tmp" / "tools.yaml").write_text(
        "toolset: shell\ntools:\n  - name: upper\n    description: Writes in capitals.\n"
        "    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}\n"
        "    command: [tr, a-z, A-Z]\n", encoding="ascii")
    told = world.inside("""
        cd /tmp
        until_said() { # WORDS FILE
            for try in $(seq 600); do ! grep -qs "$1" "$2" || return 0; sleep 0.1; done
            cat "$2"; return 1
        }
        PEGBOARD_REGISTRY=unix:/tmp/socket; export PEGBOARD_REGISTRY
        pegboard serve --addr unix:/tmp/socket --data-dir /tmp/data >serve 2>&1 & gateway=$!
        until_said 'listens on' serve
        pegboard provide tools.yaml >provide 2>&1 & provider=$!
        until_said event=attached provide
        pegboard call --timeout 60s --raw shell upper text=hello
        kill $provider; wait $provider
        kill $gateway; wait $gateway
    """)
    assert '{"TEXT":"HELLO"}' in told, told


def test_the_installed_command_finds_the_library_it_loads_for_urls():
    world.mount()
    (world.root / "tmp" / "far.yaml").write_text(
        "toolset: far\nmcp: {url: 'http://127.0.0.1:1/mcp', private_addresses: true}\n", encoding="ascii")
    told = world.inside("pegboard mcp /tmp/far.yaml </dev/null 2>&1")
    assert "the request did not get through" in told, told


def test_the_units_name_the_installed_command_and_are_not_enabled():
    world.mount()
    unit = (world.root / "lib" / "systemd" / "system" / "pegboard.service").read_text(encoding="ascii")
    assert "ExecStart=/usr/bin/pegboard serve" in unit, unit
    assert not list((world.root / "etc" / "systemd").glob("**/pegboard*"))


def test_the_development_package_is_enough_to_compile_its_examples():
    world.mount()
    world.inside("""
        cd /usr/share/doc/libpegboard-dev/examples
        gcc -Wall -Werror first_tool.c -o /tmp/first_tool $(pkg-config --cflags --libs libpegboard)
        gcc -Wall -Werror embed_gateway.c -o /tmp/embed_gateway \
            $(pkg-config --cflags --libs libpegboard libpegboard-gateway libpegboard-remote)
        for name in engine mcp remote gateway; do
            echo "#include <pegboard/pegboard.h>\nint main(void) { return 0; }" >/tmp/$name.c
            gcc /tmp/$name.c -o /tmp/$name -Wl,--no-as-needed $(pkg-config --cflags --libs libpegboard-$name)
            /tmp/$name
        done
    """)
    expected = (ROOT / "examples" / "expected" / "first_tool.txt").read_text(encoding="utf-8")
    assert world.inside("""/tmp/first_tool '{"city":"Oslo"}'""") == expected


def test_a_purge_leaves_nothing():
    world.mount()
    for kept in ("pegboard", "private/pegboard-provide"):  # as systemd does
        (world.root / "var" / "lib" / kept).mkdir(parents=True)

    world.inside("dpkg --purge " + " ".join(reversed(NAMES)))

    left = world.leftovers()
    if "var/lib/private" in left:  # systemd's own
        left.remove("var/lib/private")
    if bare:  # their dependencies stay, until autoremove
        left = [path for path in left if "pegboard" in path]
    assert not left, left


# ---- running them ----------------------------------------------------------------

def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root, to mount and to install")
        return 0
    if "PEG_PACKAGES_APART" not in os.environ:
        os.execvpe("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv],
                   {**os.environ, "PEG_PACKAGES_APART": "1"})
    try:
        return tap.run(globals())
    finally:
        for place in (world.root, world.folder / "layer"):
            run("umount", "--recursive", "--lazy", str(place))
        run("rm", "-rf", "--one-file-system", str(world.folder))  # never into what is still mounted


sys.exit(main())
