"""Packs a cross-encoder: `python -m evals.packing FOLDER TARGET` halves its precision and leaves out the base."""

import shutil
import sys
from pathlib import Path

from app.adapters.embedding import packaged_folder
from app.adapters.reranking import BASE, WORDS


def pack(source: Path, target: Path) -> None:
    """Writes `config.json` and `model.safetensors` (fp16, without the word embeddings, which are the base's).

    Raises ValueError where training changed the word embeddings.
    """
    import torch
    from safetensors.torch import load_file, save_file

    weights = {name: tensor.half().contiguous() for name, tensor in load_file(source / "model.safetensors").items()}
    base = load_file(Path(packaged_folder(BASE)) / "model.safetensors")[WORDS.removeprefix("bert.")]
    if not torch.equal(weights.pop(WORDS), base.half()):
        raise ValueError(f"the word embeddings of {source} are not those of {BASE}; freeze them in training")
    target.mkdir(parents=True, exist_ok=True)
    save_file(weights, target / "model.safetensors")
    shutil.copy(source / "config.json", target)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
