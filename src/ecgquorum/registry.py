"""Find members, attacks, strategies and readers by name: built in, from other packages, or by import path.

A name is looked up in three places, in this order:
1. the built-in names;
2. names that were added in this process with `register`;
3. entry points of installed packages, in the group `ecgquorum.<kind>` (for example `ecgquorum.attacks`).
A name of the form `package.module:Name` is imported as it says.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from ecgquorum.errors import RegistryError

T = TypeVar("T")


class Registry(Generic[T]):
    """Objects of one kind by name.

    kind:    what it holds, in the singular, for messages: "attack"
    builtin: name -> import path, `package.module:Name`; imported when it is first used
    """

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = f"ecgquorum.{kind[:-1]}ies" if kind.endswith("y") else f"ecgquorum.{kind}s"
        self.builtin = dict(builtin)
        self._registered: dict[str, T] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.builtin or name in self._registered or name in _entry_points(self.group)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """Every name that `get` knows, the built-in ones first."""
        others = {*self._registered, *_entry_points(self.group)} - self.builtin.keys()
        return [*self.builtin, *sorted(others)]

    def register(self, name: str, value: T) -> T:
        """Add an object of this process under a new name."""
        if name in self:
            raise RegistryError(f"{self.kind} {name!r} exists already; choose another name")
        self._registered[name] = value
        return value

    @property
    def registered(self) -> dict[str, T]:
        """The objects that were added in this process, by name; for processes that it starts."""
        return dict(self._registered)

    def get(self, name: str) -> T:
        """Return the object of this name, or raise a `RegistryError` that lists the names there are."""
        if name in self.builtin:
            return self._import(self.builtin[name])
        if name in self._registered:
            return self._registered[name]
        found = _entry_points(self.group).get(name)
        if found is not None:
            try:
                loaded: T = found.load()
            except Exception as error:  # whatever the other package does when it is imported
                source = found.dist.name if found.dist else found.value
                raise RegistryError(f"{self.kind} {name!r} of {source} cannot be imported: {error}") from error
            return loaded
        if ":" in name:
            return self._import(name)
        raise RegistryError(
            f"no {self.kind} is called {name!r}; known: {', '.join(self.names())}, or write package.module:Name"
        )

    def name_of(self, value: object) -> str:
        """Return the name by which `get` knows an object, or its import path `package.module:Name`."""
        path = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        others = {name: point.value for name, point in _entry_points(self.group).items()}
        for name, known in (self.builtin | others).items():
            if known == path:
                return name
        return next((name for name, known in self._registered.items() if known is value), path)

    def _import(self, path: str) -> T:
        module, _, qualified = path.partition(":")
        try:
            found: Any = import_module(module)
            for part in qualified.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError, ValueError) as error:
            raise RegistryError(f"{self.kind} {path!r} cannot be imported: {error}") from error
        return found  # type: ignore[no-any-return]


@lru_cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
