"""Cores, storage, network, cost and people that a fleet of devices needs for a year, and what breaks first.

    python -m benchmarks.capacity [--recordings 1e9] [--cpu-ms 36] [--deferred 10%] ...

Nothing is measured here: every number follows from the assumptions, which are the options. Prices are in any currency.
"""

import argparse
from dataclasses import dataclass, field, fields
from typing import Any

YEAR_S = 365.25 * 24 * 3600
_GB, _MONTHS = 1e9, 12


def _option(default: float, text: str) -> Any:
    return field(default=default, metadata={"help": f"{text}. Default: {default:g}"})


@dataclass(frozen=True)
class Assumptions:
    """What the plan assumes."""

    recordings: float = _option(1e9, "recordings a year")
    cpu_ms: float = _option(36.0, "CPU time of a recording from file to worklist, in ms")
    bytes: float = _option(18_200, "size of a recording: 30 s, one lead, 300 Hz, 16 bit, with its header")
    result_bytes: float = _option(5_000, "size of its result in journal and worklist")
    files: float = _option(2, "files of a recording; a WFDB record has 2")
    reads: float = _option(2.002, "requests to read a file: HEAD, GET, and a thousandth of a LIST for each of two keys")
    peak: float = _option(3.0, "rate in the busiest hour, divided by the mean")
    utilisation: float = _option(0.6, "share of a core's time that is used at the peak")
    deferred: float = _option(0.10, "share of recordings that people read")
    reader_s: float = _option(60.0, "seconds that a person needs for one")
    reader_hours: float = _option(1600.0, "hours a year that a person reads")
    core_hour: float = _option(0.05, "price of a core for an hour")
    gb_month: float = _option(0.023, "price of a gigabyte for a month")
    kilo_reads: float = _option(0.0004, "price of 1,000 GET or HEAD requests")
    kilo_writes: float = _option(0.005, "price of 1,000 PUT or LIST requests")
    person_hour: float = _option(60.0, "price of an hour of a reader")
    people: float = _option(20.0, "readers that there are")
    cores: float = _option(64.0, "cores that there are")
    gbit: float = _option(1.0, "network of the machines that classify, in Gbit/s")
    bucket_reads: float = _option(5500.0, "requests to read that one prefix of a bucket answers a second")
    journal_rate: float = _option(3600.0, "results that one command writes a second")
    names_gb: float = _option(4.0, "memory for the names of the files of one command, at 400 bytes for a recording")
    commands: float = _option(365.0, "commands a year: one a day")


@dataclass(frozen=True)
class Limit:
    """A need at the peak and what there is of it, both in `unit`."""

    name: str
    needed: float
    there_is: float
    unit: str

    @property
    def load(self) -> float:
        """More than 1: it is not enough."""
        return self.needed / self.there_is


@dataclass(frozen=True)
class Plan:
    """What follows from the assumptions."""

    given: Assumptions

    @property
    def peak_rate(self) -> float:
        """Recordings a second in the busiest hour."""
        return self.given.recordings / YEAR_S * self.given.peak

    @property
    def core_hours(self) -> float:
        """A year's CPU time, in hours."""
        return self.given.recordings * self.given.cpu_ms / 1000 / 3600

    @property
    def cores(self) -> float:
        """Cores that keep up with the busiest hour."""
        return self.peak_rate * self.given.cpu_ms / 1000 / self.given.utilisation

    @property
    def stored_gb(self) -> float:
        """A year's recordings and results."""
        return self.given.recordings * (self.given.bytes + self.given.result_bytes) / _GB

    @property
    def peak_mbit(self) -> float:
        """Network in the busiest hour, in Mbit/s: recordings in, results out."""
        return self.peak_rate * (self.given.bytes + self.given.result_bytes) * 8 / 1e6

    @property
    def reader_hours(self) -> float:
        """A year's time of people."""
        return self.given.recordings * self.given.deferred * self.given.reader_s / 3600

    @property
    def people(self) -> float:
        """Readers, at so many hours a year each."""
        return self.reader_hours / self.given.reader_hours

    def costs(self) -> dict[str, float]:
        """The price of each part for the year; storage as if the year's data were there for all of it."""
        given, requests = self.given, self.given.recordings * self.given.files
        return {
            "computing": self.core_hours / given.utilisation * given.core_hour,
            "storage": self.stored_gb * given.gb_month * _MONTHS,
            "requests to read": requests * given.reads / 1000 * given.kilo_reads,
            "requests of the devices to write": requests / 1000 * given.kilo_writes,
            "people": self.reader_hours * given.person_hour,
        }

    def limits(self) -> list[Limit]:
        """What can be too little, the scarcest first."""
        given = self.given
        names_gb = given.recordings / given.commands * 400 / _GB
        found = [
            Limit("people who read", self.people, given.people, "persons"),
            Limit("cores", self.cores, given.cores, "cores"),
            Limit("network", self.peak_mbit, given.gbit * 1000, "Mbit/s"),
            Limit("requests of a prefix", self.peak_rate * given.files * given.reads, given.bucket_reads, "a second"),
            Limit("journal of one command", self.peak_rate, given.journal_rate, "results a second"),
            Limit("names in one command", names_gb, given.names_gb, "GB"),
        ]
        return sorted(found, key=lambda limit: -limit.load)


def format_plan(plan: Plan) -> str:
    """The tables as Markdown."""
    costs, limits = plan.costs(), plan.limits()
    lines = ["| a year | |", "|---|---:|"]
    lines += [f"| {name} | {value} |" for name, value in _needs(plan).items()]
    lines += ["", "| cost of a year | | share |", "|---|---:|---:|"]
    total = sum(costs.values())
    lines += [f"| {name} | {_number(cost)} | {cost / total:.1%} |" for name, cost in costs.items()]
    lines += [f"| total | {_number(total)} | |", f"| without people | {_number(total - costs['people'])} | |"]
    lines += ["", "| what breaks first | needed | there is | load |", "|---|---:|---:|---:|"]
    lines += [
        f"| {one.name} ({one.unit}) | {_number(one.needed)} | {_number(one.there_is)} | {one.load:.0%} |"
        for one in limits
    ]
    worst = limits[0]
    advice = "is not enough" if worst.load > 1 else f"lasts up to {1 / worst.load:.1f} times as many recordings"
    return "\n".join([*lines, "", f"First: {worst.name}, which {advice}."])


def _needs(plan: Plan) -> dict[str, str]:
    given = plan.given
    return {
        "recordings": _number(given.recordings),
        "recordings a second, mean and peak": f"{given.recordings / YEAR_S:.1f} and {plan.peak_rate:.1f}",
        "CPU time, core-hours": _number(plan.core_hours),
        "cores for the peak": f"{plan.cores:.1f}",
        "recordings and results, TB": f"{plan.stored_gb / 1000:.1f}",
        "network at the peak, Mbit/s": f"{plan.peak_mbit:.1f}",
        "requests to read, millions": _number(given.recordings * given.files * given.reads / 1e6),
        "recordings that people read": _number(given.recordings * given.deferred),
        "people": _number(plan.people),
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def parse_assumptions(arguments: list[str] | None = None) -> Assumptions:
    """The assumptions with those that the command line changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for one in fields(Assumptions):
        name, text = f"--{one.name.replace('_', '-')}", one.metadata["help"]
        parser.add_argument(name, type=_share, default=one.default, metavar="X", help=text)
    found = Assumptions(**vars(parser.parse_args(arguments)))
    for one in fields(Assumptions):
        value = getattr(found, one.name)
        if value < 0 or (one.name in _POSITIVE and not value):
            parser.error(f"--{one.name.replace('_', '-')}: expected a number above 0")
    return found


_POSITIVE = (
    "recordings",
    "utilisation",
    "reader_hours",
    "people",
    "cores",
    "gbit",
    "bucket_reads",
    "journal_rate",
    "names_gb",
    "commands",
)


def _share(text: str) -> float:
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


if __name__ == "__main__":
    print(format_plan(Plan(parse_assumptions())))
