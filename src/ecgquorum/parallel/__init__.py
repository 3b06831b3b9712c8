"""Work on more than one process or machine: tasks, and who does them. Nothing else imports ray."""

from ecgquorum.parallel.executor import Executor, Task
from ecgquorum.parallel.local_executor import LocalExecutor

__all__ = ["Executor", "LocalExecutor", "Task"]
