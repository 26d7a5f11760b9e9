"""A report as one HTML page that opens from disk: its template, the style that all share, and what is put into it."""

from collections.abc import Mapping
from importlib.resources import files


def page(template: str, parts: Mapping[str, str]) -> str:
    """The template of that name with each part, HTML already, in the place of `<!--its name-->`."""
    folder = files("evals.reports").joinpath("templates")
    text = folder.joinpath(f"{template}.html").read_text("utf-8")
    style = folder.joinpath("style.css").read_text("utf-8").strip()
    for name, part in {"style": style, **parts}.items():
        text = text.replace(f"<!--{name}-->", part)
    return text
