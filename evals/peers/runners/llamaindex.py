"""LlamaIndex as "Reciprocal Rerank Fusion Retriever" of its documentation builds it, over its own PDF reader.

SimpleDirectoryReader (pypdf), SentenceSplitter(chunk_size=256), the default in-memory VectorStoreIndex, BM25Retriever
over the same chunks, QueryFusionRetriever with reciprocal_rerank and no generated queries.
https://developers.llamaindex.ai/python/framework/integrations/retrievers/reciprocal_rerank_fusion
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.peers.runners.serving import Found, Index, serve

_PAGE = "position"


def build(filings: Path, model: str, k: int) -> Index:
    from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.retrievers.bm25 import BM25Retriever

    pages = SimpleDirectoryReader(filings, required_exts=[".pdf"]).load_data()
    _number(pages)
    index = VectorStoreIndex.from_documents(
        pages,
        transformations=[SentenceSplitter(chunk_size=256)],
        embed_model=HuggingFaceEmbedding(model_name=model, device="cpu"),
    )
    dense = index.as_retriever(similarity_top_k=k)
    bm25 = BM25Retriever.from_defaults(docstore=index.docstore, similarity_top_k=k)
    hybrid = QueryFusionRetriever(
        [dense, bm25],
        llm=MockLLM(),  # never asked; without one the default is a paid endpoint
        similarity_top_k=k,
        num_queries=1,
        mode="reciprocal_rerank",
        use_async=True,
    )
    chunks = list(index.docstore.docs.values())
    return Index(
        len({chunk.metadata["file_name"] for chunk in chunks}),
        len(chunks),
        {"dense": lambda text: _found(dense.retrieve(text)), "hybrid": lambda text: _found(hybrid.retrieve(text))},
    )


def _number(pages: Sequence[Any]) -> None:
    """Notes each page's position in its file, which its label is not, out of what is embedded."""
    seen: Counter[str] = Counter()
    for page in pages:
        seen[page.metadata["file_name"]] += 1
        page.metadata[_PAGE] = seen[page.metadata["file_name"]]
        page.excluded_embed_metadata_keys.append(_PAGE)
        page.excluded_llm_metadata_keys.append(_PAGE)


def _found(nodes: Sequence[Any]) -> list[Found]:
    return [Found(n.node.metadata["file_name"], n.node.metadata[_PAGE], n.node.get_content()) for n in nodes]


if __name__ == "__main__":
    serve(build)
