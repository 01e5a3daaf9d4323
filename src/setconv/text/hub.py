"""The names that Hugging Face users know: save_pretrained, from_pretrained, push_to_hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from setconv.errors import MissingDependencyError, ModelFileError
from setconv.loading import load


class HubMixin:
    """Save to and load from folders and the Hugging Face hub."""

    if TYPE_CHECKING:

        def save(self, folder: str | Path, *, copy_encoder: bool = False) -> None:
            """Save the model to a folder."""

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        copy_encoder: bool = False,
        push_to_hub: bool = False,
        **hub: Any,
    ) -> None:
        """Save the model to a folder, as ``save`` does.

        Parameters
        ----------
        save_directory : path
        copy_encoder : bool, default=False
            Whether the folder gets a copy of the encoder's files.
        push_to_hub : bool, default=False
            Whether to upload it as well.
        **hub
            For `push_to_hub`; ``repo_id`` is the name of the folder if it is not given.
        """
        self.save(save_directory, copy_encoder=copy_encoder)
        if push_to_hub:
            repo_id = hub.pop("repo_id", Path(save_directory).name)
            _upload(Path(save_directory), repo_id, **hub)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        device: str = "auto",
    ) -> Self:
        """Load a model from a folder, or else from the hub.

        Parameters
        ----------
        name : path or str
            A folder, or the name of a repository.
        revision, token, cache_dir, local_files_only
            As in `huggingface_hub.snapshot_download`.
        device : str, default="auto"
        """
        folder = Path(name)
        if not folder.is_dir():
            folder = _download(
                str(name),
                revision=revision,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
            )
        model = load(folder, device=device)
        if not isinstance(model, cls):
            raise ModelFileError(
                f"{name} holds a {type(model).__name__}, not a {cls.__name__}: open it with "
                "setconv.load."
            )
        return model

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        commit_message: str = "Upload a setconv model",
        copy_encoder: bool = False,
    ) -> str:
        """Upload the model to the hub and return the address of the commit.

        Parameters
        ----------
        repo_id : str
            Made if it does not exist.
        private, token, revision, commit_message
            As in `huggingface_hub.HfApi`.
        copy_encoder : bool, default=False
        """
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            self.save(folder, copy_encoder=copy_encoder)
            return _upload(
                folder,
                repo_id,
                private=private,
                token=token,
                revision=revision,
                commit_message=commit_message,
            )


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingDependencyError(
            "The hub needs huggingface_hub: pip install 'setconv[text]'"
        ) from error
    return huggingface_hub


def _upload(
    folder: Path,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    revision: str | None = None,
    commit_message: str = "Upload a setconv model",
) -> str:
    api = _hub().HfApi(token=token)
    repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
    done = api.upload_folder(
        repo_id=repo_id, folder_path=folder, revision=revision, commit_message=commit_message
    )
    return str(done.commit_url)


def _download(name: str, **where: Any) -> Path:
    hub = _hub()
    try:
        return Path(hub.snapshot_download(name, **where))
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError) as error:
        raise ModelFileError(
            f"{name} is not a folder, and the hub did not give a model of that name "
            f"({type(error).__name__}): check the name and the connection, or give the folder of "
            "a saved model."
        ) from error
