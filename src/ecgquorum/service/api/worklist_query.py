"""The filter of the worklist as parameters of a URL, the same for pages and programs."""

from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel, Field

from ecgquorum.service.store.tokens import Actor, Role
from ecgquorum.service.store.worklist import WorklistFilter

ShownState = Literal["", "open", "waiting", "incomplete", "confirmed", "amended", "certain", "unreadable"]
Quality = Literal["", "usable", "doubtful", "unreadable"]
Sort = Literal["", "newest", "oldest", "name"]
Day = Annotated[str, Field(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$", description="A day (UTC), such as 2026-01-31.")]
RowId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Name = Annotated[str, Field(max_length=100)]


class FilterQuery(BaseModel):
    """Which recordings, in which order."""

    state: ShownState = ""
    quality: Quality = ""
    q: Annotated[str, Field(max_length=200, description="Part of the name or of the id.")] = ""
    label: Annotated[Name, Field(description="Class of the verdict or of the ensemble; not of open cases.")] = ""
    uploader: Name = ""
    since: Day = ""
    until: Day = ""
    urgent: bool = False
    mine: Annotated[bool, Field(description="Only those assigned to, claimed or read by you.")] = False
    sort: Sort = ""

    def filter_for(self, who: Actor) -> WorklistFilter:
        """The filter of this person; uploaders see their own uploads only."""
        chosen = WorklistFilter(
            self.state, self.quality, _clean(self.q), _clean(self.uploader), _clean(self.label), self.since, self.until
        )
        own = who.name if who.roles == {Role.UPLOADER} else chosen.uploader
        return replace(chosen, uploader=own, urgent=self.urgent, mine=who.name if self.mine else "", sort=self.sort)

    def link(self, path: str, **changes: object) -> str:
        """A path with this filter in its query, changed as given."""
        chosen = self.model_dump(exclude_defaults=True, exclude={"offset", "ids"}) | changes
        query = urlencode(
            {name: str(value).lower() if value is True else value for name, value in chosen.items() if value}
        )
        return f"{path}?{query}" if query else path


class ListQuery(FilterQuery):
    """A part of the worklist."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class RowsQuery(FilterQuery):
    """Some recordings, by their ids."""

    ids: Annotated[list[RowId], Field(max_length=100)] = []


def _clean(text: str) -> str:
    return text.replace("\0", "")


CaseFilter = Annotated[FilterQuery, Query()]
ListFilter = Annotated[ListQuery, Query()]
RowsFilter = Annotated[RowsQuery, Query()]
