"""What holds for every executor: everything is done once, in order of need, and losses are made good."""

import itertools
import subprocess
import sys

import pytest
import torch

from ecgquorum.errors import ClusterError, TrainingError
from ecgquorum.parallel import Executor, LocalExecutor, Task
from ecgquorum.parallel.executor import RETRIES, RETRIES_AFTER_MACHINES, Lost
from tests.parallel import work


def test_every_task_is_done_once(executor):
    found = {task.name: said for task, said in executor.run(work.doubled, tasks(range(9)), (100,))}
    assert found == {str(i): 100 + 2 * i for i in range(9)}


def test_a_task_waits_for_those_it_needs(executor):
    graph = [
        Task("a", 0.2),
        Task("b", 0.05, frozenset("a")),
        Task("c", 0.05, frozenset("a")),
        Task("d", 0.05, frozenset("bc")),
    ]
    when = {task.name: times for task, times in executor.run(work.noted, graph)}
    for task in graph:
        for earlier in task.after:
            assert when[earlier][1] <= when[task.name][0]


def test_what_needs_nothing_overtakes_what_waits(executor, tmp_path):
    graph = [Task("a", "go"), Task("b", None, frozenset("a")), Task("c", None)]
    order = []
    for task, _ in executor.run(work.held, graph, (str(tmp_path),)):
        order.append(task.name)
        (tmp_path / "go").touch()  # "a" ends only after something else has
    assert order == ["c", "a", "b"]


def test_tasks_are_taken_as_there_is_room(executor):
    taken = []

    def endless():
        for i in itertools.count():
            taken.append(i)
            yield Task(str(i), i)

    running = executor.run(work.doubled, endless(), (0,))
    for _ in range(5):
        next(running)
    running.close()
    assert len(taken) <= 5 + executor.room


def test_a_lost_process_costs_its_task_only_a_repetition(executor, tmp_path):
    lost = []
    executor.told = lost.append
    found = [said for _, said in executor.run(work.killed_at_first, tasks(range(2)), (str(tmp_path),))]
    executor.told = None
    assert sorted(found) == [0, 1]
    assert sorted(line.partition(":")[0] for line in lost) == ["0", "1"]
    assert [said for _, said in executor.run(work.doubled, tasks([1]), (0,))] == [2]


def test_a_task_that_always_kills_is_given_up(executor):
    ((task, said),) = executor.run(work.always_killed, [Task("poison", 0)], given_up=str)
    assert task.name == "poison"
    assert said.startswith(f"poison: expected its process to live, lost it {RETRIES + 1} times (")


class Unlucky(Executor):
    """Loses the machine of every task so many times."""

    threads, room = 1, 2

    def __init__(self, times):
        self.times = times

    def close(self):
        pass

    def _prepared(self, function, common):
        return function

    def _begun(self, prepared, item):
        self.times -= 1
        return prepared, item

    def _finished(self, handles):
        lost = Lost("the node was called back", with_machine=True)
        return [(handle, lost if self.times >= 0 else handle[0](handle[1])) for handle in handles]

    def _given_up(self, handles):
        pass


def test_machines_may_be_lost_more_often_than_processes_but_not_for_ever():
    ((_, said),) = Unlucky(RETRIES_AFTER_MACHINES).run(str, [Task("a", 7)])
    assert said == "7"
    with pytest.raises(ClusterError, match=rf"^a: expected its machine to live, lost it {RETRIES_AFTER_MACHINES + 1}"):
        list(Unlucky(RETRIES_AFTER_MACHINES + 1).run(str, [Task("a", 7)]))


def test_an_error_of_the_task_is_that_error(executor):
    with pytest.raises(TrainingError, match="^7: expected something else") as caught:
        list(executor.run(work.refused, tasks([7])))
    assert "in refused" in "".join(caught.value.__notes__), "where it was raised is known with --debug"
    assert [said for _, said in executor.run(work.doubled, tasks([1]), (0,))] == [2]


def test_the_same_threads_give_the_same_bits(executor):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _, here = work.multiplied(3)
    finally:
        torch.set_num_threads(before)
    ((_, (threads, there)),) = executor.run(work.multiplied, tasks([3]))
    assert threads == 1
    assert torch.equal(here, there)


def test_processes_are_kept_from_run_to_run():
    with LocalExecutor(workers=1, threads=1) as executor:
        first, second = (next(iter(executor.run(work.process, tasks([0]))))[1] for _ in range(2))
    assert first == second


def test_what_cannot_be_unpacked_there_is_the_tasks_error_and_no_lost_process():
    with LocalExecutor(1, 1) as executor:
        for item, common in ((work.Elsewhere(), 0), (0, work.Elsewhere())):
            with pytest.raises(FileNotFoundError, match="/nowhere/at/all"):
                list(executor.run(work.doubled, tasks([item]), (common,)))
        with pytest.raises(Exception, match="pickle"):
            list(executor.run(work.doubled, [Task("a", lambda: None)], (0,)))
        assert [said for _, said in executor.run(work.doubled, tasks([1]), (0,))] == [2]


UNGUARDED = """
import operator
from ecgquorum.parallel import LocalExecutor, Task
with LocalExecutor(1, 1) as executor:  # which a script must not do when it is imported by its own processes
    list(executor.run(operator.contains, [Task("a", 1)], (bytes(1_000_000),)))
"""


def test_processes_that_die_at_their_start_are_given_up(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1
    assert "ClusterError: a: expected its process to live, lost it 4 times" in ran.stderr


def test_a_task_that_waits_for_nobody_is_an_error():
    with LocalExecutor(1, 1) as executor, pytest.raises(ClusterError, match="^b: expected the tasks that it waits for"):
        list(executor.run(work.doubled, [Task("b", 1, frozenset("a"))], (0,)))


def tasks(items):
    return [Task(str(item), item) for item in items]
