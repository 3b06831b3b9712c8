"""Jinja2 templates of pages and model cards."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

_HERE = "ecgquorum.report"


def load_template(name: str, package: str = _HERE) -> Template:
    """Load the template `name` of a package, which may include this one's; values in HTML are escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(_HERE, ".")]),
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"dec": _format_number, "signed": _format_signed}
    return environment.get_template(name)


def _format_number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}"


def _format_signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}"
