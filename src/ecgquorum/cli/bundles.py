"""Commands about trained ensembles: card, pack, export."""

from pathlib import Path
from typing import Annotated

import typer

from ecgquorum.cli.application import app
from ecgquorum.cli.console import out as stdout
from ecgquorum.errors import BundleError


@app.command()
def card(
    model: Annotated[
        str, typer.Argument(help="A bundle's folder (what `train` wrote), or the name of one that ships.")
    ],
    out: Annotated[Path | None, typer.Option(help="The Markdown file to write. Default: print it.")] = None,
) -> None:
    """Show an ensemble's model card: what it is for, its data and their terms, its results, its known failures."""
    from ecgquorum import load_ensemble, model_card
    from ecgquorum._internal.atomic import write_atomic

    text = model_card(load_ensemble(model).card)
    if out is None:
        print(text, end="")
        return
    if out.is_dir():
        raise BundleError(f"{out}: expected the name of a file, found a folder")
    write_atomic(out, text)
    stdout.print(f"card: {out}", markup=False)


@app.command()
def pack(
    model: Annotated[str, typer.Argument(help="A bundle's folder, what `train` or `study` wrote.")],
    scorecard: Annotated[Path, typer.Argument(help="What `evaluate` or `study` measured of it, NAME.json.")],
    out: Annotated[Path, typer.Option(help="Folder for the bundle.")],
) -> None:
    """Write a bundle to give to others: weights, and a card with its results; no checkpoints, no history."""
    from ecgquorum import Scorecard
    from ecgquorum import pack as packed

    path = packed(model, Scorecard.load(scorecard, rows_only=True), out)
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    stdout.print(f"bundle: {path}, {size / 1e6:.1f} MB; its card: ecgquorum card {path}", markup=False)


@app.command()
def export(
    model: Annotated[
        str, typer.Argument(help="A bundle's folder (what `train` wrote), or the name of one that ships.")
    ],
    out: Annotated[Path, typer.Option(help="The ONNX file to write.")],
) -> None:
    """Write an ensemble as ONNX: fitted signals in; probabilities, every member's, and uncertainty out.

    The graph is run by onnxruntime and compared with the ensemble before the file is written.
    """
    from ecgquorum import export_onnx, load_ensemble
    from ecgquorum.ensemble.onnx_export import TOLERANCE

    ensemble = load_ensemble(model)
    path = export_onnx(ensemble, out)
    spec = ensemble.input
    stdout.print(
        f"{path}: signal (batch, {len(spec.leads)}, {spec.n_window}) at {spec.rate_hz:g} Hz, scaled to {spec.scaling}; "
        f"agrees with the ensemble to {TOLERANCE:g}",
        markup=False,
    )
