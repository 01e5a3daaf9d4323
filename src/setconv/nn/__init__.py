"""The SetConv layer and the network around it: tensors in, tensors out."""

from setconv.nn.forks import survive_forks
from setconv.nn.layer import Kernel, SetConv, StackedLinear
from setconv.nn.network import SetConvNetwork, resolve_device

__all__ = ["Kernel", "SetConv", "SetConvNetwork", "StackedLinear", "resolve_device"]

survive_forks()
