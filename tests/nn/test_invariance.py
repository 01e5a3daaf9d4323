"""The appendix's proof of permutation invariance, with its E(pi) put right."""

import torch
from hypothesis import given
from hypothesis import strategies as st

SIZES = st.integers(1, 7)
SEEDS = st.integers(0, 2**31)
EXACT = {"rtol": 1e-10, "atol": 1e-12}


def noise(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def permutation(seed, n):
    """Return a permutation matrix."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return torch.eye(n, dtype=torch.float64)[order]


def expansion(pi, d):
    """Return E(pi) with Concat(pi X) = Concat(X) E(pi): the Kronecker product of pi^T and I."""
    return torch.kron(pi.T.contiguous(), torch.eye(d, dtype=pi.dtype))


@given(SEEDS, SIZES, SIZES, SIZES)
def test_each_step_of_the_proof_holds_with_the_right_expansion(seed, n, d, d_o):
    rows, g1, g2 = noise(seed, n, d), noise(seed + 1, n, d_o), noise(seed + 2, d, d_o)
    pi = permutation(seed, n)
    e = expansion(pi, d)
    concat = rows.reshape(1, -1)

    def kernel(left):
        return torch.stack([torch.kron(left[:, o], g2[:, o]) for o in range(d_o)], dim=1)

    torch.testing.assert_close((pi @ rows).reshape(1, -1), concat @ e, **EXACT)
    torch.testing.assert_close(kernel(pi @ g1), e.T @ kernel(g1), **EXACT)
    torch.testing.assert_close(e @ e.T, torch.eye(n * d, dtype=torch.float64), **EXACT)
    torch.testing.assert_close((concat @ e) @ kernel(pi @ g1), concat @ kernel(g1), **EXACT)
