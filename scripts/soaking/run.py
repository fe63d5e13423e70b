"""One soak, from its first client to its last figure.

Rule: three parts. In the calm one nothing fails: it is what the others are compared with. In the storm workers fail,
are hurt from outside, and the daemon is killed, as the schedule says. In the last part, half of the time, the daemon
lives on while workers fail: what grows then is a leak. In the end a daemon without faults takes up what is open, and
everything is counted.
"""

import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from scripts.soaking import plan
from scripts.soaking.client import Client, Orders, answer
from scripts.soaking.control import Control
from scripts.soaking.daemon import Daemon, Sample, live
from scripts.soaking.report import Evidence, judge, progress, settled, steadiest
from scripts.soaking.schedule import Schedule, Wound
from scripts.soaking.work import ASKED, MADE, PAGES, WORD, folder
from scripts.soaking.world import PROFILE, World, world
from supervisor.acp import extensions, schema
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import LinkEvent, PermissionPrompt
from supervisor.errors import DaemonRefused, StrongroomError
from supervisor.journal.journal import open_journal

_TICK: Final = 0.2
_LOOK_EVERY: Final = 1.0
_TELL_EVERY: Final = 10.0
_PARTS: Final = ("calm", "storm", "long")
_SHARES: Final = (0.15, 0.5, 1.0)
"""Of the time, at which each part ends."""
_RESTS: Final = (0.6, 1.0)
"""Of the time, when all clients rest and descriptors are counted."""
_REST_PATIENCE: Final = 60.0
_JOIN_PATIENCE: Final = 60.0
_CONTROL: Final = {
    "search": ("search_files", msgspec.json.encode({"query": WORD, "glob": "notes/*.md"}).decode()),
    "web": ("fetch_url", msgspec.json.encode({"url": f"{PAGES}/control"}).decode()),
}


class Wanted(NamedTuple):
    """What the command line asks for."""

    seconds: float
    seed: int
    sessions: int
    progress: bool


class Soak:
    """One soak.

    Args:
        wanted: what the command line asks for.
        base: an empty directory.
    """

    def __init__(self, wanted: Wanted, base: Path) -> None:
        self._wanted = wanted
        self._base = base
        begin, end = (share * wanted.seconds for share in _SHARES[:2])
        self._schedule = Schedule(wanted.seed, begin, end)
        self._control = plan.control(wanted.seed)
        self._orders = Orders()
        self._wounds: Counter[str] = Counter()
        self._part = 0
        self._rested = 0
        self._resting = self._ending = False
        self._look_at = 0.0
        self._rests: list[Sample] = []
        self._told = threading.Event()
        """Nothing is left to tell of."""
        self._trouble: list[str] = []
        """What went wrong with the soak itself."""

    def run(self) -> bool:
        """Run it, print the figures, and say whether all is as it must be."""
        with world(self._base, self._wanted.sessions) as here:
            daemon = Daemon(here)
            teller = threading.Thread(target=self._tell, args=(daemon,), name="progress", daemon=True)
            try:
                daemon.start(None)
                if self._wanted.progress:
                    teller.start()
                self._live(here, daemon)
            except KeyboardInterrupt:
                print("interrupted: the figures so far", file=sys.stderr)
            finally:
                self._orders.end.set()
                self._ending = True
                if daemon.running:
                    daemon.kill()
            self._finish(here, daemon)
            self._told.set()
            if teller.is_alive():
                teller.join()
            evidence = self._evidence(here, daemon)
        lines, good = judge(evidence)
        print("\n".join(lines))
        return good

    # --- the three parts --------------------------------------------------------------------------------------------

    def _live(self, here: World, daemon: Daemon) -> None:
        tool, arguments = _CONTROL[self._control]
        clients = [
            *(Client(each, self._wanted.seed, here, daemon, self._orders) for each in range(self._wanted.sessions)),
            Control(tool, arguments, here, daemon, self._orders),
        ]
        for client in clients:
            client.start()
        began = time.monotonic()
        while (now := time.monotonic() - began) < self._wanted.seconds:
            self._step(here, daemon, now)
            if self._rested < len(_RESTS) - 1 and now >= _RESTS[self._rested] * self._wanted.seconds:
                self._rested += 1
                self._rest(daemon, len(clients))
            self._orders.started_calls.wait(self._schedule.until, _TICK)
        self._rest(daemon, len(clients))
        time.sleep(_LOOK_EVERY)  # so that the last kill finds something under way

    def _step(self, here: World, daemon: Daemon, now: float) -> None:
        """Do what is due after so many seconds."""
        calls = self._orders.started_calls.total
        storming = _PARTS[self._part] == "storm" and self._schedule.stormy
        if now >= _SHARES[self._part] * self._wanted.seconds and not storming:
            self._part += 1
            daemon.look()
            daemon.kill()
            self._begin(here, daemon, now, burning=True)
        if daemon.died():
            self._begin(here, daemon, now, burning=self._part > 0)
        if storming and self._schedule.kill(now, calls):
            daemon.kill()
            self._begin(here, daemon, now, burning=True)
        if wound := self._schedule.wound(now, calls):
            self._wound(daemon, wound)
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY
            daemon.look()

    def _begin(self, here: World, daemon: Daemon, now: float, *, burning: bool) -> None:
        life = len(daemon.lives)
        file = here.plans / f"{life}.toml"
        file.write_text(plan.text(self._wanted.seed, life))
        if burning:
            self._schedule.begin(now, self._orders.started_calls.total)
        daemon.start(file if burning else None)

    def _wound(self, daemon: Daemon, wound: Wound) -> None:
        """Send a signal to a worker that is not of the control category."""
        sample = daemon.look()
        workers = [] if sample is None else [each for each in live(sample.status) if each.category != self._control]
        if workers:
            workers.sort(key=lambda each: (each.category, each.root, each.number))
            worker = workers[int(wound.share * len(workers))]
            assert worker.pid is not None
            self._wounds[f"{wound.signal.name} from outside"] += daemon.hurt(worker.pid, wound.signal)

    def _tell(self, daemon: Daemon) -> None:
        """Tell how it goes, whatever the soak waits for meanwhile."""
        began, number = time.monotonic(), 0
        while True:
            part = "end" if self._ending else "rest" if self._resting else _PARTS[self._part]
            line = progress(time.monotonic() - began, part, daemon, self._orders, self._wounds.copy())
            print(line, file=sys.stderr, flush=True)
            number += 1
            if self._told.wait(began + number * _TELL_EVERY - time.monotonic()):
                return

    def _rest(self, daemon: Daemon, many: int) -> None:
        """Let all clients leave, and look at the daemon when nothing happens in it, until it is steady."""
        self._orders.rest.set()
        self._resting = True
        deadline = time.monotonic() + _REST_PATIENCE
        looks: list[Sample] = []
        while time.monotonic() < deadline and not settled(looks, self._rests):
            time.sleep(_LOOK_EVERY / 2)
            if daemon.died():
                looks.clear()
                break
            sample = daemon.look(closely=True)
            if len(self._orders.resting) < many or sample is None or not _at_rest(sample):
                looks.clear()
            else:
                looks.append(sample)
        self._rests += steadiest(looks)
        self._resting = False
        self._orders.rest.clear()

    # --- the end ----------------------------------------------------------------------------------------------------

    def _finish(self, here: World, daemon: Daemon) -> None:
        """Take up what is open, write once more where something may have been left, and end in order."""
        try:
            daemon.start(None)
            with daemon.connected(_Answering(self._wanted.seed).hear) as link:
                self._take_up(here, link)
                for number, root in enumerate(here.roots):
                    own = [each for each in range(self._wanted.sessions) if here.root(each) == root]
                    _write_everywhere(link, root, own, number)
            daemon.look()
        except (OSError, StrongroomError, RuntimeError) as error:
            self._trouble.append(f"the end: {error}")
        if daemon.running and not daemon.died():
            daemon.stop()

    def _take_up(self, here: World, link: Link) -> None:
        with open_journal(here.settings.journal) as journal:
            sessions = [entry.session for entry in journal.opened() if not entry.session.startswith("faults-")]
        for session in sessions:
            taken = schema.ReopenParams(session_id=session, cwd="/", mcp_servers=[])
            try:
                link.request("session/resume", taken, schema.SessionResult)
                params = schema.SessionParams(session_id=session)
                link.submit(extensions.CONTINUE_METHOD, params).result(_JOIN_PATIENCE)
                link.request("session/close", params, dict[str, Any])
            except DaemonRefused as error:
                if error.kind != "invalid_params":  # a session of single calls has nothing to go on with
                    self._trouble.append(f"session {session} cannot be resumed: {error}")
            except TimeoutError:
                self._trouble.append(f"session {session} does not come to its end")

    def _evidence(self, here: World, daemon: Daemon) -> Evidence:
        return Evidence(
            world=here,
            daemon=daemon,
            orders=self._orders,
            control=self._control,
            seed=self._wanted.seed,
            rests=self._rests,
            killed_at=self._schedule.killed_at,
            wounds=self._wounds,
            trouble=self._trouble,
        )


class _Answering:
    """Answers what is asked as the clients would."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def hear(self, event: LinkEvent) -> None:
        if isinstance(event, PermissionPrompt):
            found = re.search(rf"{ASKED}/(c[0-9]+)\.log", event.request.arguments)
            answer(event, self._seed, found[1] if found else folder(0))


def _at_rest(sample: Sample) -> bool:
    busy = any(each.state in ("BUSY", "STARTING") for each in live(sample.status))
    return not sample.status.sessions and not busy and sample.status.clients == 1


def _write_everywhere(link: Link, root: Path, clients: list[int], number: int) -> None:
    """Let fresh workers write in each directory that was written in: they remove what killed ones have left."""
    options = extensions.SessionOptions(profile=PROFILE, root=str(root), modelless=True, origin="call")
    params = schema.NewSessionParams(cwd=str(root), mcp_servers=[], meta={extensions.OPTIONS: options})
    session = link.request("session/new", params, schema.NewSessionResult).session_id
    places = [f"{folder(each)}/{name}" for each in clients for name in ("last.txt", f"{MADE}/last.txt")]
    places += ["last.txt", "notes/last.txt", f"{ASKED}/last.txt"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": place, "content": "The end.\n"}) for place in places
    ]
    calls.append(("exec_shell", {"command": "touch", "args": [f"{folder(clients[0])}/touched"]}))
    for tool, arguments in calls:
        text = msgspec.json.encode(arguments).decode()
        asked = extensions.CallParams(session_id=session, tool=tool, arguments=text)
        result = link.request(extensions.CALL_METHOD, asked, extensions.CallResult)
        if not msgspec.json.decode(result.answer)["ok"]:
            raise RuntimeError(f"{tool} in root {number}: {bytes(result.answer).decode()}")
    undone = link.request(extensions.UNDO_METHOD, extensions.UndoParams(session_id=session), extensions.UndoResult)
    if not all(step.ok for step in undone.steps):
        raise RuntimeError(f"the undo in root {number}: {undone.steps}")
