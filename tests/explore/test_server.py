"""`dpopt explore` as a program: where it listens, whom it answers, how it ends."""

import signal
import socket
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from dpopt.explore import serve
from dpopt.explore.server import PORT
from tests.browser import chromium, find_all, wait_for
from tests.explore.serving import COMMAND, explorer

needs_panel = pytest.mark.skipif(
    find_spec("panel") is None,
    reason="panel is not installed (extra explore)",
)


def port_of(address: str) -> int:
    port = urlsplit(address).port
    assert port is not None
    return port


def other_addresses() -> list[str]:
    """Addresses of this machine other than 127.0.0.1; no packet is sent."""
    found = ["127.0.0.2"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return found
        return [*found, probe.getsockname()[0]]


def opened(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


@needs_panel
def test_only_this_machine_is_listened_to_and_nothing_stays_behind() -> None:
    with explorer() as (process, address):
        port = port_of(address)
        assert opened("127.0.0.1", port)
        assert [host for host in [*other_addresses(), "::1"] if opened(host, port)] == []
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=30)
        assert (process.returncode, said, complained.strip()) == (130, "", "interrupted.")
        assert not opened("127.0.0.1", port)


def children(process: int) -> list[int]:
    """The processes that a process started and that are still there."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit():
                state = (folder / "stat").read_text().rpartition(")")[2].split()
                found += [int(folder.name)] * (int(state[1]) == process)
    return found


@needs_panel
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_the_process_that_computes_ends_with_the_server(tmp_path: Path) -> None:
    with chromium(tmp_path) as driver, explorer() as (process, address):
        assert children(process.pid) == []
        driver.get(address)
        wait_for(lambda: len(find_all(driver, "figure svg")), 1)
        begun = children(process.pid)
        assert begun
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=30)
        assert (process.returncode, said, complained.strip()) == (130, "", "interrupted.")
        wait_for(lambda: [child for child in begun if Path(f"/proc/{child}").exists()], [])


@needs_panel
def test_a_port_in_use_is_a_sentence_and_exit_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"port is {port}; another program listens there: give another --port, or 0 for any free "
        "one.\n"
    )


@pytest.mark.parametrize("port", ["-1", "65536", "eighty", "1.5"])
def test_a_bad_port_is_exit_2(port: str) -> None:
    done = subprocess.run(
        [*COMMAND, "--port", port], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert port in done.stderr


def test_a_missing_library_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bokeh.settings", "panel", "panel.io.server"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"pip install 'dpopt\[explore\]'"):
        serve(0, open_browser=False)


def test_the_default_port_of_command_and_function_agree() -> None:
    from dpopt.cli.explore import explore

    (port,) = [option for option in explore.params if option.name == "port"]
    assert isinstance(port, click.Option)
    assert port.default == PORT
    assert f"[{PORT}]" in (port.help or "")
