"""Haystack as its tutorials 30 (indexing PDFs with MiniLM) and 33 (hybrid retrieval) build it.

PyPDFToDocument, DocumentCleaner, DocumentSplitter(150 words, 50 of overlap), InMemoryDocumentStore, its BM25 and
embedding retrievers, DocumentJoiner with reciprocal_rank_fusion.
https://haystack.deepset.ai/tutorials/30_file_type_preprocessing_index_pipeline
https://haystack.deepset.ai/tutorials/33_hybrid_retrieval
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.peers.runners.serving import Found, Index, serve


def build(filings: Path, model: str, k: int) -> Index:
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    _indexing(store, model).run({"converter": {"sources": sorted(filings.glob("*.pdf"))}})
    chunks = store.filter_documents()
    dense, hybrid = _dense(store, model, k), _hybrid(store, model, k)

    def by_vector(text: str) -> list[Found]:
        return _found(dense.run({"embedder": {"text": text}})["retriever"]["documents"])

    def by_both(text: str) -> list[Found]:
        found = hybrid.run({"embedder": {"text": text}, "bm25": {"query": text}})
        return _found(found["joiner"]["documents"])

    files = {chunk.meta["file_path"] for chunk in chunks}
    return Index(len(files), len(chunks), {"dense": by_vector, "hybrid": by_both})


def _indexing(store: Any, model: str) -> Any:
    from haystack import Pipeline
    from haystack.components.converters import PyPDFToDocument
    from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter
    from haystack.components.writers import DocumentWriter
    from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersDocumentEmbedder

    pipeline = Pipeline()
    pipeline.add_component("converter", PyPDFToDocument())
    pipeline.add_component("cleaner", DocumentCleaner())
    pipeline.add_component("splitter", DocumentSplitter(split_by="word", split_length=150, split_overlap=50))
    pipeline.add_component("embedder", SentenceTransformersDocumentEmbedder(model=model, progress_bar=False))
    pipeline.add_component("writer", DocumentWriter(store))
    for sender, receiver in (
        ("converter", "cleaner"),
        ("cleaner", "splitter"),
        ("splitter", "embedder"),
        ("embedder", "writer"),
    ):
        pipeline.connect(sender, receiver)
    return pipeline


def _dense(store: Any, model: str, k: int) -> Any:
    from haystack import Pipeline
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersTextEmbedder

    pipeline = Pipeline()
    pipeline.add_component("embedder", SentenceTransformersTextEmbedder(model=model, progress_bar=False))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=k))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    return pipeline


def _hybrid(store: Any, model: str, k: int) -> Any:
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

    pipeline = _dense(store, model, k)
    pipeline.add_component("bm25", InMemoryBM25Retriever(store, top_k=k))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=k))
    pipeline.connect("bm25", "joiner")
    pipeline.connect("retriever", "joiner")
    return pipeline


def _found(documents: Sequence[Any]) -> list[Found]:
    """Documents are split across pages; a form feed stands where a page ends."""
    return [
        Found(
            Path(document.meta["file_path"]).name,
            document.meta["page_number"],
            document.content,
            last_page=document.meta["page_number"] + document.content.rstrip().count("\f"),
        )
        for document in documents
    ]


if __name__ == "__main__":
    serve(build)
