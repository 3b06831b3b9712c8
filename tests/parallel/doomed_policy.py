"""A policy that keeps a machine busy until it is killed; a module, so that other machines can import it."""

import time
from dataclasses import dataclass
from pathlib import Path

from ecgquorum.triage.policies import Threshold


@dataclass(frozen=True)
class Doomed(Threshold):
    """On the doomed machine it leaves a mark and never ends; on the others it ends once there is that mark."""

    mark: str = ""
    machine: str = ""

    def defer(self, prediction):
        import ray

        doomed = ray.get_runtime_context().get_node_id() == self.machine
        if doomed:
            Path(self.mark).touch()
        while doomed or not Path(self.mark).exists():
            time.sleep(0.05)
        return super().defer(prediction)
