"""The files around the code agree with the code and with each other."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app import errors
from app.http.metrics import Metrics
from app.settings import Settings
from deploy import lock

ROOT = Path(__file__).parent.parent
PROMETHEUS_OWN = {"job", "instance", "le"}


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable that Settings reads, and no .env."""
    for name in list(os.environ):
        if name.lower() in Settings.model_fields:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def env_example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.usefixtures("bare_environment")
def test_env_example_mirrors_the_settings() -> None:
    assert list(env_example()) == [name.upper() for name in Settings.model_fields]
    names = re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert len(names) == len(set(names)), "a setting stands there twice"
    defaults = Settings()
    shutil.copy(ROOT / ".env.example", ".env")
    assert Settings() == defaults


def test_env_example_leaves_empty_only_what_has_no_default() -> None:
    empty = {name.lower() for name, value in env_example().items() if not value}
    assert empty == {
        name
        for name, field in Settings.model_fields.items()
        if field.get_default(call_default_factory=True) in (None, {})
    }


def test_env_example_explains_each_setting() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    settings = [(above, line) for above, line in pairwise(lines) if line and not line.startswith("#")]
    assert [line for above, line in settings if not above.startswith("# ")] == []


def test_locks_pin_the_dependencies_of_pyproject_and_theirs() -> None:
    runtime, everything = (lock.closure(wanted) for wanted in lock.requirements())
    assert lock.pins(lock.RUNTIME_LOCK) == [runtime[name] for name in sorted(runtime)]
    assert lock.pins(lock.DEV_LOCK) == [everything[name] for name in sorted(everything.keys() - runtime.keys())]


def test_locked_versions_are_those_pyproject_allows() -> None:
    pinned = {}
    for line in lock.pins(lock.RUNTIME_LOCK) + lock.pins(lock.DEV_LOCK):
        name, version = line.split("==")
        pinned[canonicalize_name(name)] = version
    _, everything = lock.requirements()
    assert [str(each) for each in everything if pinned[canonicalize_name(each.name)] not in each.specifier] == []


def test_a_closure_follows_requirements_and_the_extras_asked_for() -> None:
    plain = lock.closure([Requirement("httpx")])
    assert {"anyio", "certifi", "httpcore", "h11", "idna"} <= plain.keys()
    assert "h2" not in plain
    assert "h2" in lock.closure([Requirement("httpx[http2]")])


def instructions(word: str) -> list[str]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(word).strip() for line in text.splitlines() if line.startswith(word + " ")]


def test_image_runs_as_nobody_special_and_is_watched() -> None:
    user = instructions("USER")[-1]
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0
    options, command = instructions("HEALTHCHECK")[0].split("CMD")
    assert "--start-period" in options
    assert "/healthz" in json.loads(command)[2]
    assert json.loads(instructions("ENTRYPOINT")[-1]) == ["sextant"]


def test_everything_the_image_copies_exists_and_reaches_the_build() -> None:
    copied = {
        source
        for line in instructions("COPY")
        if "--from" not in line
        for source in [word for word in line.split() if not word.startswith("--")][:-1]
    }
    assert [source for source in sorted(copied) if not (ROOT / source).exists()] == []
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sent == copied


@pytest.mark.parametrize(
    ("arguments", "environment", "runs"),
    [
        (["api"], {"API_KEYS": "{}"}, "sextant-api on 0.0.0.0 with"),
        (["api"], {}, "sextant-api on nowhere with"),
        ([], {"API_KEYS": "{}", "API_HOST": "10.0.0.7"}, "sextant-api on 10.0.0.7 with"),
        (["ingest", "/filings", "--dry-run"], {}, "sextant-ingest on nowhere with /filings --dry-run"),
    ],
)
def test_entrypoint_opens_the_service_only_with_keys(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], runs: str
) -> None:
    for name in ("sextant-api", "sextant-ingest"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} on "${{API_HOST:-nowhere}}" with "$@"\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["sh", ROOT / "deploy/entrypoint.sh", *arguments],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == runs


def test_compose_runs_the_stack_and_keeps_it_to_itself() -> None:
    compose = load("docker-compose.yml")
    services = compose["services"]
    assert {"qdrant", "api", "ingest", "prometheus", "grafana"} == services.keys()
    assert "ports" not in services["qdrant"]
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
    assert {name for name, s in services.items() if s.get("profiles") == ["observability"]} == {"prometheus", "grafana"}
    assert services["ingest"]["profiles"] == ["ingest"]
    named = {v.split(":")[0] for s in services.values() for v in s["volumes"] if not v.startswith((".", "$"))}
    assert named == compose["volumes"].keys()


def test_compose_checks_the_health_of_what_keeps_running() -> None:
    services = load("docker-compose.yml")["services"]
    checked = {name for name, service in services.items() if "test" in service.get("healthcheck", {})}
    assert checked == {"qdrant", "prometheus", "grafana"}, "the api has the image's own health check"
    assert services["api"]["depends_on"]["qdrant"]["condition"] == "service_healthy"


def test_compose_pins_every_image() -> None:
    images = [service["image"] for service in load("docker-compose.yml")["services"].values()]
    assert [image for image in images if not re.search(r":v?\d+\.\d+\.\d+$", image)] == []


def test_compose_asks_for_keys_and_sets_only_settings() -> None:
    api = load("docker-compose.yml")["services"]["api"]["environment"]
    assert api["API_KEYS"].startswith("${API_KEYS:?")
    assert [name for name in api if name.lower() not in Settings.model_fields] == []


def test_prometheus_scrapes_the_service_where_compose_runs_it() -> None:
    jobs = load("deploy/prometheus/prometheus.yml")["scrape_configs"]
    environment = load("docker-compose.yml")["services"]["api"]["environment"]
    assert [(job["job_name"], job["static_configs"][0]["targets"]) for job in jobs] == [
        ("sextant", [f"api:{environment['API_PORT']}"])
    ]


def test_grafana_finds_its_dashboard_and_its_datasource() -> None:
    provider = load("deploy/grafana/provisioning/dashboards/sextant.yml")["providers"][0]
    mounts = load("docker-compose.yml")["services"]["grafana"]["volumes"]
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro" in mounts
    source = load("deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"][0]
    dashboard = json.loads((ROOT / "deploy/grafana/dashboards/sextant.json").read_text())
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["uid"]}


def alert_expressions() -> Iterator[tuple[str, str]]:
    for group in load("deploy/prometheus/alerts.yml")["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def panel_expressions() -> Iterator[tuple[str, str]]:
    dashboard = json.loads((ROOT / "deploy/grafana/dashboards/sextant.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def exposed() -> tuple[set[str], set[str]]:
    """Names of the series the service exposes, and of all their labels."""
    names: set[str] = set()
    labels: set[str] = set()
    for name, collector in Metrics().registry._names_to_collectors.items():
        names.add(name)
        labels |= set(getattr(collector, "_labelnames", ()))
    return names, labels


@pytest.mark.parametrize(("where", "expression"), [*alert_expressions(), *panel_expressions()])
def test_alerts_and_panels_ask_for_what_is_exposed(where: str, expression: str) -> None:
    names, labels = exposed()
    asked = set(re.findall(r"\b(?:http|rag)_\w+", expression)) - labels
    assert asked - names == set(), where
    grouped = [name.strip() for group in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for name in group.split(",")]
    matched = re.findall(r"(\w+)=~?\"", expression)
    assert {*grouped, *matched} - labels - PROMETHEUS_OWN == set(), where


def test_alerts_name_error_codes_that_exist() -> None:
    known = {e.error_code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.SextantError)}
    named = {
        code
        for _, expression in alert_expressions()
        for codes in re.findall(r'error_code=~?"([^"]*)"', expression)
        for code in codes.split("|")
    }
    assert "internal" in named
    assert named - known == set()


def manifests() -> list[dict[str, Any]]:
    return [
        manifest
        for path in sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
        for manifest in yaml.safe_load_all(path.read_text())
    ]


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    spec = manifest["spec"]
    return dict((spec["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else spec)["template"]["spec"])


def test_kubernetes_has_the_whole_stack() -> None:
    assert sorted((each["kind"], each["metadata"]["name"]) for each in manifests()) == [
        ("ConfigMap", "sextant"),
        ("CronJob", "sextant-ingest"),
        ("Deployment", "sextant-api"),
        ("Secret", "sextant"),
        ("Service", "qdrant"),
        ("Service", "qdrant-peers"),
        ("Service", "sextant-api"),
        ("StatefulSet", "qdrant"),
    ]


@pytest.mark.usefixtures("bare_environment")
def test_kubernetes_sets_only_settings_and_valid_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        name: value
        for manifest in manifests()
        if manifest["kind"] in ("ConfigMap", "Secret")
        for name, value in (manifest.get("data") or manifest["stringData"]).items()
    }
    assert [name for name in values if name.lower() not in Settings.model_fields] == []
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.api_host == "0.0.0.0"
    assert settings.api_keys != {}


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "StatefulSet"])
def test_kubernetes_pods_are_unprivileged_and_bounded(kind: str) -> None:
    spec = pod(next(each for each in manifests() if each["kind"] == kind))
    assert spec["securityContext"]["runAsNonRoot"] is True
    for container in spec["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["resources"]["limits"].keys() >= {"memory"}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        claims = {"storage"} if kind == "StatefulSet" else set()
        assert mounted == {volume["name"] for volume in spec["volumes"]} | claims


def test_kubernetes_probes_ask_routes_of_the_service() -> None:
    container = pod(next(each for each in manifests() if each["kind"] == "Deployment"))["containers"][0]
    probes = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert probes == {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}


def test_make_explains_its_targets() -> None:
    done = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^  make (\w+) +\S", done.stdout, re.MULTILINE)
    assert listed == ["help", "demo", "test", "check", "serve", "ingest", "bench", "study", "lock", "clean"]
