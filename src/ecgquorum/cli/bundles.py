"""Commands for bundles of trained ensembles: card, calibrate, pack, export."""

from pathlib import Path
from typing import Annotated

import typer

from ecgquorum.cli.application import ENSEMBLES, Bundle, CohortFolder, MemberName, app, folder_option
from ecgquorum.cli.console import err, print_line, print_table
from ecgquorum.errors import BundleError
from ecgquorum.progress import console_progress


@app.command(rich_help_panel=ENSEMBLES)
def card(
    model: Bundle,
    out: Annotated[Path | None, typer.Option(help="The Markdown file to write. Default: print it.")] = None,
) -> None:
    """Show a bundle's model card: intended use, data and licences, results, known failures."""
    from ecgquorum import model_card, read_card
    from ecgquorum._internal.atomic import write_atomic

    text = model_card(read_card(model))
    if out is None:
        print(text, end="")
        return
    if out.is_dir():
        raise BundleError(f"{out}: this is a folder; name a file to write")
    write_atomic(out, text)
    print_line(f"card: {out}")


@app.command(rich_help_panel=ENSEMBLES)
def calibrate(
    model: Bundle,
    cohort: CohortFolder,
    out: Annotated[Path, folder_option("New folder for the bundle with its risk.")],
    member: MemberName = None,
) -> None:
    """Fit a bundle's risk and feature distance on the cohort that it was trained on, and write a copy with both.

    A policy in the bundle's card is fitted again with the same settings. `train` does this by itself.
    """
    from ecgquorum import Cohort, RiskOptions, fit_risk, load_ensemble
    from ecgquorum.ensemble.bundle import check_is_new, replace_risk
    from ecgquorum.triage import fit_again, policy_from

    check_is_new(out)  # before the fit, which takes minutes
    ensemble, opened = load_ensemble(model, member=member, risk=False), Cohort(cohort)
    with console_progress("risk", err) as progress:
        found = fit_risk(ensemble, opened, RiskOptions(progress=progress))
    facts = {}
    if "policy" in ensemble.card:
        facts["policy"] = fit_again(ensemble, opened, policy_from(ensemble.card["policy"])).card()
    path = replace_risk(model, out, ensemble, facts)
    print_line(f"bundle: {path}; risk by {', '.join(found.inputs)}, on tune recordings (cross-fitted):")
    print_table(
        [
            ("", "recordings", "errors", "mean risk", "AUROC", "of 1 - max p"),
            *(
                (
                    one["name"],
                    str(one["n_records"]),
                    *(f"{100 * one[key]:.1f} %" for key in ("error_rate", "mean_risk")),
                    *(_number(one["scores"][score]["error_auroc"]) for score in ("risk", "confidence")),
                )
                for one in found.tune["conditions"]
            ),
        ]
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@app.command(rich_help_panel=ENSEMBLES)
def pack(
    model: Annotated[str, typer.Argument(help="A bundle's folder, written by `train` or `study`.")],
    scorecard: Annotated[Path, typer.Argument(help="Its scorecard, NAME.json, written by `evaluate` or `study`.")],
    out: Annotated[Path, folder_option("New folder for the bundle.")],
) -> None:
    """Write a bundle to publish: weights, and a card with the results; no checkpoints, no training history."""
    from ecgquorum import Scorecard
    from ecgquorum import pack as pack_bundle

    path = pack_bundle(model, Scorecard.load(scorecard, rows_only=True), out)
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    print_line(f"bundle: {path}, {size / 1e6:.1f} MB; show its card with: ecgquorum card {path}")


@app.command(rich_help_panel=ENSEMBLES)
def export(
    model: Bundle,
    out: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    member: MemberName = None,
) -> None:
    """Export an ensemble to ONNX: prepared signals in; probabilities, each member's, and the uncertainty out.

    The graph is run by onnxruntime and compared with the ensemble before the file is written.
    """
    from ecgquorum import export_onnx, load_ensemble
    from ecgquorum.ensemble.prediction import TOLERANCE

    ensemble = load_ensemble(model, member=member)
    path = export_onnx(ensemble, out)
    spec = ensemble.input
    print_line(
        f"{path}: signal (batch, {len(spec.leads)}, {spec.n_window}) at {spec.rate_hz:g} Hz, scaled to {spec.scaling}; "
        f"probabilities agree with the ensemble to {TOLERANCE:g}"
    )
