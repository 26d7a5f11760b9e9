"""LangChain as "Build a semantic search engine" and the ensemble retriever's page of its documentation build it.

PyPDFLoader, RecursiveCharacterTextSplitter(1000, 200), HuggingFaceEmbeddings, FAISS, BM25Retriever and
EnsembleRetriever with equal weights.
https://docs.langchain.com/oss/python/langchain/knowledge-base
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.peers.runners.serving import Found, Index, serve


def build(filings: Path, model: str, k: int) -> Index:
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.document_loaders import PyPDFLoader
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS
    from langchain_huggingface import HuggingFaceEmbeddings
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    pages = [page for path in sorted(filings.glob("*.pdf")) for page in PyPDFLoader(path).load()]
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200, add_start_index=True)
    chunks = splitter.split_documents(pages)
    store = FAISS.from_documents(chunks, HuggingFaceEmbeddings(model_name=model, model_kwargs={"device": "cpu"}))
    dense = store.as_retriever(search_kwargs={"k": k})
    bm25 = BM25Retriever.from_documents(chunks)
    bm25.k = k
    hybrid = EnsembleRetriever(retrievers=[bm25, dense], weights=[0.5, 0.5])
    return Index(
        len({chunk.metadata["source"] for chunk in chunks}),
        len(chunks),
        # The ensemble gives all that either leg has found.
        {"dense": lambda text: _found(dense.invoke(text)), "hybrid": lambda text: _found(hybrid.invoke(text)[:k])},
    )


def _found(documents: Sequence[Any]) -> list[Found]:
    return [Found(Path(d.metadata["source"]).name, d.metadata["page"] + 1, d.page_content) for d in documents]


if __name__ == "__main__":
    serve(build)
