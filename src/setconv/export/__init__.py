"""A fitted model for where there is no torch: an ONNX graph, and a folder that predicts with it.

`to_onnx` makes the graph from rows to label, probabilities and decision; `export_model` a folder
with it, the encoder of texts, and `predict`, a program that is copied there and knows no setconv.
Needs ``pip install 'setconv[onnx]'``.
"""

from __future__ import annotations

from setconv.messages import needed

with needed("The export", "onnx, onnxruntime, onnxscript and tokenizers", "onnx"):
    import onnx as _onnx  # noqa: F401  -- asked for here, so that the message comes early
    import onnxruntime as _onnxruntime  # noqa: F401
    import tokenizers as _tokenizers  # noqa: F401

from setconv.export.folder import export_model
from setconv.export.graph import to_onnx

__all__ = ["export_model", "to_onnx"]
