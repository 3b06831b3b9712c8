"""Run tasks in several processes or machines, and train over ranks. Nothing else imports Ray or torch.distributed."""

from ecgquorum.parallel.executor import Executor, Task
from ecgquorum.parallel.local_executor import LocalExecutor

__all__ = ["Executor", "LocalExecutor", "Task"]
