import torch

from cell_attention.nn.dropout import Dropout


def test_the_share_that_is_dropped_and_the_scale_of_the_rest_are_right() -> None:
    torch.manual_seed(0)
    values = torch.ones(200_000)
    for p in (0.05, 0.15, 0.6):
        dropped = Dropout(p)(values)
        assert abs(float((dropped == 0).float().mean()) - p) < 0.005
        assert torch.allclose(dropped[dropped != 0], torch.tensor(1 / (1 - p)))


def test_the_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(0)
    values = torch.rand(50, 7, dtype=torch.float64).add(1).requires_grad_()
    dropped = Dropout(0.3)(values)
    dropped.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad != 0, dropped != 0)
    assert torch.allclose(dropped, values.detach() * values.grad)


def test_masks_follow_torchs_seed_and_differ_from_call_to_call() -> None:
    layer, values = Dropout(0.5), torch.ones(20_000)
    torch.manual_seed(3)
    first, second = layer(values), layer(values)
    torch.manual_seed(3)
    assert torch.equal(layer(values), first)
    assert torch.equal(layer(values), second)
    both = torch.corrcoef(torch.stack([first, second]))[0, 1]
    assert abs(float(both)) < 0.03
    neighbours = torch.corrcoef(torch.stack([first[1:], first[:-1]]))[0, 1]
    assert abs(float(neighbours)) < 0.03


def test_nothing_is_dropped_in_eval_mode() -> None:
    values = torch.ones(10)
    assert torch.equal(Dropout(0.9).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
