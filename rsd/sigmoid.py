"""The logistic function, for weightings and reward heads alike."""

import math


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)), for any finite z: the exponent is never positive, so that nothing overflows."""
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))
