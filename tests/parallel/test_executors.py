"""Every executor runs each task once, after those it depends on, and again when its process was lost."""

import importlib
import itertools
import subprocess
import sys

import pytest
import torch

from ecgquorum.errors import ClusterError, TrainingError
from ecgquorum.parallel import Executor, LocalExecutor, Task
from ecgquorum.parallel.executor import RETRIES, RETRIES_AFTER_MACHINES, Lost
from ecgquorum.progress import NO_PROGRESS
from ecgquorum.recordings import write
from tests.parallel import work

pytestmark = pytest.mark.usefixtures("spawned_workers")


def test_every_task_is_done_once(executor):
    found = {task.name: said for task, said in executor.run(work.double, tasks(range(9)), (100,))}
    assert found == {str(i): 100 + 2 * i for i in range(9)}


def test_a_task_waits_for_those_it_needs(executor):
    graph = [
        Task("a", 0.2),
        Task("b", 0.05, frozenset("a")),
        Task("c", 0.05, frozenset("a")),
        Task("d", 0.05, frozenset("bc")),
    ]
    when = {task.name: times for task, times in executor.run(work.timed_sleep, graph)}
    for task in graph:
        for earlier in task.after:
            assert when[earlier][1] <= when[task.name][0]


def test_independent_tasks_do_not_wait(executor, tmp_path):
    graph = [Task("a", "go"), Task("b", None, frozenset("a")), Task("c", None)]
    order = []
    for task, _ in executor.run(work.wait_for_mark, graph, (str(tmp_path),)):
        order.append(task.name)
        (tmp_path / "go").touch()  # "a" ends only after something else has
    assert order == ["c", "a", "b"]


def test_tasks_are_taken_when_there_is_capacity(executor):
    taken = []

    def endless():
        for i in itertools.count():
            taken.append(i)
            yield Task(str(i), i)

    running = executor.run(work.double, endless(), (0,))
    for _ in range(5):
        next(running)
    running.close()
    assert len(taken) <= 5 + executor.capacity


@pytest.mark.long
def test_a_task_of_a_lost_process_is_run_again(executor, tmp_path):
    progress = work.Log()
    executor.progress = progress
    found = [said for _, said in executor.run(work.die_at_first, tasks(range(2)), (str(tmp_path),))]
    executor.progress = NO_PROGRESS
    assert sorted(found) == [0, 1]
    assert sorted(line.partition(":")[0] for line in progress.lines) == ["0", "1"]
    assert [said for _, said in executor.run(work.double, tasks([1]), (0,))] == [2]


@pytest.mark.long
def test_a_task_that_always_kills_its_process_fails(executor):
    ((task, said),) = executor.run(work.die, [Task("poison", 0)], on_lost=str)
    assert task.name == "poison"
    assert said.startswith(f"poison: lost its process {RETRIES + 1} times (")


class Unlucky(Executor):
    """Loses the machine of every task so many times."""

    threads, capacity = 1, 2

    def __init__(self, times):
        self.times = times

    def close(self):
        pass

    def _prepare(self, function, common):
        return function

    def _submit(self, prepared, item):
        self.times -= 1
        return prepared, item

    def _wait(self, handles):
        lost = Lost("the node was called back", with_machine=True)
        return [(handle, lost if self.times >= 0 else handle[0](handle[1])) for handle in handles]

    def _cancel(self, handles):
        pass


def test_lost_machines_have_a_larger_retry_limit_than_lost_processes():
    ((_, said),) = Unlucky(RETRIES_AFTER_MACHINES).run(str, [Task("a", 7)])
    assert said == "7"
    with pytest.raises(ClusterError, match=rf"^a: lost its machine {RETRIES_AFTER_MACHINES + 1} times"):
        list(Unlucky(RETRIES_AFTER_MACHINES + 1).run(str, [Task("a", 7)]))


def test_an_error_raised_by_a_task_is_raised(executor):
    with pytest.raises(TrainingError, match="^7: expected something else") as caught:
        list(executor.run(work.fail, tasks([7])))
    assert "in fail" in "".join(caught.value.__notes__), "where it was raised is known with --debug"
    assert [said for _, said in executor.run(work.double, tasks([1]), (0,))] == [2]


def test_the_same_threads_give_the_same_bits(executor):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _, here = work.multiply(3)
    finally:
        torch.set_num_threads(before)
    ((_, (threads, there)),) = executor.run(work.multiply, tasks([3]))
    assert threads == 1
    assert torch.equal(here, there)


def test_processes_are_reused_between_runs(processes):
    first, second = (next(iter(processes.run(work.process, tasks([0]))))[1] for _ in range(2))
    assert first == second


def test_an_unpickling_error_is_an_error_of_the_task(processes):
    for item, common in ((work.Elsewhere(), 0), (0, work.Elsewhere())):
        with pytest.raises(FileNotFoundError, match="/nowhere/at/all"):
            list(processes.run(work.double, tasks([item]), (common,)))
    with pytest.raises(Exception, match="pickle"):
        list(processes.run(work.double, [Task("a", lambda: None)], (0,)))
    assert [said for _, said in processes.run(work.double, tasks([1]), (0,))] == [2]


@pytest.mark.long
def test_a_process_killed_while_it_sends_its_result_does_not_block_the_others(processes, tmp_path):
    sizes = [len(sent) for _, sent in processes.run(work.die_while_sending, tasks(range(4)), (str(tmp_path),))]
    assert sizes == [work.N_SENT] * 4


UNGUARDED = """
import operator
from ecgquorum.parallel import LocalExecutor, Task
with LocalExecutor(1, 1) as executor:  # which a script must not do when it is imported by its own processes
    list(executor.run(operator.contains, [Task("a", 1)], (bytes(1_000_000),)))
"""


def test_processes_that_die_at_start_are_an_error(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1
    assert "ClusterError: a: lost its process 4 times" in ran.stderr


def test_a_dependency_on_an_unknown_task_is_an_error():
    with LocalExecutor(1, 1) as executor, pytest.raises(ClusterError, match="^b: depends on a task"):
        list(executor.run(work.double, [Task("b", 1, frozenset("a"))], (0,)))


def tasks(items):
    return [Task(str(item), item) for item in items]


def test_processes_of_a_command_do_not_import_the_command_line(monkeypatch):
    program = importlib.import_module("ecgquorum.__main__")
    monkeypatch.setitem(sys.modules, "__main__", program)
    with LocalExecutor(1, 1) as executor:
        ((_, imported),) = executor.run(work.is_imported, [Task("command line", "ecgquorum.cli")])
    assert not imported
    assert program.__spec__.name == "ecgquorum.__main__"
    assert program.__file__


@pytest.mark.long
def test_triage_takes_a_cluster(two_machines, ray_executor, tiny_run, tiny_cohort, tmp_path, ecgquorum):
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(8):
        write(tiny_cohort.recording(i), folder / f"r{i}.npz")
    (folder / "broken.npz").write_bytes(b"this is no recording")
    ray = ("--executor", "ray", "--address", two_machines.address)
    options = ("--budget", "10%", "--out", tmp_path / "out", "--plots", 0)
    ran = ecgquorum("triage", folder, "--model", tiny_run, *options, *ray, code=3)
    assert "1 unreadable" in ran.stdout
