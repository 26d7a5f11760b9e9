"""Packs a cross-encoder: `python -m evals.packing FOLDER TARGET` halves its precision and leaves out the base."""

import json
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

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
    (target / "model.safetensors").chmod(0o644)  # safetensors leaves it to its owner alone
    config = json.loads((source / "config.json").read_text("utf-8")) | {"dtype": "float16"}
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def unpack(target: Path, source: Path | None = None) -> None:
    """The reverse: a folder with all weights, in float32, and the tokenizer. `source` None is the one shipped."""
    from safetensors.torch import load_file, save_file
    from transformers import AutoTokenizer

    source = source or Path(str(files("app") / "models" / "grader"))
    base = packaged_folder(BASE)
    weights = {name: tensor.float() for name, tensor in load_file(source / "model.safetensors").items()}
    weights[WORDS] = load_file(Path(base) / "model.safetensors")[WORDS.removeprefix("bert.")].float()
    target.mkdir(parents=True, exist_ok=True)
    save_file(weights, target / "model.safetensors", {"format": "pt"})
    shutil.copy(source / "config.json", target)
    tokenizer: Any = AutoTokenizer.from_pretrained(base)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
