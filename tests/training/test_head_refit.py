import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from ecgquorum.cohorts import Cohort
from ecgquorum.errors import MemberError
from ecgquorum.preprocessing import InputSpec
from ecgquorum.training.head_refit import PENALTY, fit_linear, refit_head


def test_the_fit_from_zero_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    features = rng.normal(size=(400, 5)) + 0.8 * np.eye(3, 5)[labels]
    oracle = LogisticRegression(C=1 / (PENALTY * 400), tol=1e-10, max_iter=5000).fit(features, labels)
    weight, bias = fit_linear(torch.from_numpy(features), torch.from_numpy(labels), torch.zeros(3, 5), torch.zeros(3))
    np.testing.assert_allclose(weight, oracle.coef_, atol=1e-4)
    np.testing.assert_allclose(bias - bias.mean(), oracle.intercept_ - oracle.intercept_.mean(), atol=1e-4)


class Net(torch.nn.Module):
    def __init__(self, n_out=2):
        super().__init__()
        self.hidden, self.head = torch.nn.Linear(8, 3), torch.nn.Linear(3, n_out)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x[:, 0])))


@pytest.fixture
def cohort():
    rng = np.random.default_rng(1)
    labels = (rng.random(200) < 0.1).astype(int)  # one class is rare
    signal = rng.normal(size=(200, 1, 8)) + 2 * labels[:, None, None]
    return Cohort.from_arrays(signal, labels, rate_hz=1.0)


def spec_of(cohort):
    return InputSpec(cohort.leads, cohort.rate_hz, "none", 8.0)


def test_mean_probabilities_become_the_shares_of_the_classes(cohort):
    torch.manual_seed(0)
    net, train = Net(), cohort.part("train")
    hidden = net.hidden.weight.detach().clone()
    refit_head(net, cohort, spec_of(cohort))
    probs = torch.softmax(net(cohort.batch(train, spec_of(cohort)).signal), dim=1).mean(dim=0).detach()
    shares = np.bincount(cohort.labels[train], minlength=2) / len(train)
    np.testing.assert_allclose(probs, shares, atol=1e-5)  # the gradient by the bias is 0
    assert torch.equal(net.hidden.weight, hidden)
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_a_network_whose_last_layer_gives_no_logits_is_refused(cohort):
    with pytest.raises(MemberError, match="to give 2 logits, found 5"):
        refit_head(Net(5), cohort, spec_of(cohort))
    with pytest.raises(MemberError, match=r"no nn\.Linear"):
        refit_head(torch.nn.Conv1d(1, 2, 1), cohort, spec_of(cohort))
