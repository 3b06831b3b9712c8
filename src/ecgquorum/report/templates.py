"""The templates of pages and cards."""

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def template(name: str) -> Template:
    """The template `name` of this package; what is put into a page of HTML is escaped."""
    environment = Environment(
        loader=PackageLoader("ecgquorum.report", "."),
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"dec": _dec, "signed": _signed}
    return environment.get_template(name)


def _dec(value: float, digits: int) -> str:
    return f"{value:.{digits}f}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}"
