"""A saved model as a service: JSON over HTTP, a page, figures for Prometheus.

``setconv serve MODEL`` runs it; `create_app` is the application alone, for a server of your own.
Needs fastapi, uvicorn and prometheus-client: ``pip install 'setconv[serve]'``.
"""

from __future__ import annotations

from importlib import import_module

from setconv.messages import needed

for _package in ("fastapi", "uvicorn", "prometheus-client", "pyarrow"):
    with needed("the service", _package, "serve"):  # asked here, so that the message comes early
        import_module(_package.replace("-", "_"))

from setconv.serve.app import create_app  # noqa: E402
from setconv.serve.served import Settings  # noqa: E402

__all__ = ["Settings", "create_app"]
