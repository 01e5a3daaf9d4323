"""Training with products in bfloat16: everything else stays float32, and it learns as well."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from setconv.errors import ParameterError
from setconv.feeds import MemoryFeed
from setconv.layout import HeadEpisodes
from setconv.nn import SetConvNetwork
from setconv.training.loop import Trainer
from setconv.training.loss import EpisodeLoss
from setconv.training.settings import TrainingSettings

CPU = torch.device("cpu")


def train(precision):
    """A network trained on 300 rows, with the AUC of its margins on them."""
    rng = np.random.default_rng(0)
    codes = (rng.random(300) < 0.2).astype(np.int64)
    rows = (rng.standard_normal((300, 12)) + 0.8 * codes[:, None]).astype(np.float32)
    episodes = HeadEpisodes(
        codes,
        2,
        members=[np.arange(300)],
        sharing="shared",
        support_size=32,
        n_queries=4,
        n_episodes=4,
        query_source="leave_one_out",
        random_state=0,
    )
    network = SetConvNetwork(
        12,
        encoder=(32,),
        out_features=16,
        dropout=0.2,
        generator=torch.Generator().manual_seed(0),
    )
    loss = EpisodeLoss.build(episodes.layout, np.full((1, 2), 0.5), CPU)
    anchors = torch.zeros(1, 1, 12)
    settings = TrainingSettings(60, lr=0.01, precision=precision)
    everything = torch.from_numpy(rows)
    feed = MemoryFeed(everything[None], 1)
    trainer = Trainer(network, feed, anchors, episodes, loss, settings, seed=0)
    assert np.isfinite(trainer.run().loss)
    member = torch.from_numpy(np.stack([codes == 0, codes == 1])).float()
    average = (member / member.sum(dim=-1, keepdim=True)).view(1, 1, 2, -1)
    with torch.no_grad():
        margin = network(everything[None], anchors, average)[0, 0]
    return trainer, roc_auc_score(codes, margin)


def test_bfloat16_learns_as_well_and_leaves_weights_and_optimiser_in_float32():
    (exact, exact_auc), (low, low_auc) = train("float32"), train("bfloat16")
    assert exact_auc > 0.9
    assert low_auc == pytest.approx(exact_auc, abs=0.01)
    pairs = list(zip(exact.network.parameters(), low.network.parameters(), strict=True))
    assert any(not torch.equal(one, other) for one, other in pairs)
    kept = [*low.network.state_dict().values(), *low.optimizer.state().values()]
    assert all(one.dtype == torch.float32 for one in kept)


def test_bfloat16_is_deterministic_for_a_seed():
    (first, _), (second, _) = train("bfloat16"), train("bfloat16")
    for one, other in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_another_precision_is_refused():
    with pytest.raises(ParameterError, match="precision='float16': choose \"float32\" or"):
        TrainingSettings(1, precision="float16")
