"""Two readers, blind to each other, a third where they disagree, and their agreement."""

import httpx
import pytest

from ecgquorum.errors import DeskError
from ecgquorum.service.reader_metrics import cohen_kappa, fleiss_kappa

from .conftest import give_token, listening, needs_chromium, playwright, put

NAMES = ("Ada", "Bob", "Cem")


def test_cohens_kappa_of_known_tables():
    # Cohen's example form: 50 cases, 20 both yes, 15 both no, 5 and 10 apart: p_o 0.7, p_e 0.5, kappa 0.4
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)
    assert cohen_kappa([("a", "a"), ("b", "b")]) == 1
    assert cohen_kappa([("a", "b"), ("b", "a")]) == -1
    assert cohen_kappa([]) is None and cohen_kappa([("a", "a")]) is None


def test_fleiss_kappa_of_the_published_example():
    # Fleiss' table of 10 subjects, 14 raters and 5 categories: kappa 0.210
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    ratings = [[str(label) for label, count in enumerate(row) for _ in range(count)] for row in table]
    assert fleiss_kappa(ratings) == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa([["a", "a"], ["b", "b"]]) == 1 and fleiss_kappa([]) is None


@pytest.fixture
def team(database, make_desk, examples, classify):
    """A desk where two read every case: clients of three readers, one of an admin, and the open cases."""
    give_to = make_desk(database=database)
    tokens = {name: give_token(give_to, name, "reader") for name in NAMES}
    tokens["Ann"] = give_token(give_to, "Ann", "admin")
    desk = make_desk(database=database, audit_share=1.0, second_share=1.0)
    with listening(desk) as address:
        clients = {
            name: httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {token}"})
            for name, token in tokens.items()
        }
        for path in sorted(examples.glob("r*.npz")):
            put(clients["Ann"], path).raise_for_status()
        classify(desk)
        ids = [one["id"] for one in clients["Ada"].get("/api/recordings", params={"state": "open"}).json()["cases"]]
        yield desk, clients, ids, tokens
        for client in clients.values():
            client.close()


def read(client, case_id, *labels):
    client.put(f"/api/recordings/{case_id}/claim").raise_for_status()
    for label in labels:
        last = client.post(f"/api/recordings/{case_id}/verdicts", json={"label": label})
        last.raise_for_status()
    return last.json()


def test_two_who_agree_close_the_case_and_do_not_see_each_other(team):
    _, clients, ids, _ = team
    case = ids[0]
    first = read(clients["Ada"], case, "N", "N")
    assert first["state"] == "open" and first["finished"]
    refused = clients["Ada"].put(f"/api/recordings/{case}/claim")
    assert refused.status_code == 409 and "waits for another reader" in refused.json()["detail"]
    hidden = clients["Bob"].get(f"/api/recordings/{case}").json()
    assert hidden["answer"] is None and hidden["verdicts"] == []
    after_first = read(clients["Bob"], case, "A")
    assert {one["reader"] for one in after_first["verdicts"]} == {"Bob"}
    log = clients["Ann"].get("/api/audit").json()["entries"]
    assert all("hidden" in one["details"] for one in log if one["subject"] == case and "verdict" in one["action"])
    closed = clients["Bob"].post(f"/api/recordings/{case}/verdicts", json={"label": "N"}).json()
    assert closed["state"] in ("confirmed", "amended") and len(closed["verdicts"]) == 4


def test_two_who_disagree_need_a_third_who_decides(team):
    _, clients, ids, _ = team
    case = ids[0]
    read(clients["Ada"], case, "N", "N")
    assert read(clients["Bob"], case, "A", "A")["state"] == "open"
    assert clients["Bob"].put(f"/api/recordings/{case}/claim").status_code == 409
    assert read(clients["Cem"], case, "O")["state"] == "open"
    seen = clients["Cem"].get(f"/api/recordings/{case}").json()["verdicts"]
    assert {one["reader"] for one in seen} == {*NAMES}, "after the own first verdict the third sees the others"
    decided = clients["Cem"].post(f"/api/recordings/{case}/verdicts", json={"label": "A"}).json()
    assert decided["state"] in ("confirmed", "amended")
    table = clients["Ann"].get("/api/export/labels.csv").text.splitlines()
    assert len(table) == 2 and ",A,class,O," in table[1] and ",Cem,3," in table[1]
    read(clients["Ada"], ids[1], "N", "N")
    read(clients["Bob"], ids[1], "N", "N")
    readers = clients["Ann"].get("/api/measures").json()["readers"]
    assert (readers["n_double"], readers["n_adjudicated"]) == (2, 1)
    assert (readers["agreement"]["count"], readers["agreement"]["total"]) == (1, 2)
    (pair,) = readers["pairs"]
    assert (pair["first"], pair["second"], pair["kappa"]) == ("Ada", "Bob", pytest.approx(0))
    assert readers["kappa"] == pytest.approx(-1 / 3) and readers["by_class"]["N"] == pytest.approx(-1 / 3)
    each = {one["reader"]: (one["n_read"], one["changed"]["count"]) for one in readers["each"]}
    assert each == {"Ada": (2, 0), "Bob": (2, 0), "Cem": (1, 1)}


def test_a_class_is_always_read_by_two_and_others_by_one(make_desk, examples, classify):
    headers = {"Authorization": f"Bearer {give_token(make_desk(), 'Ann', 'admin')}"}
    desk = make_desk(audit_share=1.0, second_classes=("A",))
    with listening(desk) as address, httpx.Client(base_url=address, timeout=60, headers=headers) as client:
        for path in sorted(examples.glob("r*.npz")):
            put(client, path)
        classify(desk)
        states = {}
        for case in client.get("/api/recordings", params={"state": "open"}).json()["cases"]:
            client.put(f"/api/recordings/{case['id']}/claim").raise_for_status()
            first = client.post(f"/api/recordings/{case['id']}/verdicts", json={"label": "N"}).json()
            label = "N" if states else "A"
            last = client.post(f"/api/recordings/{case['id']}/verdicts", json={"label": label}).json()
            states[case["id"]] = (last["state"] == "open", "A" in (first["answer"]["label"], label))
        assert all(is_open == expected for is_open, expected in states.values())
        assert any(is_open for is_open, _ in states.values())


def test_the_second_reader_cannot_try_answers_until_the_case_closes(team):
    """Whether the case closes tells whether both agree: the verdict that told it stays."""
    _, clients, ids, _ = team
    read(clients["Ada"], ids[0], "N", "N")
    assert clients["Ada"].delete(f"/api/recordings/{ids[0]}/verdicts").status_code == 200, "the first of two can undo"
    clients["Ada"].post(f"/api/recordings/{ids[0]}/verdicts", json={"label": "N"}).raise_for_status()
    assert read(clients["Bob"], ids[0], "A", "A")["state"] == "open"
    refused = clients["Bob"].delete(f"/api/recordings/{ids[0]}/verdicts")
    assert refused.status_code == 409 and "another reader" in refused.json()["detail"]
    read(clients["Cem"], ids[0], "O", "O")
    assert clients["Cem"].delete(f"/api/recordings/{ids[0]}/verdicts").status_code == 200, "who decides can undo"


def test_metrics_tell_nothing_of_verdicts_on_open_cases(team):
    _, clients, ids, _ = team
    before = clients["Bob"].get("/api/measures").json()["readers"]
    read(clients["Ada"], ids[0], "N", "A")
    assert clients["Bob"].get("/api/measures").json()["readers"] == before
    read(clients["Bob"], ids[0], "A", "A")
    assert [one["reader"] for one in clients["Bob"].get("/api/measures").json()["readers"]["each"]] == ["Ada", "Bob"]


def test_who_decides_in_a_new_round_does_not_see_earlier_rounds(team):
    _, clients, ids, _ = team
    case = ids[0]
    for name in ("Ada", "Bob"):
        read(clients[name], case, "~", "~")
    clients["Ann"].post(f"/api/recordings/{case}/reopen", json={"reason": "test"}).raise_for_status()
    read(clients["Ada"], case, "N", "N")
    read(clients["Bob"], case, "A", "A")
    seen = read(clients["Cem"], case, "O")["verdicts"]
    assert {(one["reader"], one["label"]) for one in seen} == {("Ada", "N"), ("Bob", "A"), ("Cem", "O")}
    page = clients["Cem"].get(f"/cases/{case}").text
    assert page.count("Two readers disagree") == 1 and "Ada <b>~</b>" not in page


def test_accuracy_counts_a_case_once_by_its_last_verdict(team):
    _, clients, ids, _ = team
    label = read(clients["Ada"], ids[0], "N")["answer"]["label"]
    other = next(name for name in "NAO" if name != label)
    clients["Ada"].post(f"/api/recordings/{ids[0]}/verdicts", json={"label": label}).raise_for_status()
    read(clients["Bob"], ids[0], other, other)
    read(clients["Cem"], ids[0], label, label)
    metrics = clients["Ann"].get("/api/measures").json()
    assert (metrics["agreement"][label]["count"], metrics["agreement"][label]["total"]) == (1, 1)
    assert sum(sum(row.values()) for row in metrics["confusion"].values()) == 1


@needs_chromium
def test_next_does_not_lead_to_what_one_has_read(team, browser):
    _, clients, ids, tokens = team
    address = str(clients["Ada"].base_url)
    page = browser.new_context().new_page()
    page.goto(f"{address}/login")
    page.fill("#token", tokens["Ada"])
    page.click("button[type=submit]")
    playwright.expect(page.locator("tr.is-open").first).to_be_visible()
    for one in ids[1:]:
        read(clients["Ada"], one, "N", "N")
    page.goto(f"{address}/cases/{ids[0]}")
    playwright.expect(page.locator("#review")).to_contain_text("No other open case")
    page.goto(f"{address}/cases/{ids[1]}")
    playwright.expect(page.locator("#review")).to_contain_text("The case waits for another reader")
    assert page.locator("#following").get_attribute("href").endswith(ids[0])
    page.goto(f"{address}/measures")
    playwright.expect(page.locator("main")).to_contain_text("Agreement between readers")
    page.context.close()


def test_a_second_reader_needs_tokens_and_classes_of_the_model(make_desk):
    with pytest.raises(DeskError, match="--second.*token add"):
        make_desk(second_share=0.5)
    give_token(make_desk(), "Ada", "reader")
    with pytest.raises(DeskError, match="--second-class: 'AFIB' is not a class .* N, A, O, ~"):
        make_desk(second_classes=("AFIB",))
    make_desk(second_share=0.5, second_classes=("A",))
