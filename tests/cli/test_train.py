"""`ecgquorum train` with a recipe and a cohort that do not match."""


def test_a_recipe_of_twelve_leads_is_refused_before_training_on_one_lead(ecgquorum, tiny_cohort, tmp_path):
    said = ecgquorum("train", "cpsc2018", "--cohort", tiny_cohort.path, "--out", tmp_path / "run", code=1)
    (line,) = [line for line in said.stderr.splitlines() if line.strip()]
    assert "12 leads" in line and "ECG" in line
    assert not (tmp_path / "run").exists()
