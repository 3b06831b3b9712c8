"""What a reader can answer: one class, several, none of these, or that it cannot be told."""

from collections.abc import Sequence
from dataclasses import dataclass

from ecgquorum.service.http_errors import UnprocessableError

CLASS, CLASSES, NONE, UNCLEAR = "class", "classes", "none", "unclear"
KINDS = (CLASS, CLASSES, NONE, UNCLEAR)
MAX_COMMENT = 2000
_MAX_LABEL = 100
_TEXTS = {NONE: "none of these", UNCLEAR: "cannot tell"}


@dataclass(frozen=True)
class Judgement:
    """An answer of a reader: its kind, its classes in the order of the model, and a comment."""

    kind: str
    labels: tuple[str, ...] = ()
    comment: str = ""

    @property
    def text(self) -> str:
        """The answer as text: the class, `A + B`, `none of these` or `cannot tell`."""
        return _TEXTS.get(self.kind) or " + ".join(self.labels)


def make_judgement(labels: Sequence[str], kind: str, comment: str, classes: Sequence[str]) -> Judgement:
    """Check an answer against the classes of the case's model; several labels are of the kind `classes`."""
    for label in labels:
        if label not in classes:
            raise UnprocessableError(f"{label!r} is not a class of the model; expected one of {', '.join(classes)}")
    chosen = tuple(name for name in classes if name in labels)
    if kind in _TEXTS:
        if chosen:
            raise UnprocessableError(f"{_TEXTS[kind]!r} has no classes, found {', '.join(chosen)}")
    elif not chosen:
        raise UnprocessableError(f"choose a class ({', '.join(classes)}), or the kind none or unclear")
    else:
        kind = CLASS if len(chosen) == 1 else CLASSES
    made = Judgement(kind, chosen, comment.replace("\0", "").strip()[:MAX_COMMENT])
    if len(made.text) > _MAX_LABEL:
        raise UnprocessableError("these are too many classes for one verdict")
    return made
