"""What each command does, once its arguments are known. Returns the exit status."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.adapters.bm25 import Bm25Encoder
from app.opening import open_embedder, open_ports, open_reranker
from app.settings import Settings
from evals import (
    ablation,
    budget,
    calibration,
    chunking,
    conformance,
    figures,
    irsets,
    loaders,
    matrix,
    reranking,
    residuals,
    retrieval,
    routes,
    scanning,
    subjects,
)
from evals.asking import Asking, ReplyLog
from evals.bench.command import bench_command, compare_benches
from evals.errors import UsageError
from evals.judging.matrix import open_bench
from evals.peers.command import peers_command
from evals.questions import Question, load_questions, sampled
from evals.reports import compare, html, record, svg
from evals.reports import markdown as report
from evals.reports.record import Record
from evals.robustness import injections, stress
from evals.robustness import report as stress_report
from evals.robustness.plants import KINDS
from evals.study.command import study_command
from evals.subjects import HttpSubject, fingerprint, parse_system, systems

OK, VIOLATED, USAGE, UNAVAILABLE, OVER_BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 130


def _subject(options: argparse.Namespace, *, mute: bool = False) -> AbstractAsyncContextManager[HttpSubject]:
    if options.url:
        return subjects.remote(options.url, os.environ.get("SEXTANT_API_KEY"))
    return subjects.local(options.data_dir, mute=mute)


def _questions(options: argparse.Namespace) -> list[Question]:
    found = load_questions(options.questions)
    if options.kinds:
        kinds = set(options.kinds.split(","))
        if strange := kinds - {q.kind for q in found}:
            raise UsageError(f"no question of class {', '.join(sorted(strange))} in {options.questions}")
        found = [q for q in found if q.kind in kinds]
    return sampled(found, options.drawn, options.seed) if options.drawn else found[: options.limit]


async def _asking(options: argparse.Namespace, subject: HttpSubject) -> Asking:
    version = fingerprint(await subject.index(), await subject.documents())
    if options.run:
        options.run.mkdir(parents=True, exist_ok=True)
    log = ReplyLog.open(options.run / "replies.jsonl") if options.run else ReplyLog()
    return Asking(subject, version, options.k, options.parallel, log)


async def retrieval_command(options: argparse.Namespace) -> int:
    questions = [q for q in _questions(options) if q.documents and (q.reliable or options.weak)]
    if not questions:
        raise UsageError("no question has reliable evidence; --weak takes weak evidence at document level")
    async with _subject(options, mute=True) as subject:
        chosen, left_out = await systems(subject, options.arch, bm25=True)
        found = await retrieval.run(await _asking(options, subject), chosen, questions)
    _tell(options, retrieval.as_json(found), retrieval.table(found), left_out)
    failed = {name: count for name, count in found["problems"].items() if count}
    return fail(f"questions without a reply: {failed}", VIOLATED) if failed else OK


async def citations_command(options: argparse.Namespace) -> int:
    questions = _questions(options)
    async with _subject(options) as subject:
        chosen, left_out = await systems(subject, options.arch)
        asking = await _asking(options, subject)
        rows, violations = await conformance.run(asking, chosen, questions, options.filter_probes)
    as_json = conformance.as_json(rows, violations)
    _tell(options, as_json, conformance.table(rows, violations), left_out)
    return VIOLATED if violations else OK


async def figures_command(options: argparse.Namespace) -> int:
    questions = _questions(options)
    async with _subject(options, mute=True) as subject:
        chosen, left_out = await systems(subject, options.arch)
        found = await figures.run(await _asking(options, subject), subject, chosen, questions)
    _tell(options, [asdict(one) for one in found], figures.table(found), left_out)
    return OK


async def matrix_command(options: argparse.Namespace) -> int:
    questions = _questions(options)
    if options.quality not in matrix.MEASURES:
        raise UsageError(f"no measure {options.quality!r}; there are {', '.join(matrix.MEASURES)}")
    options.run = options.run or Path("build") / "runs" / options.questions.stem
    written = _routes_file(options)
    async with (
        _subject(options) as subject,
        open_bench(options.judge, options.labels, options.run, options.parallel) as bench,
    ):
        chosen, left_out = await systems(subject, options.arch)
        if options.baseline not in {system.name for system in chosen}:
            raise UsageError(f"the baseline {options.baseline!r} is not among the systems; set --baseline or --arch")
        asking = await _asking(options, subject)
        forecasts = await budget.pilot(asking, chosen, questions)
        forecasts += bench.forecast(asking, chosen, questions) if bench else []
        sys.stderr.write(budget.table(forecasts))
        if reason := budget.exceeded(forecasts, options.max_calls, options.max_usd):
            return fail(reason, OVER_BUDGET)
        if options.estimate:
            return OK
        await asking.ask(asking.missing(chosen, questions))
        scores = [await matrix.score(asking, system, questions) for system in chosen]
        scores, judge = await bench.judge(scores, questions) if bench else (scores, None)
        run_of = await record.of_run(asking, options.questions, questions)
        filings = routes.catalogue(await subject.documents())
    found = matrix.build(scores, questions, options.baseline, options.quality)
    kinds = routes.kinds_of(questions, filings)
    made = record.build(run_of, found, scores, questions, judge)
    made["routing"] = [asdict(each) for each in routes.choices(scores, questions, kinds, options.quality)]
    _publish(made, options, markdown=report.to_markdown(made), page=html.to_html(made))
    if written:
        by_kind = routes.measured(scores, questions, kinds, options.quality)
        written.write_text(routes.to_json(by_kind, run_of["index"]["models"]["generator"]), "utf-8")
        sys.stderr.write(f"written: {written}\n")
    _tell_left_out(left_out)
    failed = any(o.reply is None for s in scores for o in s.outcomes.values())
    return VIOLATED if failed or any(several for s in scores for several in s.broken.values()) else OK


def _routes_file(options: argparse.Namespace) -> Path | None:
    """Raises UsageError where there is no index to write beside."""
    if options.routes != Path():
        return options.routes  # type: ignore[no-any-return]
    if options.url:
        raise UsageError("--routes needs a file where the service is another process")
    return _settings(options).index_dir / "routes.json"


def _publish(found: Record, options: argparse.Namespace, *, markdown: str, page: str) -> None:
    texts = {"json": json.dumps(found, ensure_ascii=False), "md": markdown, "html": page}
    for suffix, text in texts.items():
        (options.run / f"report.{suffix}").write_text(text, encoding="utf-8")
    _write(texts["json" if options.json else "md"])
    sys.stderr.write(f"written: {options.run}/report.html, report.md, report.json\n")


async def ablate_command(options: argparse.Namespace) -> int:
    questions = [q for q in _questions(options) if q.documents and q.reliable]
    base = parse_system("hybrid" if options.arch == "all" else options.arch)
    async with AsyncExitStack() as stack:
        asking = await _asking(options, await stack.enter_async_context(_subject(options, mute=True)))
        known = {a["name"]: a["options"] for a in await asking.subject.architectures()}
        defaults = {option["name"]: option["default"] for option in known.get(base.arch, [])}
        others = [(s.name, asking, s) for s in ablation.variants(base, defaults, options.switch)]
        for folder in options.index:
            other = await _asking(options, await stack.enter_async_context(subjects.local(folder, mute=True)))
            others.append((f"index {folder}", other, base))
        if not others:
            raise UsageError("nothing to change: give --switch or --index")
        effects = await ablation.run((asking, base), others, questions)
    as_json = [asdict(effect) for effect in effects]
    _tell(options, as_json, ablation.table(base.name, effects))
    return OK


async def chunking_command(options: argparse.Namespace) -> int:
    folder = options.run or Path("build") / "runs" / f"{options.questions.stem}-chunking"
    folder.mkdir(parents=True, exist_ok=True)
    arch = options.arch or ("hybrid:dense_weight=0" if options.bm25_only else "hybrid,naive")
    given = {name: value for name in ("k1", "b") if (value := getattr(options, name)) is not None}
    embedder = chunking.Blind() if options.bm25_only else await open_embedder(Settings())
    try:
        found = await chunking.run(
            chunking.Scratch(folder, embedder, Bm25Encoder(**given)),
            options.chunker or ["structure", "fixed"],
            options.filings,
            _questions(options),
            [parse_system(text) for text in arch.split(",")],
            k=options.k,
            parallel=options.parallel,
        )
    finally:
        embedder.close()
    _tell(options, asdict(found), chunking.table(found))
    return OK


async def loaders_command(options: argparse.Namespace) -> int:
    names = options.loader.split(",") if options.loader else list(loaders.LOADERS)
    found, missing = await loaders.run(options.filings, options.python or sys.executable, names)
    _tell(options, [asdict(one) for one in found], loaders.table(found), missing)
    return OK


async def ir_command(options: argparse.Namespace) -> int:
    given = {name: value for name in ("k1", "b", "average_length") if (value := getattr(options, name)) is not None}
    fixed = options.average_length is not None
    baselines = _read_json(options.baseline) if options.baseline else []
    if options.graph and options.bm25_only:
        raise UsageError("--graph begins at the dense leg's documents; leave --bm25-only out")
    embedder = None if options.bm25_only else await open_embedder(Settings())
    results = []
    for folder in options.folders:
        results += await irsets.evaluate(
            folder,
            embedder,
            Bm25Encoder(**given),
            baselines,
            fixed_length=fixed,
            passages=options.passages,
            graph=options.graph,
        )
    _tell(options, [asdict(result) for result in results], irsets.table(results))
    if options.graph and not options.json:
        _write("\n" + irsets.multihop_table(results))
    short = [f"{result.name} ({result.qrels})" for result in irsets.short_of_baseline(results)]
    return fail(f"BM25 is below its baseline on {', '.join(short)}", VIOLATED) if short else OK


async def scan_command(options: argparse.Namespace) -> int:
    settings = _settings(options)
    async with open_ports(settings) as ports:
        found = await scanning.run(ports, _questions(options))
    if not found.questions:
        raise UsageError(f"no question of class {options.kinds} has several evidence pages")
    _tell(options, asdict(found), scanning.table(found))
    return OK


async def calibrate_command(options: argparse.Namespace) -> int:
    questions = load_questions(options.questions)[: options.limit]
    settings = _settings(options)
    if options.agent:
        return await _calibrate_agent(options, settings, questions)
    async with open_ports(settings) as ports:
        if ports.reranker is None:
            raise UsageError("a cross-encoder is needed; RERANKER_MODEL is none")
        found = await calibration.gathered(ports, questions)
        reranker = ports.reranker.name
    if options.save:
        calibration.write_cases(options.save, found)
    for path in options.others:
        found += calibration.read_cases(path)
    made = calibration.calibrated(found, reranker, options.seed)
    out = options.out or settings.grader_calibration or settings.index_dir / "grader.json"
    out.write_text(made.to_json(), encoding="utf-8")
    if options.plot:
        options.plot.write_text(svg.standalone(svg.reliability(made.fitted["held_out"]["reliability"], "reliability")))
    _write(made.to_json() if options.json else calibration.table(made))
    sys.stderr.write(f"written: {out}\n")
    return OK


async def _calibrate_agent(options: argparse.Namespace, settings: Settings, questions: list[Question]) -> int:
    async with open_ports(settings) as ports:
        found = await residuals.fitted(ports, questions, k=10)
    out = options.out or settings.index_dir / "agent.json"
    out.write_text(residuals.to_json(found), encoding="utf-8")
    _write(residuals.to_json(found) if options.json else residuals.table(found))
    sys.stderr.write(f"written: {out}\n")
    return OK


async def stress_command(options: argparse.Namespace) -> int:
    if options.url:
        raise UsageError("a running service's collection is not touched; give --data-dir, of which a copy is made")
    kinds = list(KINDS) if options.plant == "all" else options.plant.split(",")
    if strange := set(kinds) - set(KINDS):
        raise UsageError(f"no kind {', '.join(sorted(strange))}; there are {', '.join(KINDS)}")
    options.run = options.run or Path("build") / "runs" / f"{options.questions.stem}-stress"
    options.run.mkdir(parents=True, exist_ok=True)
    questions, log = _questions(options), ReplyLog.open(options.run / "replies.jsonl")
    k, parallel = options.k, options.parallel
    async with stress.opened(options.data_dir) as ports:
        found, left_out = await stress.run(ports, questions, options.arch, kinds, k=k, parallel=parallel, log=log)
        async with subjects.serving(ports) as subject:
            version = fingerprint(await subject.index(), await subject.documents())
            run_of = await record.of_run(Asking(subject, version, k, parallel, log), options.questions, questions)
    made: Record = {"run": run_of, "stress": stress.as_json(found)}
    _publish(made, options, markdown=stress_report.to_markdown(made), page=stress_report.to_html(made))
    _tell_left_out(left_out)
    return OK


async def rerank_command(options: argparse.Namespace) -> int:
    settings = _settings(options)
    if not (options.folders or options.questions):
        raise UsageError("give folders of retrieval sets, --questions, or both")
    if settings.reranker_model == "none":
        raise UsageError("there is no cross-encoder to measure: RERANKER_MODEL is none")
    found: list[reranking.Measured] = []
    if options.questions:
        async with open_ports(settings) as ports:
            assert ports.reranker is not None
            candidates = await reranking.of_questions(_questions(options), ports, options.depth)
            found.append(await reranking.measure(options.questions.stem, candidates, ports.reranker))
    if options.folders:
        embedder, reranker = await open_embedder(settings), await open_reranker(settings)
        assert reranker is not None
        for folder in options.folders:
            candidates = await reranking.of_set(
                folder, embedder, options.depth, options.sample, passages=options.passages
            )
            found.append(await reranking.measure(folder.name, candidates, reranker))
    _tell(options, [asdict(m) for m in found], reranking.table(found))
    return OK


async def injections_command(options: argparse.Namespace) -> int:
    async with injections.world() as ports:
        tried, left_out = await injections.run(ports, options.arch, options.parallel)
    as_json = {"results": dict(injections.RESULTS), "tried": [asdict(one) for one in tried]}
    _tell(options, as_json, injections.table(tried), left_out)
    obeyed = [f"{t.system} ({t.attack})" for t in tried if t.result == "obeyed"]
    return fail(f"obeyed: {', '.join(obeyed)}", VIOLATED) if obeyed else OK


async def compare_command(options: argparse.Namespace) -> int:
    a, b = _read_record(options.a), _read_record(options.b)
    if ("measures" in a) != ("measures" in b):
        raise UsageError("one of them is a run of matrix and the other of bench")
    if "measures" in a:
        return compare_benches(a, b, as_json=options.json)
    changes = compare.compare(a, b)
    as_json = [asdict(change) for change in changes]
    _tell(options, as_json, compare.to_markdown(a, b, changes))
    return OK


def _read_record(folder: Path) -> Record:
    files = (folder / "report.json", folder / "bench.json") if folder.is_dir() else (folder,)
    found: Record = _read_json(next((file for file in files if file.exists()), files[0]))
    return found


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def fail(message: str, status: int) -> int:
    """Says why on standard error."""
    sys.stderr.write(f"sextant-eval: {message}\n")
    return status


def _settings(options: argparse.Namespace) -> Settings:
    return Settings() if options.data_dir is None else Settings(data_dir=options.data_dir)


def _tell(options: argparse.Namespace, found: Any, text: str, left_out: Sequence[str] = ()) -> None:
    """What was found, as JSON or in words; on standard error, why systems were left out."""
    _write(json.dumps(found, indent=2) if options.json else text)
    _tell_left_out(left_out)


def _tell_left_out(reasons: Sequence[str]) -> None:
    for reason in reasons:
        sys.stderr.write(f"left out: {reason}\n")


def _write(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


COMMANDS = {
    "scan": scan_command,
    "retrieval": retrieval_command,
    "citations": citations_command,
    "figures": figures_command,
    "matrix": matrix_command,
    "loaders": loaders_command,
    "bench": bench_command,
    "peers": peers_command,
    "compare": compare_command,
    "ablate": ablate_command,
    "chunking": chunking_command,
    "ir": ir_command,
    "rerank": rerank_command,
    "calibrate": calibrate_command,
    "stress": stress_command,
    "injections": injections_command,
    "study": study_command,
}
