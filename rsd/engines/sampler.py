"""Turn logits into tokens, one row at a time in meaning, all rows at once in work.

A row's draw depends on its own logits, settings and random number only, never on its batch.
"""

import torch


def sample(logits: torch.Tensor, temperature: torch.Tensor, top_p: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Draw one token per row by inverting the cumulative distribution at `u`.

    Shapes: logits [rows, vocabulary] float32; temperature (> 0), top_p (0, 1], u [0, 1) are [rows]
    float64; returns ids [rows]. Nucleus sampling keeps the fewest tokens whose probability
    reaches top_p, at least one (Holtzman et al., 2020).
    """
    probabilities = (logits.double() / temperature[:, None]).softmax(-1)
    ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    ordered = ordered.masked_fill(before >= top_p[:, None], 0.0)
    cumulative = ordered.cumsum(-1)
    # right=True passes over tokens of probability zero, also when u is exactly 0
    place = torch.searchsorted(cumulative, (u * cumulative[:, -1])[:, None], right=True)
    return ids.gather(1, place.clamp_(max=ids.shape[1] - 1)).squeeze(1)
