# One image for the service and the ingestion worker. The default embedding model is one of the locked packages.
FROM python:3.11-slim-bookworm AS build
# For an index with CPU builds of torch: --build-arg PIP_EXTRA_INDEX_URL=…; without one, CUDA builds add several GB.
ARG PIP_EXTRA_INDEX_URL=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/sextant/bin:$PATH
RUN python -m venv /opt/sextant
WORKDIR /src
COPY requirements.lock ./
RUN pip install --no-deps -r requirements.lock \
    && pip install --constraint requirements.lock "$(grep '^torch==' requirements.lock)"
COPY pyproject.toml README.md ./
COPY app app
COPY ingest ingest
RUN pip install --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="Sextant" org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin sextant \
    && install -d -o sextant -g sextant /data
COPY --from=build /opt/sextant /opt/sextant
COPY --chmod=755 deploy/entrypoint.sh /usr/local/bin/sextant
ENV PATH=/opt/sextant/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DATA_DIR=/data
USER 10001:10001
WORKDIR /home/sextant
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ.get(\"API_PORT\", \"8000\")}/healthz', timeout=4)"]
ENTRYPOINT ["sextant"]
CMD ["api"]
