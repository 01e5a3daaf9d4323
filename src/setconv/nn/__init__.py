"""The SetConv layer and the network around it: tensors in, tensors out."""

from setconv.nn.layer import Kernel, SetConv
from setconv.nn.network import SetConvNetwork
from setconv.nn.stacked import StackedLinear

__all__ = ["Kernel", "SetConv", "SetConvNetwork", "StackedLinear"]
