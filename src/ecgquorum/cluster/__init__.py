"""Work on more than one process or machine: tasks, and who does them."""

from ecgquorum.cluster.executor import Executor, Task
from ecgquorum.cluster.local import LocalExecutor

__all__ = ["Executor", "LocalExecutor", "Task"]
