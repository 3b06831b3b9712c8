"""The templates of pages and cards."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

_HERE = "ecgquorum.report"


def template(name: str, package: str = _HERE) -> Template:
    """The template `name` of a package, which may include this one's; what is put into a page of HTML is escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(_HERE, ".")]),
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
