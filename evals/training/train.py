"""Trains a cross-encoder on groups: one passage of each must score above the others and above zero."""

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from evals.training.groups import Group

MAX_TOKENS = 256
_WARM_UP = 0.06
_CHUNK = 12
"""Pairs per forward pass: sorted by length, so that little is padded."""
_LAST, _WEIGHTS = "checkpoint.pt", "model"


@dataclass(frozen=True, slots=True)
class Recipe:
    epochs: int = 1
    groups_per_step: int = 8
    negatives: int = 4
    rate: float = 3e-5
    head_rate: float = 1e-4
    weight_decay: float = 0.01
    absolute: float = 0.5
    """Weight of the binary loss, which keeps logits comparable between queries, beside the listwise one."""
    seed: int = 1


def train(groups: Sequence[Group], start: str, out: Path, recipe: Recipe, log: Callable[[str], None]) -> Path:
    """From the weights in the folder `start` to those in `out`/model. Goes on from `out`'s last checkpoint.

    Word embeddings stay frozen, so that what is learnt can be kept beside the base without them; there is no dropout.
    Matrix products are bfloat16 where the processor has it. The order of steps depends on the recipe alone.
    """
    model, tokenizer = _load(start)
    head, body = _parameters(model)
    rates = [{"params": body, "lr": recipe.rate}, {"params": head, "lr": recipe.head_rate}]
    optimizer = torch.optim.AdamW(rates, weight_decay=recipe.weight_decay)
    steps = [step for epoch in range(recipe.epochs) for step in _steps(groups, recipe, epoch)]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step / len(steps)))
    done = _resume(out / _LAST, model, optimizer, schedule)
    model.train()
    losses: list[float] = []
    firsts: list[float] = []
    for number in range(done, len(steps)):
        loss, first = _loss(model, tokenizer, steps[number], recipe.absolute)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*head, *body], 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        firsts += first
        if (number + 1) % 20 == 0 or number + 1 == len(steps):
            recent = firsts[-20 * recipe.groups_per_step :]
            mean = sum(losses[-20:]) / len(losses[-20:])
            log(f"step {number + 1}/{len(steps)} loss {mean:.3f} first {sum(recent) / len(recent):.3f}")
            _checkpoint(out / _LAST, model, optimizer, schedule, number + 1)
    return _save(out / _WEIGHTS, model, tokenizer, recipe, start)


def _load(start: str) -> tuple[Any, Any]:
    from transformers import AutoTokenizer, BertForSequenceClassification

    torch.manual_seed(0)
    model: Any = BertForSequenceClassification.from_pretrained(
        start, num_labels=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, dtype=torch.float32
    )
    tokenizer: Any = AutoTokenizer.from_pretrained(start)
    return model, tokenizer


def _parameters(model: Any) -> tuple[list[Any], list[Any]]:
    """The head's and the body's, without the frozen embeddings of words and positions."""
    model.bert.embeddings.word_embeddings.weight.requires_grad = False
    model.bert.embeddings.position_embeddings.weight.requires_grad = False
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    head = [p for name, p in named if name.startswith("classifier")]
    return head, [p for name, p in named if not name.startswith("classifier")]


def _rate(done: float) -> float:
    """Linear up to 1, then linear down to 0."""
    return min(1.0, done / _WARM_UP + 0.05) * (1 - done)


Sample = tuple[str, list[str]]
"""A query and its passages, the right one first."""


def _steps(groups: Sequence[Group], recipe: Recipe, epoch: int) -> Iterator[list[Sample]]:
    """Every group once, in an order and with negatives that depend on seed and epoch alone; a step's are alike long."""
    rng = random.Random(f"{recipe.seed} {epoch}")
    samples: list[Sample] = []
    for group in rng.sample(groups, len(groups)):
        negatives = rng.sample(group.negatives, min(recipe.negatives, len(group.negatives)))
        samples.append((group.query, [group.positive, *negatives]))
    span = recipe.groups_per_step * 12
    steps: list[list[Sample]] = []
    for start in range(0, len(samples), span):
        alike = sorted(samples[start : start + span], key=lambda sample: sum(map(len, sample[1])))
        size = recipe.groups_per_step
        steps += [alike[i : i + size] for i in range(0, len(alike), size)]
    rng.shuffle(steps)
    yield from steps


def _loss(model: Any, tokenizer: Any, step: Sequence[Sample], absolute: float) -> tuple[Any, list[float]]:
    """−log softmax of the right passage within its group (listwise) + `absolute` · binary cross-entropy of all.

    Also, per group, whether the right passage came first.
    """
    pairs = [(query, passage) for query, passages in step for passage in passages]
    logits = _logits(model, tokenizer, pairs)
    target = torch.tensor([float(i == 0) for _, passages in step for i in range(len(passages))])
    listwise = torch.zeros(())
    first: list[float] = []
    for scores in logits.split([len(passages) for _, passages in step]):
        listwise = listwise - torch.log_softmax(scores, 0)[0]
        first.append(float(scores.argmax() == 0))
    binary = functional.binary_cross_entropy_with_logits(logits, target, weight=1 + target)
    return listwise / len(step) + absolute * binary, first


def _logits(model: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> Any:
    encoded = tokenizer([q for q, _ in pairs], [p for _, p in pairs], truncation="only_second", max_length=MAX_TOKENS)
    order = sorted(range(len(pairs)), key=lambda i: len(encoded["input_ids"][i]))
    out: list[Any] = [None] * len(pairs)
    for start in range(0, len(order), _CHUNK):
        part = order[start : start + _CHUNK]
        batch = tokenizer.pad({key: [values[i] for i in part] for key, values in encoded.items()}, return_tensors="pt")
        with torch.autocast("cpu", torch.bfloat16, enabled=torch.cpu._is_avx512_bf16_supported()):
            found = model(**batch).logits[:, 0].float()
        for position, i in enumerate(part):
            out[i] = found[position]
    return torch.stack(out)


def _checkpoint(path: Path, model: Any, optimizer: Any, schedule: Any, done: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {"done": done, "model": model, "optimizer": optimizer, "schedule": schedule}
    whole = {key: value if key == "done" else value.state_dict() for key, value in state.items()}
    torch.save(whole, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def _resume(path: Path, model: Any, optimizer: Any, schedule: Any) -> int:
    """Steps already made; 0 without a checkpoint."""
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    for part, held in ((model, "model"), (optimizer, "optimizer"), (schedule, "schedule")):
        part.load_state_dict(state[held])
    return int(state["done"])


def _save(folder: Path, model: Any, tokenizer: Any, recipe: Recipe, start: str) -> Path:
    model.save_pretrained(folder)
    tokenizer.model_max_length = MAX_TOKENS
    tokenizer.save_pretrained(folder)
    (folder / "recipe.json").write_text(json.dumps(asdict(recipe) | {"start": start}, indent=2) + "\n", "utf-8")
    return folder
