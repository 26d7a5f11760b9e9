"""Tiny random XLM-RoBERTa folders in the layout of BGE-M3 and its reranker, for the real loading code."""

from pathlib import Path
from typing import Any

SENTENCES = [
    "Net sales for fiscal 2023 were $383.3 billion, down 3% from 2022.",
    "Risk factors include foreign exchange, supply chain and competition.",
    "Total debt was 111 billion dollars.",
] * 50


def write_tiny_models(folder: Path) -> tuple[Path, Path]:
    """Returns (embedder folder, reranker folder). Hidden size 32, 2 layers, seeded."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification, XLMRobertaModel

    tokenizer = _tokenizer()
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=514,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        type_vocab_size=1,
    )
    embedder, reranker = folder / "tiny-bge-m3", folder / "tiny-bge-reranker"
    XLMRobertaModel(config).save_pretrained(embedder)
    tokenizer.save_pretrained(embedder)
    torch.save(torch.nn.Linear(32, 32).state_dict(), embedder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(32, 1).state_dict(), embedder / "sparse_linear.pt")
    config.num_labels = 1
    XLMRobertaForSequenceClassification(config).save_pretrained(reranker)
    tokenizer.save_pretrained(reranker)
    return embedder, reranker


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.Unigram())
    raw.normalizer = normalizers.NFKC()
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>")
    raw.train_from_iterator(SENTENCES, trainer)
    begin, end = raw.token_to_id("<s>"), raw.token_to_id("</s>")
    raw.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", begin), ("</s>", end)]
    )
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=raw,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=512,
    )
