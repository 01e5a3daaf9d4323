"""A saved model as a service: JSON over HTTP, a page, figures for Prometheus.

``setconv serve MODEL`` runs it; `create_app` is the application alone, for a server of your own.
Needs fastapi, uvicorn and prometheus-client: ``pip install 'setconv[serve]'``.
"""

from __future__ import annotations

from setconv.messages import needed

with needed("the service", "fastapi", "serve"):
    import fastapi as _fastapi  # noqa: F401  -- asked for here, so that the message comes early
with needed("the service", "uvicorn", "serve"):
    import uvicorn as _uvicorn  # noqa: F401
with needed("the service", "prometheus-client", "serve"):
    import prometheus_client as _prometheus  # noqa: F401
with needed("the service", "pyarrow", "serve"):
    import pyarrow as _pyarrow  # noqa: F401

from setconv.serve.app import create_app
from setconv.serve.served import Settings

__all__ = ["Settings", "create_app"]
