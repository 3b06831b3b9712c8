"""Another model than before: results belong to their model, and nothing changes silently."""

import io
import zipfile
from dataclasses import replace

import httpx
import pytest

from ecgquorum.cli.desk import _open_desk
from ecgquorum.ensemble import Ensemble, save_bundle
from ecgquorum.ensemble.prediction import information_range
from ecgquorum.members import build_member
from ecgquorum.preprocessing import InputSpec
from ecgquorum.service.server import ModelChangedError
from ecgquorum.service.store import models, reviews
from ecgquorum.service.store.tables import RecordingRow
from ecgquorum.simulation import simulate
from ecgquorum.triage import Threshold

from .conftest import listening, put


@pytest.fixture(scope="module")
def other_model(tiny_recipe, tmp_path_factory):
    """A model with other classes."""
    built = {"n_leads": 1, "n_classes": 3, "rate_hz": 300.0, "options": tiny_recipe.member.options}
    members = [build_member(tiny_recipe.member.kind, seed=9 + i, **built).eval() for i in range(2)]
    ensemble = Ensemble(members, ("AF", "SR", "ST"), InputSpec(("ECG",), 300.0, tiny_recipe.input.scaling, 6.0))
    seen = [simulate("NAO"[i % 3], seed=i, seconds=6, leads=("ECG",)).recording for i in range(6)]
    ensemble.information_range = information_range(ensemble.predict(seen))
    out = tmp_path_factory.mktemp("other-model") / "model"
    return save_bundle(ensemble, out, recipe=tiny_recipe, facts={"policy": Threshold(-1.0).card()})


@pytest.fixture
def reviewed(make_desk, examples, classify):
    """A desk of the first model with open cases; one has a first verdict. Gives the ids of that one and of another."""
    desk = make_desk(audit_share=1.0)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        for path in sorted(examples.glob("r*.npz"))[:3]:
            put(client, path)
        classify(desk)
        first, other, *_ = [
            one["id"] for one in client.get("/api/recordings", params={"state": "open"}).json()["cases"]
        ]
        client.put(f"/api/recordings/{first}/claim").raise_for_status()
        client.post(f"/api/recordings/{first}/verdicts", json={"label": "N"}).raise_for_status()
    return first, other


def test_another_model_is_refused_until_someone_decides(reviewed, make_desk, other_model):
    with pytest.raises(ModelChangedError, match="2 open cases .* --reclassify.* --keep-results"):
        make_desk(model=str(other_model))
    make_desk()  # the same model again asks nothing


def test_kept_results_offer_the_classes_of_their_own_model(reviewed, make_desk, other_model, examples, classify):
    _, other = reviewed
    desk = make_desk(model=str(other_model), reclassify=False)
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        assert client.get(f"/api/recordings/{other}").json()["classes"] == ["N", "A", "O", "~"]
        client.put(f"/api/recordings/{other}/claim").raise_for_status()
        refused = client.post(f"/api/recordings/{other}/verdicts", json={"label": "AF"})
        assert refused.status_code == 422 and "expected one of N, A, O, ~" in refused.json()["detail"]
        assert client.post(f"/api/recordings/{other}/verdicts", json={"label": "A"}).status_code == 201
        assert client.get(f"/api/recordings/{other}/maps").status_code == 404, "maps are of the current model"
        new = put(client, examples / "r5.npz").json()["id"]
        classify(desk)
        assert client.get(f"/api/recordings/{new}").json()["classes"] == ["AF", "SR", "ST"]
    make_desk(model=str(other_model))  # decided once; a restart does not ask again


def test_open_cases_are_classified_again_on_request_but_not_those_with_a_verdict(
    reviewed, make_desk, other_model, model, classify
):
    first, other = reviewed
    desk = make_desk(model=str(other_model), reclassify=True)
    classify(desk)
    with desk.store.read_session() as session:
        now = {one: reviews.latest_result(session, one).model_sha256 for one in reviewed}
        assert now[other] == desk.model_sha256 != now[first]
    back = make_desk(model=str(model), reclassify=True)  # and back again: one result for each model
    classify(back)
    with back.store.read_session() as session:
        assert reviews.latest_result(session, other).model_sha256 == back.model_sha256
        assert models.count_open_of_others(session, back.model_sha256) == 0


def test_a_case_that_is_classified_again_stays_blind_meanwhile(reviewed, make_desk, other_model, classify):
    _, other = reviewed
    desk = make_desk(model=str(other_model), reclassify=True)
    with desk.store.read_session() as session:
        label = reviews.latest_result(session, other).label
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60) as client:
        case = client.get(f"/api/recordings/{other}").json()
        assert (case["state"], case["answer"]) == ("waiting", None)
        found = client.get("/api/recordings", params={"label": label, "state": "waiting"}).json()
        assert found["total"] == 0, "a filter must not tell the class"
        entries = client.get("/api/audit", params={"limit": 1000}).json()["entries"]
        answers = [one["details"] for one in entries if (one["subject"], one["action"]) == (other, "classified")]
        assert answers == [{"hidden": "until the case is closed"}]
        assert client.get(f"/api/recordings/{other}/maps").status_code == 409
        with zipfile.ZipFile(io.BytesIO(client.get("/api/export/fhir.zip").content)) as archive:
            assert not any(other.encode() in archive.read(name) for name in archive.namelist())
        classify(desk)
        assert client.get(f"/api/recordings/{other}").json()["state"] == "open"


@pytest.mark.parametrize(("answer", "state"), [("y", "waiting"), ("n", "open")])
def test_the_command_asks_what_to_do_with_open_cases(
    reviewed, make_desk, other_model, monkeypatch, capsys, answer, state
):
    _, other = reviewed
    settings = replace(make_desk().settings, model=str(other_model))

    class Terminal(io.StringIO):
        has_person = False

        def isatty(self):
            return self.has_person

    terminal = Terminal(f"{answer}\n")
    monkeypatch.setattr("sys.stdin", terminal)
    with pytest.raises(ModelChangedError):  # nobody is there to answer
        _open_desk(settings, None)
    terminal.has_person = True
    desk = _open_desk(settings, None)
    assert "Classify them again?" in capsys.readouterr().out
    with desk.store.read_session() as session:
        assert reviews.visible_state(session.get_one(RecordingRow, other)) == state
    desk.close()
